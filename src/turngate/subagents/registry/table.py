"""The table of runs: its columns, the conversion of a row, and one statement per transition with the states it leads from."""

import json
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import MISSING, fields, replace
from typing import Any, get_args

from turngate.core.conversation.messages import Usage
from turngate.core.conversation.subagent_run import LIVING_STATES, OPEN_STATES, RunState, SubagentRun
from turngate.core.text import describe, replace_surrogates, truncate

MAX_RESULT_CHARS = 100_000

_JSON_COLUMNS = ("usage", "spent", "tools", "earlier_tools", "guard", "launch")
_NUMBERS = frozenset(
    field.name for field in fields(SubagentRun) if field.type in (bool, int, float, int | None, float | None)
)
_STATES = frozenset(get_args(RunState))
_USAGE_FIELDS = frozenset(field.name for field in fields(Usage))
_NO_USAGE = Usage()


def new_id() -> str:
    return uuid.uuid4().hex


def to_column(value: Any) -> str | float | None:
    """Return a value as a column holds it; None for an empty one of JSON, so that most rows hold no JSON at all."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Usage):
        value = vars(value) if value != _NO_USAGE else None
    return json.dumps(value) if value else None


def row_to_run(row: sqlite3.Row) -> SubagentRun:
    """Read a row that any version wrote: unknown columns are ignored, NULL means the field's default.

    Raises ValueError, TypeError or AttributeError for a value that no version writes.
    """
    values = {name: value for name, value in dict(row).items() if name in COLUMNS and value is not None}
    for name, value in values.items():
        if isinstance(value, str) is (name in _NUMBERS):
            raise ValueError(f"{name} is {describe(value)}, not a {'number' if name in _NUMBERS else 'text'}")
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


def quote(states: Sequence[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)


def rows_to_change(statement: str) -> str | None:
    """Return a query for a row that an UPDATE or DELETE would change; None for other statements."""
    if not statement.startswith(("UPDATE", "DELETE")):
        return None
    condition = statement.partition("WHERE ")[2].rpartition("RETURNING ")[0]
    return f"SELECT 1 FROM runs WHERE {condition} LIMIT 1"


def _parameters(names: Sequence[str]) -> str:
    return ", ".join(f":{name}" for name in names)


_LIVING = quote(LIVING_STATES)
_OPEN = quote(OPEN_STATES)
# A run competes only with runs at its depth or deeper, so a parent waiting for its subagent cannot starve it.
_HAS_SLOT = (
    "(SELECT count(*) FROM runs WHERE state IN ('running', 'ended', 'steering') "
    f"AND {IS_OPEN} AND depth >= :depth) < :max_running"
)
_IS_DELETABLE = "(announcement = '' OR taken IS NOT NULL OR state = 'replaced')"

# Transitions of one run

_INSERTED_COLUMNS = [name for name in COLUMNS if name not in ("state", "started")]
REGISTER = f"""\
INSERT INTO runs ({", ".join(_INSERTED_COLUMNS)}, state, started) SELECT {_parameters(_INSERTED_COLUMNS)},
CASE WHEN :may_run AND {_HAS_SLOT} THEN 'running' ELSE 'waiting' END,
CASE WHEN :may_run AND {_HAS_SLOT} THEN :created END
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE agent_id = :agent_id AND state IN ({_LIVING})) RETURNING *"""
START = f"""\
UPDATE runs SET state = 'running', started = :now
WHERE id = :id AND owner = :owner AND state = 'waiting' AND {_HAS_SLOT} RETURNING *"""
END = """\
UPDATE runs SET state = 'ended', ended = :now, outcome = :outcome, reason = :reason, error = :error,
result = :answer, usage = :usage, tool_calls = tool_calls + :tool_calls, tools = :tools,
guard = coalesce(:guard, guard) WHERE id = :id AND owner = :owner AND state = 'running' RETURNING *"""
RECORD_USAGE = """\
UPDATE runs SET usage = :usage, tool_calls = tool_calls + :tool_calls, tools = :tools WHERE id = :id RETURNING *"""
REQUEST_REDIRECT = """\
UPDATE runs SET state = 'steering', next_id = :next, next_prompt = :prompt, next_by_hook = :counts,
steer_why = :why, steer_count = steer_count + :counts, max_steers = :max_steers,
guard = coalesce(:guard, guard) WHERE id = :id AND state IN ({states}) RETURNING *"""
CANCEL_REDIRECT = """\
UPDATE runs SET state = 'ended', next_id = '', next_prompt = '', steer_count = steer_count - :counted,
guard = CASE WHEN :counted THEN json_extract(guard, '$.before') ELSE guard END,
error = CASE WHEN outcome IS NULL THEN :error ELSE error END,
reason = CASE WHEN outcome IS NULL THEN 'error' ELSE reason END,
ended = coalesce(ended, :now), outcome = coalesce(outcome, 'error')
WHERE id = :id AND state = 'steering' RETURNING *"""
REPLACE = f"""\
INSERT INTO runs ({", ".join(COLUMNS)}) SELECT {_parameters(COLUMNS)}
WHERE EXISTS (SELECT 1 FROM runs WHERE id = :replaces AND state = 'steering') RETURNING *"""
FINISH = """\
UPDATE runs SET state = 'final', result = :result, reason = :reason, announcement = :announcement,
max_steers = :max_steers, guard = coalesce(:guard, guard) WHERE id = :id AND state = 'ended' RETURNING *"""
FINISH_LOST = f"""\
UPDATE runs SET state = 'final', outcome = 'error', reason = 'lost', error = :error, result = '',
announcement = :announcement, ended = coalesce(ended, :now)
WHERE id = :id AND owner = :owner AND state IN ({_LIVING}) RETURNING *"""
ANNOUNCE = """\
UPDATE runs SET state = 'announced', announced = :now, taken = CASE WHEN :taken THEN :now ELSE taken END,
parent_agent = CASE WHEN :to_root THEN '' ELSE parent_agent END
WHERE id = :id AND state = 'final' RETURNING *"""
COUNT_ATTEMPT = "UPDATE runs SET attempts = attempts + 1 WHERE id = :id AND state = 'final' RETURNING *"
GIVE_UP = "UPDATE runs SET state = 'given_up', error = :why WHERE id = :id AND state = 'final' RETURNING *"
MARK_DONE = "UPDATE runs SET state = 'done' WHERE id = :id AND state IN ('announced', 'killed') RETURNING *"
MARK_DELIVERED = f"UPDATE runs SET taken = :now WHERE id = :id AND {IS_UNDELIVERED} RETURNING *"

# Kills

_KILL = f"""\
UPDATE runs SET state = 'killed', outcome = 'killed', reason = :reason, ended = coalesce(ended, :now)
WHERE state IN ({_LIVING}) AND {IS_OPEN}"""
_DESCENDANTS = """\
WITH RECURSIVE tree(agent) AS ({roots} UNION
SELECT runs.agent_id FROM runs JOIN tree ON runs.parent_agent = tree.agent) SELECT agent FROM tree"""
_IN_CHAIN_OF = "chain = (SELECT chain FROM runs WHERE id = :id)"
_AGENTS_OF_CHAIN = f"SELECT agent_id FROM runs WHERE state IN ({_LIVING}) AND {_IN_CHAIN_OF}"
KILL = f"""{_KILL}
AND ({_IN_CHAIN_OF} OR parent_agent IN ({_DESCENDANTS.format(roots=_AGENTS_OF_CHAIN)})) RETURNING *"""
KILL_ALL = f"""{_KILL} AND parent = :parent
AND (:agent = '' OR parent_agent IN ({_DESCENDANTS.format(roots="SELECT :agent")})) RETURNING *"""

# Results

INBOX = f"""\
SELECT * FROM runs INDEXED BY waited_for WHERE parent = :parent AND parent_agent = :agent
AND announcement != '' AND {IS_UNDELIVERED} ORDER BY announced, id"""
DISCARD_RESULTS = """\
UPDATE runs SET taken = :now WHERE parent = :parent AND (:agent = '' OR parent_agent = :agent)
AND state IN ('final', 'announced', 'done') AND taken IS NULL RETURNING id"""
REASSIGN_TO_ROOT = f"""\
UPDATE runs SET parent_agent = '' WHERE parent_agent = :agent AND {IS_UNDELIVERED} RETURNING id"""

# Owners

OTHER_OWNERS = f"""\
SELECT DISTINCT owner FROM runs WHERE state IN ({_OPEN}) AND {IS_OPEN} AND owner IS NOT :owner"""
OWNERS_OF_PROJECT = f"""\
SELECT DISTINCT owner FROM runs WHERE {IS_OPEN} AND json_extract(launch, '$.project') = :project
AND NOT (state IN ({_LIVING}) AND chain IN (SELECT value FROM json_each(:left)))"""
ADOPTABLE = f"""\
SELECT * FROM runs WHERE owner = :dead AND state IN ({_OPEN}) AND {IS_OPEN}
AND (:project IS NULL OR json_extract(launch, '$.project') = :project)"""
ADOPT = f"""\
UPDATE runs SET owner = :owner, recoveries = recoveries + :died,
recovered = CASE WHEN :died THEN :now ELSE recovered END, rapid = CASE WHEN NOT :died THEN rapid
WHEN abs(:now - coalesce(recovered, 0)) < :rapid_s THEN rapid + 1 ELSE 1 END
WHERE owner = :dead AND state IN ({_OPEN}) AND {IS_OPEN}
AND id IN (SELECT value FROM json_each(:runs)) RETURNING *"""
LEAVE = f"UPDATE runs SET owner = '' WHERE owner = :owner AND state IN ({_OPEN}) AND {IS_OPEN} RETURNING id"
HAS_OPEN_RUNS = f"SELECT 1 FROM runs WHERE owner = :owner AND {IS_OPEN} LIMIT 1"
RELEASE_SLOTS = f"""\
UPDATE runs SET state = 'waiting' WHERE owner = :owner AND state = 'running' AND {IS_OPEN} RETURNING id"""

# Queries and deletion

GET = "SELECT * FROM runs WHERE id = :id"
LAST = "SELECT * FROM runs WHERE chain = :chain AND state != 'replaced' ORDER BY created DESC LIMIT 1"
CHAIN = "SELECT * FROM runs WHERE chain = :chain ORDER BY created, steer_count"
ALL = "SELECT * FROM runs ORDER BY created, id"
OWNED = f"SELECT * FROM runs WHERE owner = :owner AND state IN ({_OPEN}) AND {IS_OPEN}"
UNFINISHED = f"""\
SELECT * FROM runs WHERE parent = :parent AND (state IN ({_LIVING}) OR state = 'final') AND {IS_OPEN}
ORDER BY created, id"""
IS_NOT_EMPTY = f"""\
SELECT 1 FROM runs WHERE {IS_OPEN} UNION ALL
SELECT 1 FROM runs WHERE state IN ('done', 'replaced') AND {_IS_DELETABLE} LIMIT 1"""
DELETE_FINISHED = f"""\
DELETE FROM runs WHERE state IN ('done', 'replaced') AND ended < :before AND {_IS_DELETABLE}
AND NOT EXISTS (SELECT 1 FROM runs AS later
WHERE later.chain = runs.chain AND later.id != runs.id AND later.state IN ({_OPEN})) RETURNING id"""
DELETE_GIVEN_UP = "DELETE FROM runs WHERE state = 'given_up' AND ended < :before RETURNING id"
