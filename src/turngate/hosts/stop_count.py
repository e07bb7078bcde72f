"""How often `turngate hook` has sent an agent of a host back to work, kept on disk from stop to stop.

Imports little: a stop without any hook needs `forget_count`.
"""

import os
import time

from turngate.gates.state import state_path, write_file

VERSION = 1
IDLE_S = 30 * 60  # after which the next stop belongs to other work


def count_path(state: str, session: str, agent: str) -> str:
    """Return the file for the agent of a session; the ids may have any characters."""
    return state_path(state, session, agent, "turngate hook")


def read_count(path: str, prompt: str, now: float | None = None) -> dict[str, object] | None:
    """Return what was stored at the last stop, unless this one belongs to another prompt or to later work."""
    import json  # noqa: PLC0415 # lazy: it loads re

    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError, RecursionError):
        return None
    now = time.time() if now is None else now
    if not isinstance(record, dict) or record.get("version") != VERSION:
        return None
    stopped = record.get("time")
    if not isinstance(stopped, int | float) or not 0 <= now - stopped < IDLE_S:
        return None
    return record if record.get("prompt") == prompt else None


def write_count(path: str, prompt: str, values: dict[str, object]) -> bool:
    """Store the count; return False if it could not be written."""
    import json  # noqa: PLC0415 # lazy: it loads re

    return write_file(path, json.dumps({"version": VERSION, "prompt": prompt, "time": time.time(), **values}))


def forget_count(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:  # most often there is none
        return
