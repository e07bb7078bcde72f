"""Cuts the journal of a session into stops, each with what its gates did, and summarizes the session."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.constants import STOP_EVENTS
from turngate.core.text import truncate
from turngate.history.journals import MAX_TIME, Record, block_id, hook_name
from turngate.history.stats import NOT_ENFORCED, OVERRIDDEN
from turngate.state.process_stat import ProcessId, is_alive

MAX_TEXT_CHARS = 4000  # of a reason or a prompt

# overridden: the turn ended although a hook blocked; not enforced: it ended, and a gate gave no decision.
StopResult = Literal["allowed", "blocked", "overridden", "not enforced", "halted", "cached", "running"]


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


def read_stops(records: Sequence[Record]) -> list[RecordedStop]:
    """Return the stops of one session, oldest first; one whose gates still run is the last."""
    runs, started = defaultdict[tuple[str, str], list[RecordedRun]](list), dict[str, Record]()
    stops, marks = list[RecordedStop](), {str(each.get("block")): each for each in records if "wrong" in each}
    last = dict[tuple[str, str], int]()  # the newest stop of each agent
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
                stops[last[agent]] = _ended(stops[last[agent]], record)
            case _:
                pass
    running = defaultdict[tuple[str, str], list[RecordedRun]](list)
    for record in filter(_still_runs, started.values()):
        running[_agent(record)].append(_run(record, "running", marks))
    for agent, open_runs in running.items():
        begun = max(run.begun for run in open_runs)
        stops.append(RecordedStop(begun, "running", (*runs.get(agent, ()), *open_runs), *agent))
    return stops


def _agent(record: Record) -> tuple[str, str]:
    return str(record.get("agent_id") or ""), str(record.get("agent_type") or "")


def _run(record: Record, outcome: str, marks: Mapping[str, Record]) -> RecordedRun:
    hook = record.get("hook") or {}
    seconds = _number(record.get("seconds")) or 0.0
    block = block_id(record) if outcome == "block" else ""
    mark = marks.get(block)
    return RecordedRun(
        str(hook_name(hook)),
        outcome,
        record["time"] - seconds,
        seconds,
        _text(record.get("reason")),
        _number(hook.get("timeout")),
        block,
        wrong=bool(mark.get("wrong")) if mark else None,
        why=_text(mark.get("why")) if mark else "",
    )


def _stop(record: Record, runs: Sequence[RecordedRun], agent: tuple[str, str]) -> RecordedStop:
    entries = record.get("unenforced")
    skipped = tuple(
        (str(each.get("hook")), _text(each.get("why")))
        for each in (entries if isinstance(entries, list) else ())
        if isinstance(each, dict) and each.get("outcome") == "skipped"
    )
    result: StopResult = "not enforced" if skipped or entries else "allowed"
    if any(run.outcome in NOT_ENFORCED for run in runs):
        result = "not enforced"
    if record.get("kind") == "cached":
        result = "cached"
    elif record.get("verdict") == "continue":
        result = "blocked"
    elif record.get("ended_by") in ("halted", "checkpoint"):
        result = "halted"
    count = record.get("runs")  # those before belong to a stop whose process was killed
    return RecordedStop(
        record["time"],
        result,
        tuple(runs[-count:] if isinstance(count, int) and count else runs),
        *agent,
        answer=_text(record.get("answer")),
        prompt=_text(record.get("prompt")),
        skipped=skipped,
        ended_by=str(record.get("ended_by") or ""),
        end=_text(record.get("stop_reason")),
    )


def _ended(stop: RecordedStop, end: Record) -> RecordedStop:
    ended_by = str(end.get("ended_by") or "")
    result: StopResult = "overridden" if ended_by in OVERRIDDEN else stop.result
    return replace(stop, result=result, ended_by=ended_by, end=_text(end.get("reason")) or stop.end)


def _still_runs(start: Record) -> bool:
    try:
        pid, began = start["process"]
        return is_alive(ProcessId(int(pid), str(began)))
    except (LookupError, TypeError, ValueError):
        return False


def _text(value: Any) -> str:
    return truncate(value, MAX_TEXT_CHARS) if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < MAX_TIME else None
