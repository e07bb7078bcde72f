"""What is known of all sessions: the stops of each, and a summary, made again only when its journal has changed."""

import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from turngate._frozen_dataclass import frozen
from turngate.core.constants import STOP_EVENTS
from turngate.core.text import one_line, truncate
from turngate.history.journals import (
    JournalFile,
    Record,
    block_id,
    hook_name,
    is_time,
    journal_folders,
    journal_stamp,
    read_journal,
)
from turngate.history.stats import NOT_ENFORCED, OVERRIDDEN, Days, count_days, skipped_gates
from turngate.state.paths import TRANSCRIPT_FILE, session_folder
from turngate.state.process_stat import ProcessId, is_alive
from turngate.transcript.reader import title_and_project

MAX_TEXT_CHARS = 4000  # of a reason or a prompt
MAX_TITLE_CHARS = 120
MAX_RESULTS = 24  # in a summary
MAX_RECORDS = 500  # in which they are searched
MAX_RUN_S = 86_400  # a hook of a journal that has not changed for so long does not run any more
OWN_HOST = "turngate"  # the host of a session of `turngate run`


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


@frozen
class SessionSummary:
    """One session. `results`: of the newest stops of the main agent, oldest first."""

    id: str
    host: str  # "" if it is not known
    project: str
    title: str
    gates: tuple[str, ...]
    last: float
    stops: int
    subagents: int
    results: tuple[str, ...]
    running: tuple[RecordedRun, ...]
    ended: RecordedStop | None  # the newest stop of the main agent
    days: Days
    damaged: int

    @property
    def open_stop(self) -> RecordedStop | None:
        """The end of the session, if a gate still blocks and no person has accepted that."""
        return self.ended if self.ended and self.ended.result == "overridden" else None


class History:
    """The sessions of a state folder that have changed after `since`, or only what happened in one project."""

    def __init__(self, state: str, project: str | None = None, since: float = 0) -> None:
        self._state, self._project, self._since = state, project, since
        self._stamps = dict[str, tuple[float, int]]()
        self.sessions = dict[str, SessionSummary]()
        self.version = 0  # of the sessions
        self.unread = 0  # sessions that have changed and are not read yet

    def refresh(self) -> Iterator[str]:
        """Read the sessions that have changed, the newest first, and yield the name of each."""
        found = ((os.path.basename(folder), journal_stamp(folder)) for folder in journal_folders(self._state))
        stamps = {name: stamp for name, stamp in found if stamp[0] >= self._since}
        for name in self._stamps.keys() - stamps.keys():
            del self._stamps[name]
            self.version += self.sessions.pop(name, None) is not None
        changed = {name for name, stamp in stamps.items() if stamp != self._stamps.get(name)}
        # Of a hook that ran when the journal was read, and is killed, no line tells it.
        running = {each.id for each in self.sessions.values() if each.running}
        self.unread = len(changed)
        for name in sorted(changed or running, key=stamps.__getitem__, reverse=True):
            self._stamps[name], self.unread = stamps[name], max(0, self.unread - 1)
            summary = self._summarize(name, stamps[name][0])
            self.version += name in changed or summary != self.sessions.get(name)
            if summary:
                self.sessions[name] = summary
            else:
                self.sessions.pop(name, None)
            yield name

    def stops(self, session: str) -> list[RecordedStop]:
        """Return the stops of a session, oldest first. Raises KeyError if it is not known."""
        return read_stops(self._read(self.sessions[session].id, starts=True).records)

    def _read(self, name: str, *, starts: bool) -> JournalFile:
        try:
            return read_journal(session_folder(self._state, name), starts=starts, project=self._project)
        except OSError:
            return JournalFile((), 1)

    def _summarize(self, name: str, changed: float) -> SessionSummary | None:
        journal = self._read(name, starts=time.time() - changed < MAX_RUN_S)
        days, stops = count_days(journal.records), read_stops(journal.records[-MAX_RECORDS:])
        if not stops:
            return None
        main = [stop for stop in stops if not stop.agent]
        running = tuple(run for stop in stops for run in stop.runs if run.outcome == "running")
        path = os.path.join(session_folder(self._state, name), TRANSCRIPT_FILE)
        answers = (one_line(each.answer, MAX_TITLE_CHARS) for each in main[::-1] if each.answer)
        named = (str(each["host"]) for each in reversed(journal.records) if each.get("host"))
        return SessionSummary(
            id=name,
            host=next(named, OWN_HOST if os.path.exists(path) else ""),
            project=str(journal.records[-1].get("project") or ""),
            title=title_and_project(path)[0] or next(answers, ""),
            gates=tuple(dict.fromkeys(gate for day in days.values() for gate in day.gates)),
            last=changed if running else stops[-1].time,
            stops=sum(day.numbers["stops"] for day in days.values()),
            subagents=len({str(each["agent_id"]) for each in journal.records if each.get("agent_id")}),
            results=tuple(stop.result for stop in main[-MAX_RESULTS:]),
            running=running,
            ended=main[-1] if main else None,
            days=days,
            damaged=journal.damaged,
        )

    def newest_first(self) -> list[SessionSummary]:
        return sorted(self.sessions.copy().values(), key=lambda each: (-each.last, each.id))


# Stops


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
