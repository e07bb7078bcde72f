"""What each gate has done over many sessions: how often it ran, passed and blocked, how long it took, what it cost."""

import functools
import math
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from turngate.core.constants import AGENT_KEEPS, STOP_EVENTS
from turngate.history.journals import Record, hook_name, is_time
from turngate.tracing import LABELS

OVERRIDDEN = ("capped", "stalled")  # how a turn ends although a hook blocks
NOT_ENFORCED = tuple(outcome for outcome, label in LABELS.items() if label == "not_enforced")
# What is counted of a gate. `kept`: passes because the agent said that the user wants it this way; `overridden`: turns that
# ended although it blocked; `wrong`: blocks that a person marked.
NUMBERS = tuple("runs passed blocked would_block kept not_enforced overridden wrong tokens".split())
OF_STOPS = ("stops", "blocked", "cached", "overridden")  # cached: all had passed on the same files
_QUARTER_S = 900

Row = dict[str, Any]  # the numbers of a gate, or of all, as JSON


@dataclass
class GateCount:
    """What one gate has done on one day."""

    numbers: Counter[str] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    def add_run(self, record: Record) -> None:
        outcome = record.get("outcome")
        if outcome == "skipped":  # it was not meant to run, or the verdict names it
            return
        self.numbers["runs"] += 1
        self.numbers[LABELS.get(str(outcome), "others")] += 1
        if notice := record.get("notice"):
            self.numbers["kept"] += AGENT_KEEPS in str(notice)
        if isinstance(seconds := record.get("seconds"), (int, float)):
            self.seconds.append(seconds)
        if isinstance(spent := record.get("evaluation"), dict):
            used = [spent.get("input_tokens"), spent.get("output_tokens")]
            self.numbers["tokens"] += sum(number for number in used if isinstance(number, int))
            if isinstance(cost := spent.get("cost_usd"), int | float):
                self.costs.append(cost)


@dataclass
class DayCount:
    """What the stops of one session have done on one day."""

    numbers: Counter[str] = field(default_factory=Counter)
    gates: defaultdict[str, GateCount] = field(default_factory=lambda: defaultdict(GateCount))


Days = Mapping[str, DayCount]  # by the date in local time, such as 2026-11-09


def count_days(records: Iterable[Record]) -> Days:
    """Count the records of one session."""
    days, marks = defaultdict[str, DayCount](DayCount), dict[str, Record]()
    blocked_by, quarter = dict[str, list[str]](), -1.0
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
                names = record.get("blocked_by")
                blocked_by[event] = list(map(str, names)) if isinstance(names, list) else []
                day.numbers["stops"] += 1
                day.numbers["blocked"] += bool(blocked_by[event])
                for hook, _ in skipped_gates(record):
                    day.gates[hook].numbers["not_enforced"] += 1
            case "turn_end" if record.get("ended_by") in OVERRIDDEN:
                day.numbers["overridden"] += 1
                for hook in blocked_by.get(event, ()):
                    day.gates[hook].numbers["overridden"] += 1
            case "cached":
                day.numbers.update(("stops", "cached"))
            case "mark":
                marks[str(record.get("block"))] = record
            case _:
                pass
    for mark in marks.values():
        marked = days.get(date_of(mark["blocked_at"])) if is_time(mark.get("blocked_at")) else None
        if marked and (gate := str(mark.get("gate"))) in marked.gates:
            marked.gates[gate].numbers["wrong"] += bool(mark.get("wrong"))
    return days


def merge_days(counts: Sequence[Days], damaged: int = 0) -> Row:
    """Add up the days of sessions; `gates` has a row for each gate, the one that blocked most first."""
    days = [(date, day) for session in counts for date, day in session.items()]
    dates = [date for date, day in days if day.numbers["stops"]]
    total = Counter[str]()
    for _, day in days:
        total.update(day.numbers)
    rows = [_row(gate, dated) for gate, dated in by_gate(counts).items()]
    return {
        "sessions": sum(any(day.numbers["stops"] for day in session.values()) for session in counts),
        **{name: total[name] for name in OF_STOPS},
        "first": min(dates, default=None),
        "last": max(dates, default=None),
        "damaged": damaged,
        "gates": sorted(rows, key=lambda row: (-row["blocked"], -row["runs"], row["gate"])),
    }


def by_gate(counts: Iterable[Days]) -> Mapping[str, list[tuple[str, GateCount]]]:
    """Return what each gate did, with the dates."""
    found = defaultdict[str, list[tuple[str, GateCount]]](list)
    for session in counts:
        for date, day in session.items():
            for gate, count in day.gates.items():
                found[gate].append((date, count))
    return found


def _row(gate: str, dated: Sequence[tuple[str, GateCount]]) -> Row:
    numbers, weeks = Counter[str](), defaultdict[str, Counter[str]](Counter)
    for date, count in sorted(dated, key=lambda each: each[0]):
        numbers.update(count.numbers)
        weeks[_week_of(date)].update({name: count.numbers[name] for name in ("runs", "blocked")})
    seconds = sorted(each for _, count in dated for each in count.seconds)
    costs = [each for _, count in dated for each in count.costs]
    return {
        "gate": gate,
        **{name: numbers[name] for name in NUMBERS},
        "median_seconds": round(statistics.median(seconds), 4) if seconds else None,
        "p95_seconds": seconds[math.ceil(0.95 * len(seconds)) - 1] if seconds else None,
        "cost_usd": sum(costs) if costs else None,
        "weeks": {name: dict(week) for name, week in weeks.items()},
    }


def skipped_gates(verdict: Record) -> list[tuple[str, str]]:
    """Return the gates that were skipped against the intent of their author, and why; of them there is no other record."""
    found = verdict.get("unenforced")
    entries = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return [
        (str(each.get("hook")), str(each.get("why") or ""))
        for each in entries
        if each.get("outcome") == "skipped"
    ]


def date_of(when: float) -> str:
    """Return the date in local time; no time zone changes days within a quarter of an hour."""
    return _date_of(when // _QUARTER_S)


@functools.cache
def _date_of(quarter: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(quarter * _QUARTER_S))


@functools.cache
def _week_of(date: str) -> str:
    return time.strftime("%G-W%V", time.strptime(date, "%Y-%m-%d"))
