"""The statements of the registry. Each transition names the states that it leads out of, and the owner that may make it."""

from collections.abc import Sequence
from typing import Literal

from turngate.core.conversation.subagent_run import LIVING_STATES, OPEN_STATES, RunState
from turngate.subagents.registry.table import COLUMNS, IS_OPEN, IS_UNDELIVERED, STATES

Transition = Literal[
    "start",
    "end",
    "usage",  # record what a run used before it was ended from outside
    "redirect",  # store the next prompt, and count the redirect before the prompt is sent
    "cancel_redirect",  # return to `ended` as if no redirect was requested
    "finish",  # store the final result for the parent
    "lost",  # end a run that cannot continue; its parent gets the announcement instead of a result
    "announce",  # put the result into the parent's inbox, exactly once: the message is the run's own row
    "attempt",  # count a failed attempt to announce
    "give_up",
    "done",  # plugins were notified of the end
]
Query = Literal["run", "last", "chain", "all", "owned", "unfinished", "of_others", "leftovers"]


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
CASE WHEN :may_run > 0 AND {_HAS_SLOT} THEN 'running' ELSE 'waiting' END,
CASE WHEN :may_run > 0 AND {_HAS_SLOT} THEN :created END
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE agent_id = :agent_id AND state IN ({_LIVING})) RETURNING *"""


def _transition(changes: str, *states: RunState, condition: str = "") -> str:
    """Return a statement that changes nothing, and returns no row, for any owner but the run's own."""
    where = f"id = :id AND owner = :owner AND state IN ({quote(states)}){condition}"
    return f"UPDATE runs SET {changes} WHERE {where} RETURNING *"


_USED = "usage = :usage, tool_calls = tool_calls + :tool_calls, tools = :tools"
_REQUEST = """\
state = 'steering', next_id = :next_id, next_prompt = :prompt, next_by_hook = :counts, steer_why = :why,
steer_count = steer_count + :counts, max_steers = :max_steers, guard = coalesce(:guard, guard)"""
TRANSITIONS: dict[Transition, str] = {
    "start": _transition("state = 'running', started = :now", "waiting", condition=f" AND {_HAS_SLOT}"),
    "end": _transition(
        "state = 'ended', ended = :now, outcome = :outcome, reason = :reason, error = :error, result = :result, "
        f"{_USED}, guard = coalesce(:guard, guard)",
        "running",
    ),
    "usage": _transition(_USED, *STATES),
    "redirect": _transition(_REQUEST, "ended"),
    # A run that was aborted for the redirect has no outcome of its own; it ends with the error.
    "cancel_redirect": _transition(
        "state = 'ended', next_id = '', next_prompt = '', steer_count = steer_count - :counted, guard = :guard, "
        "error = CASE WHEN outcome IS NULL THEN :error ELSE error END, "
        "reason = CASE WHEN outcome IS NULL THEN 'error' ELSE reason END, "
        "ended = coalesce(ended, :now), outcome = coalesce(outcome, 'error')",
        "steering",
    ),
    "finish": _transition(
        "state = 'final', result = :result, reason = :reason, announcement = :announcement, "
        "max_steers = :max_steers, guard = coalesce(:guard, guard)",
        "ended",
    ),
    "lost": _transition(
        "state = 'final', outcome = 'error', reason = 'lost', error = :error, result = '', "
        "announcement = :announcement, ended = coalesce(ended, :now)",
        *LIVING_STATES,
    ),
    # `taken`: the parent's conversation holds the result already, as that of a tool call.
    # `to_root`: the subagent that started it takes no more turns, so the main agent gets the result.
    "announce": _transition(
        "state = 'announced', announced = :now, taken = CASE WHEN :taken > 0 THEN :now ELSE taken END, "
        "parent_agent = CASE WHEN :to_root > 0 THEN '' ELSE parent_agent END",
        "final",
    ),
    "attempt": _transition("attempts = attempts + 1", "final"),
    "give_up": _transition("state = 'given_up', error = :error", "final"),
    "done": _transition("state = 'done'", "announced", "killed"),
}
OPTIONAL_VALUES: dict[str, object] = {
    "error": "",
    "result": "",
    "usage": None,
    "tool_calls": 0,
    "tools": (),
    "guard": None,
    "taken": 0,
    "to_root": 0,
}
REPLACE = f"""\
INSERT INTO runs ({", ".join(COLUMNS)}) SELECT {_parameters(COLUMNS)}
WHERE EXISTS (SELECT 1 FROM runs WHERE id = :replaces AND owner = :owner AND state = 'steering') RETURNING *"""

# Requests from outside, by which no owner is named

STEERABLE_STATES: tuple[RunState, ...] = ("running", "ended")
STEER = f"UPDATE runs SET {_REQUEST} WHERE id = :id AND state IN ({quote(STEERABLE_STATES)}) RETURNING *"
MARK_DELIVERED = f"UPDATE runs SET taken = :now WHERE id = :id AND {IS_UNDELIVERED} RETURNING *"
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

# Results for a parent

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
SELECT DISTINCT owner FROM runs WHERE state IN ({_OPEN}) AND {IS_OPEN} AND owner != :owner"""
OWNERS_OF_PROJECT = f"""\
SELECT DISTINCT owner FROM runs WHERE {IS_OPEN} AND json_extract(launch, '$.project') = :project
AND NOT (state IN ({_LIVING}) AND chain IN (SELECT value FROM json_each(:left)))"""
ADOPTABLE = f"""\
SELECT * FROM runs WHERE owner = :dead AND state IN ({_OPEN}) AND {IS_OPEN}
AND (:project IS NULL OR json_extract(launch, '$.project') = :project)"""
ADOPT = f"""\
UPDATE runs SET owner = :owner, recoveries = recoveries + :died,
recovered = CASE WHEN :died > 0 THEN :now ELSE recovered END, rapid = CASE WHEN :died = 0 THEN rapid
WHEN abs(:now - coalesce(recovered, 0)) < :rapid_s THEN rapid + 1 ELSE 1 END
WHERE owner = :dead AND state IN ({_OPEN}) AND {IS_OPEN}
AND id IN (SELECT value FROM json_each(:runs)) RETURNING *"""
LEAVE = f"UPDATE runs SET owner = '' WHERE owner = :owner AND state IN ({_OPEN}) AND {IS_OPEN} RETURNING id"
HAS_OPEN_RUNS = f"SELECT 1 FROM runs WHERE owner = :owner AND {IS_OPEN} LIMIT 1"
RELEASE_SLOTS = f"""\
UPDATE runs SET state = 'waiting' WHERE owner = :owner AND state = 'running' AND {IS_OPEN} RETURNING id"""

# Queries and deletion

QUERIES: dict[Query, str] = {
    "run": "SELECT * FROM runs WHERE id = :id",
    "last": "SELECT * FROM runs WHERE chain = :chain AND state != 'replaced' ORDER BY created DESC LIMIT 1",
    "chain": "SELECT * FROM runs WHERE chain = :chain ORDER BY created, steer_count",
    "all": "SELECT * FROM runs ORDER BY created, id",
    # The open runs of an owner, or of all others.
    "owned": f"SELECT * FROM runs WHERE owner = :owner AND state IN ({_OPEN}) AND {IS_OPEN}",
    "of_others": f"SELECT * FROM runs WHERE owner != :owner AND state IN ({_OPEN}) AND {IS_OPEN} LIMIT 1",
    # Those of a session that have no announced result yet, whichever process owns them.
    "unfinished": f"SELECT * FROM runs WHERE parent = :parent AND (state IN ({_LIVING}) OR state = 'final') "
    f"AND {IS_OPEN} ORDER BY created, id",
    # One that is open or has to be deleted.
    "leftovers": f"SELECT * FROM (SELECT * FROM runs WHERE {IS_OPEN} UNION ALL SELECT * FROM runs "
    f"WHERE state IN ('done', 'replaced') AND {_IS_DELETABLE}) AS runs LIMIT 1",
}
DELETE_FINISHED = f"""\
DELETE FROM runs WHERE state IN ('done', 'replaced') AND ended < :now - :retention AND {_IS_DELETABLE}
AND NOT EXISTS (SELECT 1 FROM runs AS later
WHERE later.chain = runs.chain AND later.id != runs.id AND later.state IN ({_OPEN})) RETURNING id"""
DELETE_GIVEN_UP = "DELETE FROM runs WHERE state = 'given_up' AND ended < :now - :retention RETURNING id"
