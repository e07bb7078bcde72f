"""Cuts the journal of a session into stops, each with what its gates did."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.constants import STOP_EVENTS
from turngate.core.text import truncate
from turngate.history.journals import Record, block_id, hook_name, is_time
from turngate.history.stats import NOT_ENFORCED, OVERRIDDEN, skipped_gates
from turngate.state.process_stat import ProcessId, is_alive

MAX_TEXT_CHARS = 4000  # of a reason or a prompt

# overridden: the turn ended although a hook blocked; accepted: so it did, and a person accepts it; not enforced: it ended,
# and a gate gave no decision.
StopResult = Literal[
    "allowed", "blocked", "overridden", "accepted", "not enforced", "halted", "cached", "running"
]


@frozen
class RecordedRun:
    """One run of a hook at a stop. `wrong`: what a person said of its block, if anything."""

    gate: str
    outcome: str  # a `HookOutcome`, "running" or "interrupted"
    begun: float
    seconds: float
    reason: str = ""
    limit: float | None = None  # seconds that it may take
    block: str = ""  # the id by which `turngate log --wrong` names it
    wrong: bool | None = None
    why: str = ""


@frozen
class RecordedStop:
    """One stop of an agent: its answer, what the hooks decided, and what came next."""

    time: float
    result: StopResult
    runs: tuple[RecordedRun, ...]
    agent: str = ""  # the id of the subagent that stopped; "": the main agent
    agent_type: str = ""
    answer: str = ""
    prompt: str = ""  # with which the agent continued
    skipped: tuple[tuple[str, str], ...] = ()  # gates that did not run against their author's intent, and why
    ended_by: str = ""
    end: str = ""  # why the turn ended, if not because everything passed

    @property
    def blocked_by(self) -> list[str]:
        return [run.gate for run in self.runs if run.outcome == "block"]


def read_stops(records: Sequence[Record]) -> list[RecordedStop]:
    """Return the stops of one session, oldest first; one whose gates still run is the last."""
    runs, started = defaultdict[_Agent, list[RecordedRun]](list), dict[str, Record]()
    stops, marks = list[RecordedStop](), {str(each.get("block")): each for each in records if "wrong" in each}
    last = dict[_Agent, int]()  # the newest stop of each agent
    for record in records:
        if record.get("event", "Stop") not in STOP_EVENTS:
            continue
        agent = _agent(record)
        match record.get("kind"):
            case "start":
                started[str(record.get("run"))] = record
            case "hook":
                started.pop(str(record.get("run")), None)
                runs[agent].append(_run(record, str(record.get("outcome")), marks))
            case "verdict" | "cached":
                last[agent] = len(stops)
                stops.append(_stop(record, runs.pop(agent, []), agent))
            case "turn_end" if agent in last:
                ended_by, stop = str(record.get("ended_by") or ""), stops[last[agent]]
                result: StopResult = "overridden" if ended_by in OVERRIDDEN else stop.result
                end = _text(record, "reason") or stop.end
                stops[last[agent]] = replace(stop, result=result, ended_by=ended_by, end=end)
            case "accepted" if agent in last and stops[last[agent]].result == "overridden":
                why = f"A person accepted it: {_text(record, 'why')}"
                stops[last[agent]] = replace(stops[last[agent]], result="accepted", end=why)
            case _:
                pass
    running = defaultdict[_Agent, list[RecordedRun]](list)
    for record in filter(_still_runs, started.values()):
        running[_agent(record)].append(_run(record, "running", marks))
    for agent, open_runs in running.items():
        begun = max(run.begun for run in open_runs)
        stops.append(RecordedStop(begun, "running", (*runs.get(agent, ()), *open_runs), *agent))
    return stops


_Agent = tuple[str, str]  # the id and the type of a subagent


def _agent(record: Record) -> _Agent:
    return str(record.get("agent_id") or ""), str(record.get("agent_type") or "")


def _run(record: Record, outcome: str, marks: Mapping[str, Record]) -> RecordedRun:
    hook, seconds = record.get("hook") or {}, float(record.get("seconds", 0))
    limit, block = hook.get("timeout"), block_id(record) if outcome == "block" else ""
    mark = marks.get(block, {})
    return RecordedRun(
        str(hook_name(hook)),
        outcome,
        record["time"] - seconds,
        seconds,
        _text(record, "reason"),
        limit if is_time(limit) else None,
        block,
        wrong=bool(mark["wrong"]) if mark else None,
        why=_text(mark, "why"),
    )


def _stop(record: Record, runs: Sequence[RecordedRun], agent: _Agent) -> RecordedStop:
    result: StopResult = "allowed"
    if record.get("kind") == "cached":
        result = "cached"
    elif record.get("verdict") == "continue":
        result = "blocked"
    elif record.get("ended_by") in ("halted", "checkpoint"):
        result = "halted"
    elif record.get("unenforced") or any(run.outcome in NOT_ENFORCED for run in runs):
        result = "not enforced"
    count = record.get("runs")  # those before belong to a stop whose process was killed
    return RecordedStop(
        record["time"],
        result,
        tuple(runs[-count:] if isinstance(count, int) and count else runs),
        *agent,
        answer=_text(record, "answer"),
        prompt=_text(record, "prompt"),
        skipped=tuple((name, truncate(why, MAX_TEXT_CHARS)) for name, why in skipped_gates(record)),
        ended_by=str(record.get("ended_by") or ""),
        end=_text(record, "stop_reason"),
    )


def _still_runs(start: Record) -> bool:
    """Return whether the process is there of which this is the start of a hook."""
    try:
        pid, began = start["process"]
        return is_alive(ProcessId(int(pid), str(began)))
    except (LookupError, TypeError, ValueError):
        return False


def _text(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    return truncate(value, MAX_TEXT_CHARS) if isinstance(value, str) else ""
