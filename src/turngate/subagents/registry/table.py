"""The table of runs: its columns, the conversion of a row, and one statement per transition with the states it leads from."""

import json
import uuid
from collections.abc import Mapping
from dataclasses import MISSING, fields, replace
from typing import Any, get_args

from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import RunState, SubagentRun
from turngate.core.text import describe, replace_surrogates, truncate

MAX_RESULT_CHARS = 100_000

_JSON_COLUMNS = ("usage", "spent", "tools", "earlier_tools", "guard", "launch")
_INTEGERS = frozenset(field.name for field in fields(SubagentRun) if field.type in (bool, int, int | None))
_NUMBERS = _INTEGERS | {field.name for field in fields(SubagentRun) if field.type in (float, float | None)}
STATES: tuple[RunState, ...] = get_args(RunState)
_USAGE_FIELDS = frozenset(field.name for field in fields(Usage))
_NO_USAGE = Usage()


def new_id() -> str:
    return uuid.uuid4().hex


def to_column(value: Any) -> str | float | None:
    """Return a value as a column holds it; None for an empty one of JSON, so that most rows hold no JSON at all."""
    if isinstance(value, bool):
        return int(value)
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Usage):
        value = vars(value) if value != _NO_USAGE else None
    return json.dumps(value) if value else None


def row_to_run(row: Mapping[str, Any]) -> SubagentRun:
    """Read a row that any version wrote: unknown columns are ignored, NULL means the field's default.

    Raises ValueError, TypeError or AttributeError for a value that no version writes.
    """
    values = {name: value for name, value in row.items() if name in COLUMNS and value is not None}
    for name, value in values.items():
        if isinstance(value, str) is (name in _NUMBERS):
            raise ValueError(f"{name} is {describe(value)}, not a {'number' if name in _NUMBERS else 'text'}")
    if values.get("state", "waiting") not in STATES:
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
    return dict(value)


# What a run does not take over from the one that it replaces.
_NOT_INHERITED = (
    *("ended", "outcome", "reason", "error", "result", "next_id", "next_prompt", "next_by_hook", "tools"),
    *("attempts", "recoveries", "rapid", "recovered"),
)


def successor_of(run: SubagentRun, now: float) -> SubagentRun:
    """Return the run that replaces one in the state `steering`: same chain, new prompt, nothing used yet."""
    return replace(
        run,
        **{name: _DEFAULTS[name] for name in _NOT_INHERITED},
        id=run.next_id,
        state="running",
        prompt=run.next_prompt,
        by_hook=run.next_by_hook,
        replaces=run.id,
        created=now,
        started=now,
        usage=Usage(),
        spent=run.spent + run.usage,
        earlier_tools=tuple(dict.fromkeys((*run.earlier_tools, *run.tools))),
    )


def truncate_result(text: str) -> str:
    """Truncate a result to what the registry stores, with a note about the rest."""
    rest = len(text) - MAX_RESULT_CHARS
    note = f"\n[… {rest} more characters; the subagent's transcript has the whole text]"
    return truncate(replace_surrogates(text), MAX_RESULT_CHARS, note)


# In `PRAGMA user_version`; files without one have 0. Raise it for a change that an earlier version would misread.
SCHEMA_VERSION = 1

COLUMNS = tuple(field.name for field in fields(SubagentRun))
_DEFAULTS: dict[str, Any] = {
    field.name: None if field.default is MISSING else field.default for field in fields(SubagentRun)
}


def column_definition(name: str) -> str:
    """Return the definition of a column, which both databases understand."""
    kind = "INTEGER" if name in _INTEGERS else "DOUBLE PRECISION" if name in _NUMBERS else "TEXT"
    match _DEFAULTS[name]:
        case str() as text:
            return f"{name} {kind} NOT NULL DEFAULT '{text}'"
        case int() | float() as number:
            return f"{name} {kind} NOT NULL DEFAULT {int(number)}"
        case _:
            return f"{name} {kind}"


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
"""
TRIGGER = """
CREATE TRIGGER IF NOT EXISTS replacement AFTER INSERT ON runs WHEN NEW.replaces != '' BEGIN
  UPDATE runs SET state = 'replaced', ended = coalesce(ended, NEW.created) WHERE id = NEW.replaces;
END;
"""
