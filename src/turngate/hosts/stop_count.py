"""How often `turngate hook` has sent an agent of a host back to work, kept on disk from stop to stop.

Imports little: a stop without any hook needs `forget_count`.
"""

import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from turngate.core.constants import TEAM_EVENTS, reject_constant
from turngate.gates.stored_state import make_folder, state_path, write_file

VERSION = 1
IDLE_S = 30 * 60  # after which the next stop belongs to other work
MAX_BYTES = 1024 * 1024
LOCK_S = 5.0  # after which another process no longer counts a stop, but hangs


def count_path(state: str, event: str, known: dict[str, object]) -> str:
    """Return the file for the agent that stops. Some hosts have no id for a subagent."""
    agent = str(known.get(TEAM_EVENTS.get(event, "agent_id"), ""))
    if event == "SubagentStop" and not agent:
        agent = f"{known.get('agent_type', '')} {known.get('agent_transcript_path', '')}"
    return state_path(state, str(known.get("session_id", "")), agent, f"turngate hook {event}")


def read_count(
    path: str, prompt: str, *, is_active: bool, now: float | None = None
) -> dict[str, object] | None:
    """Return what was stored at the last stop, unless this one belongs to another prompt or to later work.

    `is_active`: the host says that a hook has continued this turn. With the same prompt, it is the same turn,
    however long the agent has worked.
    """
    record = _read(path)
    stopped = record.get("time")
    if record.get("prompt") != prompt or not isinstance(stopped, int | float):
        return None
    idle = (time.time() if now is None else now) - stopped
    if idle >= IDLE_S and not (prompt and is_active):
        return None
    return record if is_active or not record.get("has_ended") else None


def _read(path: str) -> dict[str, object]:
    from turngate.state.files import open_regular_file  # noqa: PLC0415 # lazy: it loads contextlib

    try:
        with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
            record = json.loads(file.read(MAX_BYTES), parse_constant=reject_constant)
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) and record.get("version") == VERSION else {}


def write_count(path: str, prompt: str, values: dict[str, object]) -> bool:
    """Store the count; return False if it could not be written."""
    return write_file(path, json.dumps({"version": VERSION, "prompt": prompt, "time": time.time(), **values}))


@contextmanager
def locked_count(path: str) -> Iterator[None]:
    """Hold the lock of a count while it is changed. Without a state folder there is nothing to lock; a stop does not hang."""
    from turngate.state.files import wait_for_lock  # noqa: PLC0415 # lazy: a stop without hooks changes no count

    try:
        make_folder(os.path.dirname(path))
        lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError:
        yield
        return
    try:
        with suppress(OSError):
            wait_for_lock(lock, path, LOCK_S)
        yield
    finally:
        os.close(lock)


def forget_count(path: str) -> None:
    with suppress(OSError):  # most often there is none
        os.unlink(path)
