"""The statements of the registry. Each transition names the states that it leads out of, and the owner that may make it."""

from collections.abc import Sequence
from functools import cache
from string import Template
from typing import Literal

from turngate.core.conversation.subagent_run import LIVING_STATES, OPEN_STATES, RunState
from turngate.subagents.registry.table import COLUMNS, IS_OPEN, IS_UNDELIVERED, STATES

# fmt: off
Transition = Literal[
    "start", "end", "usage", "redirect", "cancel_redirect", "finish", "lost", "announce", "attempt", "give_up", "done", "refuse",
]
# fmt: on
Query = Literal["run", "last", "chain", "all", "owned", "unfinished", "leftovers"]

Database = Literal["sqlite", "postgresql"]
RAPID_RECOVERY_S = 120.0  # recoveries closer together than this count as rapid
GIVEN_UP_RETENTION_S = 7 * 86400.0  # longer than that of others
_LIVING_OWNERS = "(SELECT id FROM turngate.owners WHERE seen > now() - make_interval(secs => %(lease_s)s))"
_UNFIT_LABELS = """SELECT 1 FROM json_each(launch, '$.workers.labels') \
WHERE value NOT IN (SELECT value FROM json_each(:labels))"""
# Runs of one project are read in their order by an index, up to the first that may be claimed.
_FITTING = "first_label = coalesce(%(labels)s::jsonb ->> 0, '') AND labels <@ %(labels)s::jsonb"
_REACHED = "(starts_with(project, 'ssh://') OR host IN ('', %(host)s))"
# `$name` in a statement is one of these, or else a parameter. Runs that workers may claim have `workers` in their launch.
DIFFERENCES = {
    "parameter": (":{}", "%({})s"),
    "runs": ("runs", "turngate.runs"),
    "now": (":now", "extract(epoch FROM statement_timestamp())::float8"),
    "lock": ("", "SELECT pg_advisory_xact_lock(8446744073); "),  # SQLite has one writer at a time
    "skip_locked": ("", "FOR UPDATE SKIP LOCKED"),
    "by_inbox": ("INDEXED BY waited_for", ""),
    "same_machine": ("", "AND owner IN (SELECT id FROM turngate.owners WHERE host = %(host)s)"),
    # A folder of this machine, or a location that all machines reach.
    "in_project": ("json_extract(launch, '$.project') = :project", f"project = %(project)s AND {_REACHED}"),
    "for_workers": ("json_extract(launch, '$.workers') IS NOT NULL", "labels IS NOT NULL"),
    "labels_fit": (f"NOT EXISTS ({_UNFIT_LABELS})", _FITTING),
    "at_once": ("json_extract(launch, '$.workers.at_once')", "at_once"),
    "is_gone": ("= ''", f"NOT IN {_LIVING_OWNERS}"),  # of those that died, locks of files say it
    "may_be_gone": ("IS NOT NULL", f"NOT IN {_LIVING_OWNERS}"),
    "ids": ("SELECT value FROM json_each(:ids)", "SELECT json_array_elements_text(%(ids)s::json)"),
}


@cache
def render(statement: str, database: Database) -> str:
    differences = {name: texts[database == "postgresql"] for name, texts in DIFFERENCES.items()}
    parameters = {
        name: differences["parameter"].format(name) for name in Template(statement).get_identifiers()
    }
    return Template(statement).substitute({**parameters, **differences})


def quote(states: Sequence[str]) -> str:
    return ", ".join(f"'{state}'" for state in states)


def rows_to_change(statement: str) -> str | None:
    """Return a query for a row that an UPDATE or DELETE would change; None for other statements."""
    if not statement.startswith(("UPDATE", "DELETE")):
        return None
    condition = statement.partition("WHERE ")[2].rpartition("RETURNING ")[0]
    return f"SELECT 1 FROM runs WHERE {condition} LIMIT 1"


def _parameters(names: Sequence[str]) -> str:
    return ", ".join(f"${name}" for name in names)


_LIVING = quote(LIVING_STATES)
_OPEN = quote(OPEN_STATES)
_WITH_SLOT = f"state IN ('running', 'ended', 'steering') AND {IS_OPEN}"
# A run competes only with runs at its depth or deeper, so a parent waiting for its subagent cannot starve it.
_HAS_SLOT = f"""\
AND (SELECT count(*) FROM $runs WHERE {_WITH_SLOT} AND depth >= $depth $same_machine) < $max_running"""
_IS_DELETABLE = "(announcement = '' OR taken IS NOT NULL OR state = 'replaced')"

# Transitions of one run

_INSERTED_COLUMNS = [name for name in COLUMNS if name not in ("state", "started")]
# A plan for a known `may_run` costs less, and would be made each time: hence `(SELECT $may_run)`.
REGISTER = f"""\
${{lock}}INSERT INTO $runs ({", ".join(_INSERTED_COLUMNS)}, state, started)
SELECT {_parameters(_INSERTED_COLUMNS)}, state, CASE state WHEN 'running' THEN $created END
FROM (SELECT CASE WHEN (SELECT $may_run) > 0 {_HAS_SLOT} THEN 'running' ELSE 'waiting' END AS state) AS found
WHERE NOT EXISTS (SELECT 1 FROM $runs WHERE agent_id = $agent_id AND state IN ({_LIVING})) RETURNING *"""


def _transition(changes: str, *states: RunState, more: str = "") -> str:
    """Return a statement that changes nothing, and returns no row, for any owner but the run's own."""
    where = f"id = $id AND owner = $owner AND state IN ({quote(states)}) {more}"
    return f"UPDATE $runs SET {changes} WHERE {where} RETURNING *"


_USED = "usage = $usage, tool_calls = tool_calls + $tool_calls, tools = $tools"
_ENDED = f"""\
state = 'ended', ended = $now, outcome = $outcome, reason = $reason, error = $error, result = $result,
{_USED}, guard = coalesce($guard, guard)"""
_REQUEST = """\
state = 'steering', next_id = $next_id, next_prompt = $prompt, next_by_hook = $counts, steer_why = $why,
steer_count = steer_count + $counts, max_steers = $max_steers, guard = coalesce($guard, guard)"""
TRANSITIONS: dict[Transition, str] = {
    "start": "${lock}" + _transition("state = 'running', started = $now", "waiting", more=_HAS_SLOT),
    "end": _transition(_ENDED, "running"),
    "usage": _transition(_USED, *STATES),
    "redirect": _transition(_REQUEST, "ended"),
    # A run that was aborted for the redirect has no outcome of its own; it ends with the error.
    "cancel_redirect": _transition(
        "state = 'ended', next_id = '', next_prompt = '', steer_count = steer_count - $counted, guard = $guard, "
        "error = CASE WHEN outcome IS NULL THEN $error ELSE error END, "
        "reason = CASE WHEN outcome IS NULL THEN 'error' ELSE reason END, "
        "ended = coalesce(ended, $now), outcome = coalesce(outcome, 'error')",
        "steering",
    ),
    "finish": _transition(
        "state = 'final', result = $result, reason = $reason, announcement = $announcement, "
        "max_steers = $max_steers, guard = coalesce($guard, guard)",
        "ended",
    ),
    "lost": _transition(
        "state = 'final', outcome = 'error', reason = 'lost', error = $error, result = '', "
        "announcement = $announcement, ended = coalesce(ended, $now)",
        *LIVING_STATES,
    ),
    # `taken`: the parent's conversation holds the result already, as that of a tool call.
    "announce": _transition(
        "state = 'announced', announced = $now, taken = CASE WHEN $taken > 0 THEN $now ELSE taken END",
        "final",
    ),
    "attempt": _transition("attempts = attempts + 1", "final"),
    "give_up": _transition("state = 'given_up', error = $error", "final"),
    "done": _transition("state = 'done'", "announced", "killed"),
    # By a worker that may not continue what it has claimed.
    "refuse": _transition(
        "owner = '', error = $error, state = CASE state WHEN 'running' THEN 'waiting' ELSE state END",
        *LIVING_STATES,
    ),
}
OPTIONAL_VALUES: dict[str, object] = {
    **dict.fromkeys(("usage", "tools", "guard")),
    **dict.fromkeys(("tool_calls", "taken"), 0),
    **dict.fromkeys(("error", "result"), ""),
}
REPLACE = f"""\
${{lock}}INSERT INTO $runs ({", ".join(COLUMNS)}) SELECT {_parameters(COLUMNS)}
WHERE EXISTS (SELECT 1 FROM $runs WHERE id = $replaces AND owner = $owner AND state = 'steering') RETURNING *"""

# Requests from outside, by which no owner is named

STEERABLE_STATES: tuple[RunState, ...] = ("running", "ended")
STEER = f"UPDATE $runs SET {_REQUEST} WHERE id = $id AND state IN ({quote(STEERABLE_STATES)}) RETURNING *"
MARK_DELIVERED = f"UPDATE $runs SET taken = $now WHERE id = $id AND {IS_UNDELIVERED} RETURNING *"
_KILL = f"""\
${{lock}}UPDATE $runs SET state = 'killed', outcome = 'killed', reason = $reason, ended = coalesce(ended, $now)
WHERE state IN ({_LIVING}) AND {IS_OPEN}"""
_DESCENDANTS = """\
WITH RECURSIVE tree(agent) AS ({roots} UNION
SELECT runs.agent_id FROM $runs JOIN tree ON runs.parent_agent = tree.agent) SELECT agent FROM tree"""
_IN_CHAIN_OF = "chain = (SELECT chain FROM $runs WHERE id = $id)"
_AGENTS_OF_CHAIN = f"SELECT agent_id FROM $runs WHERE state IN ({_LIVING}) AND {_IN_CHAIN_OF}"
KILL = f"""{_KILL}
AND ({_IN_CHAIN_OF} OR parent_agent IN ({_DESCENDANTS.format(roots=_AGENTS_OF_CHAIN)})) RETURNING *"""
KILL_ALL = f"""{_KILL} AND parent = $parent
AND ($agent = '' OR parent_agent IN ({_DESCENDANTS.format(roots="SELECT $agent")})) RETURNING *"""

# Results for a parent

# What a subagent has started that takes no more turns is reported to the main agent.
INBOX = f"""\
SELECT * FROM $runs $by_inbox WHERE parent = $parent AND announcement != '' AND {IS_UNDELIVERED}
AND (parent_agent = $agent OR $agent = '' AND NOT EXISTS (SELECT 1 FROM $runs AS starter
WHERE starter.agent_id = runs.parent_agent AND starter.state IN ({_LIVING}))) ORDER BY announced, id"""
DISCARD_RESULTS = """\
UPDATE $runs SET taken = $now
WHERE parent = $parent AND state IN ('final', 'announced', 'done') AND taken IS NULL RETURNING id"""

# Owners

OTHER_OWNERS = f"""\
SELECT DISTINCT owner FROM $runs WHERE state IN ({_OPEN}) AND {IS_OPEN} AND owner != $owner
AND owner $may_be_gone AND NOT ($for_workers) AND ($in_project OR $project IS NULL)
AND NOT (state IN ({_LIVING}) AND chain IN ($ids))"""
ABANDONED = f"""\
SELECT * FROM $runs WHERE owner = $dead AND state IN ({_OPEN}) AND {IS_OPEN}
AND NOT ($for_workers) AND ($in_project OR $project IS NULL)"""
# An adoption counts as a recovery only if the owner died; one that ended in order has given up its runs.
_ADOPTED = f"""\
owner = $owner, recoveries = recoveries + CASE owner WHEN '' THEN 0 ELSE 1 END,
recovered = CASE owner WHEN '' THEN recovered ELSE $now END,
rapid = CASE WHEN owner = '' THEN rapid
WHEN abs($now - coalesce(recovered, 0)) < {RAPID_RECOVERY_S} THEN rapid + 1 ELSE 1 END"""
ADOPT = f"""\
UPDATE $runs SET {_ADOPTED} WHERE owner = $dead AND state IN ({_OPEN}) AND {IS_OPEN} AND id IN ($ids) RETURNING *"""
_CLAIMABLE = f"{IS_OPEN} AND $for_workers AND $labels_fit AND owner $is_gone AND chain NOT IN ($ids)"
# The oldest run that waits, or that its worker gave up or left by its death, while its session and the worker have
# slots. It continues in its state; only one that waits starts to run.
CLAIM = f"""\
${{lock}}UPDATE $runs SET {_ADOPTED}, state = CASE state WHEN 'waiting' THEN 'running' ELSE state END,
started = CASE state WHEN 'waiting' THEN $now ELSE started END
WHERE id = (SELECT id FROM $runs WHERE {_CLAIMABLE}
AND (SELECT count(*) FROM $runs WHERE owner = $owner AND {_WITH_SLOT}) < $max_running
AND parent NOT IN (SELECT parent FROM $runs WHERE {_WITH_SLOT} AND $for_workers AND NOT owner $is_gone
GROUP BY parent HAVING count(*) >= max($at_once)) ORDER BY created, id LIMIT 1 $skip_locked)
RETURNING *, EXISTS (SELECT 1 FROM $runs AS other WHERE other.id != runs.id AND {_CLAIMABLE}) AS more_wait"""
LEAVE = f"""\
UPDATE $runs SET owner = '' WHERE owner = $owner AND state IN ({_OPEN}) AND {IS_OPEN} RETURNING id"""
RELEASE_SLOTS = f"""\
UPDATE $runs SET state = 'waiting' WHERE owner = $dead AND state = 'running' AND {IS_OPEN} RETURNING id"""

# Transcripts of subagents on workers. A part is added if the transition that it comes with changes the run.

WITH_TRANSCRIPT = """\
WITH changed AS ({transition}), added AS (INSERT INTO turngate.transcripts (chain, start, part)
SELECT chain, $start, $part FROM changed ON CONFLICT DO NOTHING) SELECT * FROM changed"""
READ_TRANSCRIPT = "SELECT part FROM turngate.transcripts WHERE chain = $chain ORDER BY start"

# Queries and deletion

_UNFINISHED = (
    f"(state IN ({_LIVING}) OR state = 'final')"  # without an announced result, whichever process owns it
)
_FINISHED = "state IN ('done', 'replaced')"
_OPEN_RUNS = f"SELECT * FROM $runs WHERE {IS_OPEN}"
# `is_same`: for its session, it is as it was registered.
ELSEWHERE = f"""\
SELECT id, chain, $for_workers AND recoveries = 0 AND error = '' AS is_same FROM $runs
WHERE {IS_OPEN} AND {_UNFINISHED} AND parent = $parent AND owner != $owner ORDER BY created, id"""
QUERIES: dict[Query, str] = {
    "run": "SELECT * FROM $runs WHERE id = $value",
    "last": "SELECT * FROM $runs WHERE chain = $value AND state != 'replaced' ORDER BY created DESC LIMIT 1",
    "chain": "SELECT * FROM $runs WHERE chain = $value ORDER BY created, steer_count",
    "all": "SELECT * FROM $runs ORDER BY created, id",
    "owned": f"{_OPEN_RUNS} AND state IN ({_OPEN}) AND owner = $value",
    "unfinished": f"{_OPEN_RUNS} AND {_UNFINISHED} AND parent = $value ORDER BY created, id",
    "leftovers": f"{_OPEN_RUNS} UNION ALL SELECT * FROM $runs WHERE {_FINISHED} AND {_IS_DELETABLE} LIMIT 1",
}
DELETE_FINISHED = f"""\
DELETE FROM $runs WHERE ended < $now - $retention AND ({_FINISHED} AND {_IS_DELETABLE}
AND NOT EXISTS (SELECT 1 FROM $runs AS later
WHERE later.chain = runs.chain AND later.id != runs.id AND later.state IN ({_OPEN}))
OR state = 'given_up' AND ended < $now - $retention - {GIVEN_UP_RETENTION_S}) RETURNING id"""
