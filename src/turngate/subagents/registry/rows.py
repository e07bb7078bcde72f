"""Convert between a SubagentRun and a row of the table.

The table of runs. Databases of earlier versions must open, so columns are only ever added.
"""

import json
import sqlite3
import uuid
from dataclasses import MISSING, fields, replace
from typing import Any, get_args

from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import RunState, SubagentRun
from turngate.core.text import describe, replace_surrogates, truncate

MAX_RESULT_CHARS = 100_000

_JSON_COLUMNS = ("usage", "spent", "tools", "earlier_tools", "guard", "launch")
_NUMBERS = (int, float)
_TYPES: dict[str, tuple[type, ...]] = {
    field.name: _NUMBERS if field.type in (bool, int, float, int | None, float | None) else (str,)
    for field in fields(SubagentRun)
}
_STATES = frozenset(get_args(RunState))
_USAGE_FIELDS = frozenset(field.name for field in fields(Usage))
_NO_USAGE = Usage()


def new_id() -> str:
    return uuid.uuid4().hex


def run_to_row(run: SubagentRun) -> dict[str, Any]:
    return {**vars(run), **{name: encode_json(getattr(run, name)) for name in _JSON_COLUMNS}}


def encode_json(value: Any) -> str | None:
    """Return None for an empty value, so that most rows hold no JSON at all."""
    if isinstance(value, Usage):
        value = vars(value) if value != _NO_USAGE else None
    return json.dumps(value) if value else None


def row_to_run(row: sqlite3.Row) -> SubagentRun:
    """Read a row that any version wrote: unknown columns are ignored, NULL means the field's default.

    Raises ValueError, TypeError or AttributeError for a value that no version writes.
    """
    values: dict[str, Any] = {}
    for name, value in zip(row.keys(), row, strict=True):
        if value is not None and name in _TYPES:
            if type(value) not in _TYPES[name]:
                expected = "number" if _TYPES[name] is _NUMBERS else "text"
                raise ValueError(f"{name} is {describe(value)}, not a {expected}")
            values[name] = value
    if values.get("state", "waiting") not in _STATES:
        raise ValueError(f"state is {describe(values['state'])}")
    for name in _JSON_COLUMNS:
        if name in values:
            values[name] = _decode_json(name, values[name])
    for name in ("background", "by_hook", "next_by_hook"):
        values[name] = bool(values.get(name))
    return SubagentRun(**{"chain": values["id"], "agent_id": "", **values})


def _decode_json(name: str, text: str) -> Any:
    try:
        value = json.loads(text)
    except RecursionError:
        raise ValueError(f"{name} is nested too deeply") from None
    if name in ("tools", "earlier_tools"):
        return tuple(tool for tool in value if isinstance(tool, str))
    if name in ("usage", "spent"):
        counts = ((key, count) for key, count in value.items() if isinstance(count, int))
        return Usage(**{key: count for key, count in counts if key in _USAGE_FIELDS})
    if not isinstance(value, dict):
        raise ValueError(f"{name} is {describe(value)}, not an object")
    return value


def successor_of(run: SubagentRun, now: float) -> SubagentRun:
    """Return the run that replaces one in the state `steering`: same chain, new prompt, nothing used yet."""
    return replace(
        run,
        id=run.next_id,
        state="running",
        prompt=run.next_prompt,
        by_hook=run.next_by_hook,
        replaces=run.id,
        created=now,
        started=now,
        ended=None,
        outcome=None,
        reason="",
        error="",
        result="",
        next_id="",
        next_prompt="",
        next_by_hook=False,
        usage=Usage(),
        spent=run.spent + run.usage,
        tools=(),
        earlier_tools=tuple(dict.fromkeys((*run.earlier_tools, *run.tools))),
        attempts=0,
        recoveries=0,
        rapid=0,
        recovered=None,
    )


def truncate_result(text: str) -> str:
    """Truncate a result to what the registry stores, with a note about the rest."""
    note = (
        f"\n[… {len(text) - MAX_RESULT_CHARS} more characters; the subagent's transcript has the whole text]"
    )
    return truncate(replace_surrogates(text), MAX_RESULT_CHARS, note)


# In `PRAGMA user_version`; files without one have 0. Raise it for a change that an earlier version would misread.
SCHEMA_VERSION = 1
OLDEST_COLUMNS = ("id", "agent_id", "state", "owner")  # that every version had

COLUMNS = tuple(field.name for field in fields(SubagentRun))
_DEFAULTS = {field.name: None if field.default is MISSING else field.default for field in fields(SubagentRun)}


def column_definition(name: str) -> str:
    match _DEFAULTS[name]:
        case bool() | int() as number:
            return f"{name} INTEGER NOT NULL DEFAULT {int(number)}"
        case float():
            return f"{name} REAL NOT NULL DEFAULT 0"
        case str() as text:
            return f"{name} TEXT NOT NULL DEFAULT '{text}'"
        case _:
            return name  # without a type SQLite stores values as they are


# SQLite uses a partial index only for statements that repeat its condition word for word.
IS_OPEN = "state NOT IN ('done', 'replaced', 'given_up')"
IS_UNDELIVERED = "announced IS NOT NULL AND taken IS NULL"

_DEFINITIONS = ", ".join(column_definition(name) for name in COLUMNS if name != "id")
TABLE = f"CREATE TABLE IF NOT EXISTS runs (id TEXT PRIMARY KEY, {_DEFINITIONS}) WITHOUT ROWID"
INDEXES = f"""
CREATE INDEX IF NOT EXISTS open_runs ON runs (state, owner) WHERE {IS_OPEN};
CREATE INDEX IF NOT EXISTS waited_for ON runs (parent, parent_agent) WHERE {IS_UNDELIVERED};
CREATE INDEX IF NOT EXISTS finished_runs ON runs (ended) WHERE state IN ('done', 'replaced');
CREATE INDEX IF NOT EXISTS children ON runs (parent, parent_agent);
CREATE INDEX IF NOT EXISTS by_agent ON runs (agent_id);
CREATE INDEX IF NOT EXISTS chains ON runs (chain);
CREATE INDEX IF NOT EXISTS agents ON runs (parent_agent) WHERE parent_agent != '';
CREATE TRIGGER IF NOT EXISTS replacement AFTER INSERT ON runs WHEN NEW.replaces != '' BEGIN
  UPDATE runs SET state = 'replaced', ended = coalesce(ended, NEW.created) WHERE id = NEW.replaces;
END;
"""
