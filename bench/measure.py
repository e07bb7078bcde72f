"""Measures code and its floor in turns, so that a noisy machine disturbs both alike."""

import resource
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

Timed = Callable[[], object]


@dataclass(frozen=True)
class Row:
    what: str
    ours: float  # seconds, the median
    floor: float
    max_ratio: float | None = None  # upper bound of the ratio
    min_ratio: float | None = None  # or its lower bound
    unit: str = ""  # empty: seconds

    @property
    def ratio(self) -> float:
        return self.ours / self.floor

    @property
    def holds(self) -> bool:
        return (
            self.ratio <= self.max_ratio
            if self.max_ratio is not None
            else self.ratio >= (self.min_ratio or 0)
        )


def processor_time() -> float:
    """Return the seconds that processes have used that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def interleaved(
    ours: Timed,
    floor: Timed,
    *,
    rounds: int,
    inner: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    prepare: Timed = lambda: None,
) -> tuple[float, float]:
    """Return the medians of both, in seconds per call. `prepare` is called before each round and not measured."""
    times: tuple[list[float], list[float]] = ([], [])
    prepare()
    for work in (ours, floor):
        work()  # warm up
    for number in range(rounds):
        prepare()
        pairs = list(zip(times, (ours, floor), strict=True))
        for durations, work in pairs if number % 2 else reversed(pairs):
            started = clock()
            for _ in range(inner):
                work()
            durations.append((clock() - started) / inner)
    return statistics.median(times[0]), statistics.median(times[1])


def show(rows: list[Row]) -> None:
    for row in rows:
        bound = f"≤ {row.max_ratio:g}" if row.max_ratio is not None else f"≥ {row.min_ratio:g}"
        status = "ok  " if row.holds else "MISS"
        values = [
            f"{figure:.0f}{row.unit}" if row.unit else _format_seconds(figure)
            for figure in (row.ours, row.floor)
        ]
        print(f"{status}  {row.ratio:8.2f}  {bound:<7} {' / '.join(values):<22} {row.what}", flush=True)


def _format_seconds(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"
