"""What the real programs gave their hooks; `make hosts` writes it."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recorded"
INPUTS = sorted(path for path in FOLDER.glob("*/*.json"))


def recorded(host: str, name: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((FOLDER / host / f"{name}.json").read_text())
    return fields


def input_id(path: Path) -> str:
    return f"{path.parent.name} {path.stem}"
