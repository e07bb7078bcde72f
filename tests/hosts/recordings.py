"""What the real programs gave their hooks; `make hosts` writes it."""

import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "recorded"
INPUTS = sorted(path for path in FOLDER.glob("*/*.json") if path.name != "variables.json")


# The input of Copilot CLI for a hook that is configured with a name in camel case, which it does not name.
CAMEL_CASE = "camelcase-"
SNAKE_CASE = {
    "sessionId": "session_id",
    "transcriptPath": "transcript_path",
    "agentId": "agent_id",
    "agentType": "agent_type",
    "response": "last_assistant_message",
}


def in_snake_case(path: Path, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields in the spelling of all others; the file is named after the event."""
    if not path.stem.startswith(CAMEL_CASE):
        return fields
    event = path.stem.removeprefix(CAMEL_CASE).split("-")[0]
    event = {"agentStop": "Stop"}.get(event, event[0].upper() + event[1:])
    return {"hook_event_name": event, **{SNAKE_CASE.get(name, name): fields[name] for name in fields}}


def recorded(host: str, name: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads((FOLDER / host / f"{name}.json").read_text())
    return fields


def input_id(path: Path) -> str:
    return f"{path.parent.name} {path.stem}"
