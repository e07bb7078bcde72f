"""What each gate has done over many sessions: how often it ran, passed and blocked, how long it took, what it cost."""

import functools
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.constants import AGENT_KEEPS, STOP_EVENTS
from turngate.core.verdict.hook_run import HookOutcome
from turngate.history.journals import Record, block_id, hook_name

OVERRIDDEN = ("capped", "stalled")  # how a turn ends although a hook blocks
_QUARTER_S = 900
NOT_ENFORCED: tuple[HookOutcome, ...] = ("failed", "timeout", "waiting")


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
    counts, damaged = list[Days](), 0
    for records, lines in sessions:
        counts.append(count_days(records))
        damaged += lines
    return merge_days(counts, damaged)


class GateCount:
    """What one gate has done on one day."""

    def __init__(self) -> None:
        self.outcomes = Counter[str]()
        self.skipped = self.kept = self.overridden = self.wrong = self.tokens = 0
        self.cost: float | None = None
        self.seconds = list[float]()

    @property
    def not_enforced(self) -> int:
        return sum(self.outcomes[name] for name in NOT_ENFORCED) + self.skipped

    def add_run(self, record: Record) -> None:
        outcome = record.get("outcome")
        if outcome == "skipped":  # it was not meant to run, or the verdict names it
            return
        self.outcomes[str(outcome)] += 1
        if notice := record.get("notice"):
            self.kept += AGENT_KEEPS in str(notice)
        if isinstance(seconds := record.get("seconds"), (int, float)):
            self.seconds.append(seconds)
        spent = record.get("evaluation")
        if isinstance(spent, dict):
            self.tokens += sum(_number(spent.get(name)) for name in ("input_tokens", "output_tokens"))
            if isinstance(cost := spent.get("cost_usd"), int | float):
                self.cost = (self.cost or 0.0) + cost

    def add(self, other: "GateCount") -> None:
        self.outcomes.update(other.outcomes)
        self.seconds += other.seconds
        for name in ("skipped", "kept", "overridden", "wrong", "tokens"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.cost is not None:
            self.cost = (self.cost or 0.0) + other.cost

    def stats(self, gate: str, weeks: Mapping[str, Week]) -> GateStats:
        outcomes = self.outcomes
        ordered = sorted(self.seconds)
        return GateStats(
            gate,
            runs=outcomes.total(),
            passed=outcomes["allow"] + outcomes["advise"],
            blocked=outcomes["block"],
            would_block=outcomes["would_block"],
            kept=self.kept,
            not_enforced=self.not_enforced,
            overridden=self.overridden,
            wrong=self.wrong,
            median_seconds=round(statistics.median(ordered), 4) if ordered else None,
            p95_seconds=ordered[math.ceil(0.95 * len(ordered)) - 1] if ordered else None,
            tokens=self.tokens,
            cost_usd=self.cost,
            weeks=weeks,
        )


class DayCount:
    """What the stops of one session have done on one day."""

    def __init__(self) -> None:
        self.stops = self.blocked = self.cached = self.overridden = 0
        self.first, self.last = math.inf, -math.inf
        self.gates = defaultdict[str, GateCount](GateCount)

    def add_stop(self, when: float) -> None:
        self.stops += 1
        self.first, self.last = min(self.first, when), max(self.last, when)


Days = Mapping[str, DayCount]  # by the date in local time, such as 2026-11-09


def count_days(records: Iterable[Record]) -> Days:
    """Count the records of one session."""
    records, days = tuple(records), defaultdict[str, DayCount](DayCount)
    blocked_by, is_marked, quarter = dict[str, list[str]](), False, -1.0
    for record in records:
        event = record.get("event", "Stop")  # the end of a turn of `turngate run` has none
        if event not in STOP_EVENTS:
            continue
        if record["time"] // _QUARTER_S != quarter:
            quarter = record["time"] // _QUARTER_S
            day = days[_date_of(quarter)]
        match record.get("kind"):
            case "hook":
                day.gates[str(hook_name(record.get("hook") or {}))].add_run(record)
            case "verdict":
                day.add_stop(record["time"])
                names = record.get("blocked_by")
                blocked_by[event] = list(map(str, names)) if isinstance(names, list) else []
                day.blocked += bool(blocked_by[event])
                for hook in _skipped(record):
                    day.gates[hook].skipped += 1
            case "turn_end" if record.get("ended_by") in OVERRIDDEN:
                day.overridden += 1
                for hook in blocked_by.get(event, ()):
                    day.gates[hook].overridden += 1
            case "cached":
                day.add_stop(record["time"])
                day.cached += 1
            case "mark":
                is_marked = True
            case _:
                pass
    for block in collect_blocks(records) if is_marked else ():
        days[date_of(block.time)].gates[block.gate].wrong += bool(block.wrong)
    return days


def merge_days(counts: Sequence[Days], damaged: int = 0) -> Stats:
    """Add up the days of sessions."""
    gates, weeks = defaultdict[str, GateCount](GateCount), defaultdict[str, dict[str, Week]](dict)
    days = [each for session in counts for each in session.items()]
    for date, day in days:
        week = _week_of(date)
        for gate, count in day.gates.items():
            gates[gate].add(count)
            if runs := count.outcomes.total():
                before = weeks[gate].get(week, Week(0, 0))
                weeks[gate][week] = Week(before.runs + runs, before.blocked + count.outcomes["block"])
    rows = [count.stats(gate, dict(sorted(weeks[gate].items()))) for gate, count in gates.items()]
    stopped = [day for _, day in days if day.stops]
    return Stats(
        sum(any(day.stops for day in session.values()) for session in counts),
        sum(day.stops for _, day in days),
        sum(day.blocked for _, day in days),
        sum(day.cached for _, day in days),
        sum(day.overridden for _, day in days),
        min((day.first for day in stopped), default=None),
        max((day.last for day in stopped), default=None),
        damaged,
        tuple(sorted(rows, key=lambda row: (-row.blocked, -row.runs, row.gate))),
    )


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


def date_of(when: float) -> str:
    """Return the date in local time; no time zone changes days within a quarter of an hour."""
    return _date_of(when // _QUARTER_S)


@functools.cache
def _date_of(quarter: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(quarter * _QUARTER_S))


@functools.cache
def _week_of(date: str) -> str:
    return time.strftime("%G-W%V", time.strptime(date, "%Y-%m-%d"))
