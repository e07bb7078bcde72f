"""Writes journals as sessions leave them."""

import json
import time
from pathlib import Path
from typing import Any

from turngate.history.journals import Record

TESTS = {"type": "gate", "gate": "tests", "id": "tests"}


def hook_record(outcome: str, when: float = 0, hook: dict[str, Any] | None = None, **more: Any) -> Record:
    entry = {"kind": "hook", "event": "Stop", "time": when, "hook": hook or TESTS}
    return {**entry, "outcome": outcome, "seconds": 1.0, **more}


def verdict_record(*blocked_by: str, when: float = 0, **more: Any) -> Record:
    verdict = {"verdict": "continue", "blocked_by": list(blocked_by)} if blocked_by else {"verdict": "stop"}
    return {"kind": "verdict", "event": "Stop", "time": when, **verdict, **more}


def append_records(state: Path, session: str, *records: Record, project: str = "/p") -> None:
    folder = state / "sessions" / session
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "journal.jsonl").open("a") as file:
        for record in records:
            file.write(json.dumps({"session_id": session, "project": project, **record}) + "\n")


def append_stop(state: Path, session: str, outcome: str = "allow", **more: Any) -> None:
    """Append a stop of just now, with one gate; `more`: of the record of the verdict."""
    now, reason = time.time(), "exit code 1" if outcome == "block" else None
    blocked_by = ("tests",) if outcome == "block" else ()
    append_records(
        state,
        session,
        hook_record(outcome, now, reason=reason),
        verdict_record(*blocked_by, when=now, **{"prompt": reason} if reason else {}, **more),
    )
