"""Cuts the journal of a session into the stops of its agents: what all commands about the past show, count, send and ask again."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.constants import AGENT_KEEPS, STOP_EVENTS
from turngate.core.text import truncate
from turngate.history.journals import Record, block_id, hook_name, is_time
from turngate.state.process_stat import ProcessId, is_alive
from turngate.tracing import LABELS

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
    kept: bool = False  # it passed because the agent said that the user wants it this way
    tokens: int = 0
    cost_usd: float | None = None
    exit_code: int | None = None

    @property
    def label(self) -> str:
        return LABELS.get(self.outcome, self.outcome)  # of a later version


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
    event: str = "Stop"
    host: str = ""
    project: str = ""
    tree: Mapping[str, Any] | None = None  # of the record of its files, if they are recorded

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
                result: StopResult = "overridden" if ended_by in ("capped", "stalled") else stop.result
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
        project = str(record.get("project") or "")
    for agent, open_runs in running.items():
        begun, every = max(run.begun for run in open_runs), (*runs.get(agent, ()), *open_runs)
        stops.append(RecordedStop(begun, "running", every, *agent, project=project))
    return stops


_Agent = tuple[str, str]  # the id and the type of a subagent


def _agent(record: Record) -> _Agent:
    known = "agent_id" in record  # most have none
    return (str(record["agent_id"] or ""), str(record.get("agent_type") or "")) if known else ("", "")


def _run(record: Record, outcome: str, marks: Mapping[str, Record]) -> RecordedRun:
    hook, seconds = record.get("hook") or {}, float(record.get("seconds", 0))
    limit, block, more = hook.get("timeout"), "", dict[str, Any]()
    if outcome == "block":
        block = block_id(record)
        if mark := marks.get(block):
            more |= {"wrong": bool(mark["wrong"]), "why": _text(mark, "why")}
    if isinstance(spent := record.get("evaluation"), dict):
        tokens, cost = (spent.get("input_tokens"), spent.get("output_tokens")), spent.get("cost_usd")
        more["tokens"] = sum(each for each in tokens if isinstance(each, int))
        more["cost_usd"] = cost if isinstance(cost, int | float) else None
    if (notice := record.get("notice")) and AGENT_KEEPS in str(notice):
        more["kept"] = True
    if isinstance(code := record.get("exit_code"), int):
        more["exit_code"] = code
    reason, begun = _text(record, "reason") if "reason" in record else "", record["time"] - seconds
    limit = limit if is_time(limit) else None
    return RecordedRun(str(hook_name(hook)), outcome, begun, seconds, reason, limit, block, **more)


def _stop(record: Record, runs: Sequence[RecordedRun], agent: _Agent) -> RecordedStop:
    skipped = tuple(_skipped_gates(record))
    result: StopResult = "allowed"
    if record.get("kind") == "cached":
        result = "cached"
    elif record.get("verdict") == "continue":
        result = "blocked"
    elif record.get("ended_by") in ("halted", "checkpoint"):
        result = "halted"
    elif record.get("unenforced") or any(run.label == "not_enforced" for run in runs):
        result = "not enforced"
    count = record.get("runs")  # those before belong to a stop whose process was killed
    return RecordedStop(
        record["time"],
        result,
        tuple(runs[-count:] if isinstance(count, int) and count else runs),
        *agent,
        answer=_text(record, "answer"),
        prompt=_text(record, "prompt"),
        skipped=skipped,
        ended_by=str(record.get("ended_by") or ""),
        end=_text(record, "stop_reason"),
        event=str(record.get("event", "Stop")),
        host=str(record.get("host") or ""),
        project=str(record.get("project") or ""),
        tree=_tree(record) if "tree" in record else None,
    )


def _skipped_gates(verdict: Record) -> Iterator[tuple[str, str]]:
    """Yield the gates that were skipped against the intent of their author, and why; of them there is no other record."""
    found = verdict.get("unenforced")
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and each.get("outcome") == "skipped":
            yield str(each.get("hook")), truncate(str(each.get("why") or ""), MAX_TEXT_CHARS)


def _tree(record: Record) -> Mapping[str, Any] | None:
    match record["tree"]:
        case {
            "ref": str(ref),
            "transcript": str(),
            "bytes": int(),
            "answer": str(),
            "outcomes": dict(),
        } as tree:
            return tree if re.fullmatch(r"refs/turngate/stops/[\w-]+/\d{1,9}", ref) else None
        case _:
            return None


def stops_with_files(stops: Iterable[RecordedStop]) -> dict[int, RecordedStop]:
    """Return the stops whose files are recorded, by their number in the session."""
    return {int(each.tree["ref"].rpartition("/")[2]): each for each in stops if each.tree}


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
