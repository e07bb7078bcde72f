"""Reads the journals of sessions, line by line, and names their hooks and blocks."""

import contextlib
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from typing import Any, TypeGuard

from turngate._frozen_dataclass import frozen
from turngate.core.constants import GATES_RUN_SESSION
from turngate.core.events.hook_input import UNNAMED_SESSION
from turngate.core.hooks.kinds import KINDS
from turngate.core.verdict.json_output import recorded_gate
from turngate.state.files import open_regular_file
from turngate.state.journal import JOURNAL_FILE, MAX_JOURNAL_BYTES, OLDER_JOURNAL_FILE

MAX_TIME = 1 << 33  # seconds: a later one is no time
# The first of these keys that the record of a hook without an id has is its name; `name` is that of a callback.
_NAME_KEYS = ("name", *(hook.body for hook in KINDS.values()), "type")
_START = b'"kind":"start"'  # of a run, which its end repeats

_decode = json.JSONDecoder().scan_once  # type: ignore[attr-defined] # two thirds of the time of json.loads
_NUMBER = (int, float)  # a union takes three times as long
_NO_HOOK: dict[str, Any] = {}

Record = dict[str, Any]


@frozen
class JournalFile:
    """The records of one session, oldest first, and how many lines could not be read."""

    records: tuple[Record, ...]
    damaged: int


def journal_folders(state: str) -> list[str]:
    """Return the folders of all sessions in which an agent may have stopped, by name; each may hold a journal."""
    try:
        names = sorted(os.listdir(os.path.join(state, "sessions")))
    except FileNotFoundError:
        return []
    of_agents = (name for name in names if name != UNNAMED_SESSION and not name.startswith(GATES_RUN_SESSION))
    return [os.path.join(state, "sessions", name) for name in of_agents]


def read_journal(
    folder: str, since: float = 0, *, starts: bool = False, project: str | None = None
) -> JournalFile:
    """Read the journal of a session, if it was written to after `since`; with `starts`, also those of hook runs.

    `project`: only what happened there.
    """
    records, damaged = list[Record](), 0
    for line in _lines(folder, since):
        if not line.strip() or (_START in line and not starts):
            continue
        text = line.decode("utf-8", "replace").strip()
        try:
            record, end = _decode(text, 0)
        except (ValueError, StopIteration, RecursionError):  # such as what a killed process has written
            record, end = None, -1
        if end != len(text) or not is_sound(record):
            damaged += 1
        elif record["time"] >= since and project in (None, record.get("project")):
            records.append(record)
    return JournalFile(tuple(records), damaged)


def _lines(folder: str, since: float) -> Iterator[bytes]:
    for name in (OLDER_JOURNAL_FILE, JOURNAL_FILE):
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path := os.path.join(folder, name)).st_mtime >= since:
                # A line that is longer than this is none of ours.
                with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
                    yield from iter(functools.partial(file.readline, MAX_JOURNAL_BYTES), b"")


def is_sound(record: Any) -> bool:
    """Return whether a record has a time and, if it is about a hook, a name and a duration."""
    if not (isinstance(record, dict) and is_time(record.get("time")) and is_time(record.get("seconds", 0))):
        return False
    hook = record.get("hook", _NO_HOOK)
    return isinstance(hook, dict) and isinstance(hook.get("id", ""), str)


def is_time(value: Any) -> TypeGuard[float]:
    """Return whether a value of a record can be a time or a duration."""
    return isinstance(value, _NUMBER) and 0 <= value < MAX_TIME


def hook_name(hook: Mapping[str, Any]) -> str:
    """Return the name of a hook from its record."""
    name: str = hook.get("id") or ""
    if not name and hook.get("type") == "gate":
        return recorded_gate(hook)
    return name or next((hook[key] for key in _NAME_KEYS if hook.get(key)), "")


def journal_stamp(folder: str) -> tuple[float, int]:
    """Return what is the same only if the journal is, and the time of its last change first; (0, 0): there is none."""
    newest, size = 0.0, 0
    # In this order: a rotation replaces the older file by the newest, which does not exist until the next line.
    for name in (JOURNAL_FILE, OLDER_JOURNAL_FILE):
        with contextlib.suppress(OSError):
            info = os.stat(os.path.join(folder, name))
            newest, size = max(newest, info.st_mtime), size + info.st_size
    return newest, size


def block_id(record: Record) -> str:
    """Return the id by which `turngate log --wrong` names the block of this record."""
    text = f"{record.get('session_id')}\0{record['time']!r}\0{hook_name(record.get('hook') or {})}"
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
