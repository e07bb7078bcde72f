"""A run as a row of the register's table, and back."""

import json
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import MISSING, fields
from typing import Any

from turngate.core.messages import Usage
from turngate.core.subagent_run import SubagentRun
from turngate.core.text import replace_surrogates, truncate

FROZEN_MOST = 100_000  # characters of a result that are kept for the parent

_JSON = ("usage", "spent", "tools", "earlier_tools", "guard", "launch")
NAMES = tuple(each.name for each in fields(SubagentRun))
_KNOWN = frozenset(NAMES)
_NO_USAGE = Usage()
_USAGE = frozenset(each.name for each in fields(Usage))
_NUMBERS = ("started", "ended", "announced", "taken", "recovered", "max_steers")
_DEFAULTS = {each.name: each.default if each.default is not MISSING else None for each in fields(SubagentRun)}


def _fitting(name: str) -> type | tuple[type, ...]:
    """What a column may hold; anything else is as if it were not there."""
    if name in _NUMBERS:
        return (int, float)
    default = _DEFAULTS[name]
    return (int, float) if isinstance(default, bool | int | float) else str


_FITTING = {name: _fitting(name) for name in NAMES}


def column(name: str) -> str:
    match _DEFAULTS[name]:
        case bool() | int() as number:
            return f"{name} INTEGER NOT NULL DEFAULT {int(number)}"
        case float():
            return f"{name} REAL NOT NULL DEFAULT 0"
        case str() as text:
            return f"{name} TEXT NOT NULL DEFAULT '{text}'"
        case _:
            return name  # no type: what is put in comes out


# An index of some rows is used only where a statement repeats these very words.
IS_OPEN = "state NOT IN ('done', 'replaced', 'given_up')"
IS_WAITED_FOR = "announced IS NOT NULL AND taken IS NULL"

TABLE = f"CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, {', '.join(column(n) for n in NAMES if n != 'id')}) WITHOUT ROWID"
INDEXES = f"""
CREATE INDEX IF NOT EXISTS open_runs ON runs (state, owner) WHERE {IS_OPEN};
CREATE INDEX IF NOT EXISTS waited_for ON runs (parent, parent_agent) WHERE {IS_WAITED_FOR};
CREATE INDEX IF NOT EXISTS finished_runs ON runs (ended) WHERE state IN ('done', 'replaced');
CREATE INDEX IF NOT EXISTS children ON runs (parent, parent_agent);
CREATE INDEX IF NOT EXISTS by_agent ON runs (agent_id);
CREATE INDEX IF NOT EXISTS chains ON runs (chain);
CREATE INDEX IF NOT EXISTS agents ON runs (parent_agent) WHERE parent_agent != '';
CREATE TRIGGER IF NOT EXISTS replacement AFTER INSERT ON runs WHEN NEW.replaces != '' BEGIN
  UPDATE runs SET state = 'replaced', ended = coalesce(ended, NEW.created) WHERE id = NEW.replaces;
END;
"""


def row_of(run: SubagentRun) -> dict[str, Any]:
    return {**vars(run), **{name: packed(getattr(run, name)) for name in _JSON}}


def packed(value: Any) -> str | None:
    """What is empty, or counts nothing, takes no room and no time."""
    if isinstance(value, Usage):
        value = vars(value) if value != _NO_USAGE else None
    return json.dumps(value) if value else None


def run_of(row: sqlite3.Row) -> SubagentRun:
    """Fields that an older or newer version did not write have their defaults; what is no value is none."""
    known: dict[str, Any] = {
        name: value
        for name, value in zip(row.keys(), row, strict=True)
        if name in _KNOWN and isinstance(value, _FITTING[name])
    }
    for name in _JSON:
        if name in known:
            known[name] = _unpacked(name, known[name])
    for name in ("background", "by_hook", "next_by_hook"):
        known[name] = bool(known.get(name))
    return SubagentRun(**{"chain": known["id"], "agent_id": "", **known})


def _unpacked(name: str, text: object) -> Any:
    try:
        said = json.loads(text) if isinstance(text, str) else None
    except ValueError:
        said = None
    if name in ("tools", "earlier_tools"):
        return tuple(map(str, said)) if isinstance(said, list) else ()
    kept = said if isinstance(said, dict) else {}
    if name in ("guard", "launch"):
        return kept
    return Usage(**{k: v for k, v in kept.items() if k in _USAGE and type(v) is int})


def listed(states: Sequence[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)


# Who waits for a child of its own must not keep that child from running: only runs as deep, or deeper, take its room.
ROOM = (
    "(SELECT count(*) FROM runs WHERE state IN ('running', 'ended', 'steering') "
    f"AND {IS_OPEN} AND depth >= :depth) < :most"
)


def new_id() -> str:
    return uuid.uuid4().hex


def frozen(text: str) -> str:
    """A result as it is kept: its beginning and a word about the rest."""
    more = f"\n[… {len(text) - FROZEN_MOST} more characters; the child's transcript has all of it]"
    return truncate(replace_surrogates(text), FROZEN_MOST, more)
