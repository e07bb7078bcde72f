"""What each gate has done over many sessions: how often it ran, passed and blocked, how long it took, what it cost."""

import functools
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turngate.history.journals import RecordedRun, RecordedStop, read_journal, read_stops

# What is counted of a gate. `kept`: passes because the agent said that the user wants it this way; `overridden`: turns that
# ended although it blocked; `wrong`: blocks that a person marked.
NUMBERS = tuple("runs passed blocked would_block kept not_enforced overridden wrong tokens".split())
OF_STOPS = ("stops", "blocked", "cached", "overridden")  # cached: all had passed on the same files
PLOTTED = ("runs", "blocked", "not_enforced")
STOPS = ""  # in place of a gate: the stops themselves
_QUARTER_S = 900

Row = dict[str, Any]  # the numbers of a gate, or of all, as JSON


@dataclass
class Count:
    """What one gate has done on one day, or what happened at the stops."""

    numbers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    cost_usd: float = 0

    def add(self, run: RecordedRun, *, is_overridden: bool) -> None:
        numbers = self.numbers
        numbers["runs"] += 1
        numbers[run.label] += 1
        if run.block:
            numbers["wrong"] += bool(run.wrong)
            numbers["overridden"] += is_overridden
        if run.kept or run.tokens:
            numbers["kept"] += run.kept
            numbers["tokens"] += run.tokens
            self.cost_usd += run.cost_usd or 0
        self.seconds.append(run.seconds)


Days = Mapping[str, Mapping[str, Count]]  # by the date in local time, such as 2026-11-09, and the gate


def count_journal(folder: str, since: float, project: str | None) -> tuple[Days, int]:
    """Count the stops of one session, and the lines of its journal that could not be read."""
    journal = read_journal(folder, since, project=project)
    return count_days(read_stops(journal.records)), journal.damaged


def count_days(stops: Iterable[RecordedStop]) -> Days:
    """Count the stops of one session."""
    days = defaultdict[str, defaultdict[str, Count]](lambda: defaultdict(Count))
    for stop in stops:
        day, is_overridden = days[date_of(stop.time)], stop.result in ("overridden", "accepted")
        if stop.result == "running":
            continue
        of_stops = day[STOPS].numbers
        of_stops["stops"] += 1
        of_stops["blocked"] += bool(stop.blocked_by)  # advice also lets the agent continue
        of_stops["cached"] += stop.result == "cached"
        of_stops["overridden"] += is_overridden
        for run in stop.runs:
            if run.outcome != "skipped":  # it was not meant to run, or is among the next
                day[run.gate].add(run, is_overridden=is_overridden)
        for gate, _ in stop.skipped:
            day[gate].numbers["not_enforced"] += 1
    return {date: dict(day) for date, day in days.items()}


def merge_days(counts: Sequence[Days], damaged: int = 0) -> Row:
    """Add up the days of sessions; `gates` has a row for each gate, the one that blocked most first."""
    found = defaultdict[str, list[tuple[str, Count]]](list)
    for date, day in sorted((each for days in counts for each in days.items()), key=lambda each: each[0]):
        for gate, count in day.items():
            found[gate].append((date, count))
    of_stops = found.pop(STOPS, [])
    total = sum((count.numbers for _, count in of_stops), Counter[str]())
    return {
        "sessions": sum(any(STOPS in day for day in days.values()) for days in counts),
        **{name: total[name] for name in OF_STOPS},
        "first": of_stops[0][0] if of_stops else None,
        "last": of_stops[-1][0] if of_stops else None,
        "damaged": damaged,
        "gates": sorted(
            (_row(gate, dated) for gate, dated in found.items()),
            key=lambda row: (-row["blocked"], -row["runs"], row["gate"]),
        ),
    }


def _row(gate: str, dated: Sequence[tuple[str, Count]]) -> Row:
    numbers, plots = (
        Counter[str](),
        {name: defaultdict[str, Counter[str]](Counter) for name in ("weeks", "days")},
    )
    for date, count in dated:
        numbers.update(count.numbers)
        plotted = {name: count.numbers[name] for name in PLOTTED}
        plots["weeks"][_week_of(date)].update(plotted)
        plots["days"][date].update(plotted)
    seconds = sorted(each for _, count in dated for each in count.seconds)
    return {
        "gate": gate,
        **{name: numbers[name] for name in NUMBERS},
        "median_seconds": round(statistics.median(seconds), 4) if seconds else None,
        "p95_seconds": seconds[math.ceil(0.95 * len(seconds)) - 1] if seconds else None,
        "cost_usd": sum(count.cost_usd for _, count in dated) or None,
        **plots,
    }


def date_of(when: float) -> str:
    """Return the date in local time; no time zone changes days within a quarter of an hour."""
    return _date_of(when // _QUARTER_S)


@functools.cache
def _date_of(quarter: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(quarter * _QUARTER_S))


@functools.cache
def _week_of(date: str) -> str:
    return time.strftime("%G-W%V", time.strptime(date, "%Y-%m-%d"))
