"""What each gate has done over many sessions: how often it ran, passed and blocked, how long it took, what it cost."""

import functools
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.constants import AGENT_KEEPS, STOP_EVENTS
from turngate.core.verdict.hook_run import HookOutcome
from turngate.history.journals import Record, block_id, hook_name

OVERRIDDEN = ("capped", "stalled")  # how a turn ends although a hook blocks
_QUARTER_S = 900
_NOT_ENFORCED: tuple[HookOutcome, ...] = ("failed", "timeout", "waiting")


@frozen
class Week:
    """One calendar week of a gate."""

    runs: int
    blocked: int


@frozen
class GateStats:
    """What one gate has done. `kept`: passes because the agent said that the user wants it this way; `overridden`: turns that ended although it blocked; `wrong`: blocks that a person marked."""

    gate: str
    runs: int
    passed: int
    blocked: int
    would_block: int
    kept: int
    not_enforced: int
    overridden: int
    wrong: int
    median_seconds: float | None
    p95_seconds: float | None
    tokens: int
    cost_usd: float | None
    weeks: Mapping[str, Week]  # by the name of the week, such as 2026-W46


@frozen
class Stats:
    """All gates, those that blocked most first. `cached`: stops that needed no hook, because all had passed on the same files."""

    sessions: int
    stops: int
    blocked: int
    cached: int
    overridden: int
    first: float | None
    last: float | None
    damaged: int
    gates: tuple[GateStats, ...]


@frozen
class Block:
    """One block of a hook. `wrong`: what a person said of it, if anything; `why`: in which words."""

    id: str
    time: float
    session: str
    project: str
    gate: str
    reason: str
    wrong: bool | None = None
    why: str = ""


def collect_blocks(records: Iterable[Record]) -> list[Block]:
    """Return the blocks of one session, oldest first, with the last mark of each."""
    marks = dict[str, tuple[bool, str]]()
    blocks = list[Record]()
    for record in records:
        if record.get("kind") == "mark":
            marks[str(record.get("block"))] = bool(record.get("wrong")), str(record.get("why") or "")
        elif record.get("kind") == "hook" and record.get("outcome") == "block":
            blocks.append(record)
    return [_block(record, marks) for record in blocks]


def _block(record: Record, marks: Mapping[str, tuple[bool, str]]) -> Block:
    name = block_id(record)
    session, project, reason = (str(record.get(key) or "") for key in ("session_id", "project", "reason"))
    return Block(
        name,
        record["time"],
        session,
        project,
        hook_name(record.get("hook") or {}),
        reason,
        *marks.get(name, (None, "")),
    )


def collect_stats(sessions: Iterable[tuple[Iterable[Record], int]]) -> Stats:
    """Count the records of all sessions; with each come the lines of its journal that could not be read."""
    total, gates = _Total(), dict[str, _GateCount]()
    for records, damaged in sessions:
        total.damaged += damaged
        total.sessions += _add_session(records, total, gates)
    rows = sorted((count.stats(name) for name, count in gates.items()), key=_most_blocked_first)
    return Stats(
        total.sessions,
        total.stops,
        total.blocked,
        total.cached,
        total.overridden,
        total.first,
        total.last,
        total.damaged,
        tuple(rows),
    )


def _most_blocked_first(row: GateStats) -> tuple[int, int, str]:
    return -row.blocked, -row.runs, row.gate


class _Total:
    def __init__(self) -> None:
        self.sessions = self.stops = self.blocked = self.cached = self.overridden = self.damaged = 0
        self.first: float | None = None
        self.last: float | None = None

    def add_stop(self, when: float) -> None:
        self.stops += 1
        self.first = when if self.first is None else min(self.first, when)
        self.last = when if self.last is None else max(self.last, when)


class _GateCount:
    def __init__(self) -> None:
        self.outcomes = Counter[str]()
        self.skipped = self.kept = self.overridden = self.wrong = self.tokens = 0
        self.cost: float | None = None
        self.seconds = list[float]()
        self.weeks = defaultdict[str, Counter[str]](Counter)

    def add_run(self, record: Record) -> None:
        outcome = str(record.get("outcome"))
        if outcome == "skipped":  # it was not meant to run, or the verdict names it
            return
        self.outcomes[outcome] += 1
        self.kept += AGENT_KEEPS in str(record.get("notice"))
        self.weeks[_week(record["time"])][outcome] += 1
        if isinstance(seconds := record.get("seconds"), int | float):
            self.seconds.append(seconds)
        spent = record.get("evaluation")
        if isinstance(spent, dict):
            self.tokens += sum(_number(spent.get(name)) for name in ("input_tokens", "output_tokens"))
            if isinstance(cost := spent.get("cost_usd"), int | float):
                self.cost = (self.cost or 0.0) + cost

    def stats(self, gate: str) -> GateStats:
        outcomes = self.outcomes
        ordered = sorted(self.seconds)
        return GateStats(
            gate,
            runs=outcomes.total(),
            passed=outcomes["allow"] + outcomes["advise"],
            blocked=outcomes["block"],
            would_block=outcomes["would_block"],
            kept=self.kept,
            not_enforced=sum(outcomes[name] for name in _NOT_ENFORCED) + self.skipped,
            overridden=self.overridden,
            wrong=self.wrong,
            median_seconds=round(statistics.median(ordered), 4) if ordered else None,
            p95_seconds=ordered[math.ceil(0.95 * len(ordered)) - 1] if ordered else None,
            tokens=self.tokens,
            cost_usd=self.cost,
            weeks={name: Week(each.total(), each["block"]) for name, each in sorted(self.weeks.items())},
        )


def _add_session(records: Iterable[Record], total: _Total, gates: dict[str, _GateCount]) -> bool:
    """Add the records of one session; return whether an agent stopped in it."""
    records = tuple(records)
    stops_before, blocked_by = total.stops, dict[str, list[str]]()
    for record in records:
        event = record.get("event", "Stop")  # the end of a turn of `turngate run` has none
        if event not in STOP_EVENTS:
            continue
        match record.get("kind"):
            case "hook":
                _count(gates, hook_name(record.get("hook") or {})).add_run(record)
            case "verdict":
                total.add_stop(record["time"])
                names = record.get("blocked_by")
                blocked_by[event] = list(map(str, names)) if isinstance(names, list) else []
                total.blocked += bool(blocked_by[event])
                for hook in _skipped(record):
                    _count(gates, hook).skipped += 1
            case "turn_end" if record.get("ended_by") in OVERRIDDEN:
                total.overridden += 1
                for hook in blocked_by.get(event, ()):
                    _count(gates, hook).overridden += 1
            case "cached":
                total.add_stop(record["time"])
                total.cached += 1
            case _:
                pass
    if any(record.get("kind") == "mark" for record in records):
        for block in collect_blocks(records):
            _count(gates, block.gate).wrong += bool(block.wrong)
    return total.stops > stops_before


def _count(gates: dict[str, _GateCount], gate: str) -> _GateCount:
    count = gates.get(gate)
    if count is None:
        count = gates[gate] = _GateCount()
    return count


def _skipped(verdict: Record) -> list[str]:
    """Return the gates that were skipped against the intent of their author; of them there is no other record."""
    found = verdict.get("unenforced")
    entries = found if isinstance(found, list) else []
    return [
        str(each.get("hook"))
        for each in entries
        if isinstance(each, dict) and each.get("outcome") == "skipped"
    ]


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


@functools.cache
def _week_of(quarter: int) -> str:
    return time.strftime("%G-W%V", time.localtime(quarter * _QUARTER_S))


def _week(when: float) -> str:
    """Return the calendar week, in local time; no time zone changes days within a quarter of an hour."""
    return _week_of(int(when // _QUARTER_S))
