"""A project with one approved Stop hook, and what its hooks do."""

import asyncio
import json
from pathlib import Path
from typing import Any

from tests.support.builders import stop_event, write_settings
from turngate.core.verdict.verdict import Verdict
from turngate.engine import ask_hooks
from turngate.ports import World
from turngate.project.files import LOCAL
from turngate.shells.local import LocalShell
from turngate.trust.load import load_settings
from turngate.trust.review import review_project

RUNS = 'echo ran >> "$TURNGATE_PROJECT_DIR/ran"\n'
EVIL = 'touch "$TURNGATE_PROJECT_DIR/evil"\n'


def command(text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "command", "command": text, **fields}


def stop_settings(*hooks: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"hooks": {"Stop": [{"hooks": list(hooks)}]}, **others}


def write(project: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)


def make(project: Path, hook: dict[str, Any], files: dict[str, str], **settings: Any) -> None:
    write(project, files)
    write_settings(project, "turngate", stop_settings(hook, **settings))


def approve_all(project: Path) -> None:
    review = review_project(str(project), files=LOCAL)
    review.approve(review.hooks)


def ask(project: Path, **options: Any) -> Verdict:
    """Load the settings as a session does at its start, and run the Stop hooks."""
    settings = load_settings(str(project), **options)
    event = stop_event(cwd=str(project))
    return asyncio.run(ask_hooks(event, settings, World(LocalShell(), str(project))))


def said(verdict: Verdict) -> list[str | None]:
    """Return why each gate was not enforced."""
    return [run.said for run in verdict.unenforced]


def approvals_file(state: Path) -> Path:
    (path,) = (state / "trust" / "projects").glob("*.json")
    return path


def change_record(path: Path, **fields: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))
