"""A target: how an input is made from a seed, and what must hold for it."""

import os
import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_CPU_S = 3.0  # for one input, however hostile it is
MAX_SHOWN_CHARS = 400  # of an input that failed


@dataclass(frozen=True)
class Target:
    """`check` raises AssertionError where an invariant is violated; any other exception is a failure as well."""

    name: str
    make: Callable[[random.Random], Any]
    check: Callable[[Any], object]
    max_cpu_s: float = MAX_CPU_S


@dataclass(frozen=True)
class Failure:
    target: str
    seed: int
    why: str
    shown: str  # the input, truncated

    def __str__(self) -> str:
        again = f"python -m bench.fuzz --only {self.target} --seed {self.seed} --inputs 1"
        return f"{self.target}: {self.why}\n  input: {self.shown}\n  again: {again}"


@dataclass
class Result:
    inputs: int = 0
    cpu_s: float = 0.0
    worst_s: float = 0.0
    worst_seed: int = 0
    failures: list[Failure] = field(default_factory=list)


def run_input(target: Target, seed: int, result: Result) -> None:
    """Make the input of this seed, check it, and add what was found to the result."""
    value = target.make(random.Random(seed))
    started = _cpu_s()
    why = _problem(target, value)
    seconds = _cpu_s() - started
    if why is None and seconds > target.max_cpu_s:
        why = f"it took {seconds:.1f} s of CPU time, the limit is {target.max_cpu_s:g} s"
    result.inputs += 1
    result.cpu_s += seconds
    if seconds > result.worst_s:
        result.worst_s, result.worst_seed = seconds, seed
    if why is not None:
        result.failures.append(Failure(target.name, seed, why, _show(value)))


def _cpu_s() -> float:
    """Return the CPU time of this process, with its threads, and of the processes that it has waited for."""
    times = os.times()
    return time.process_time() + times.children_user + times.children_system


class TookTooLong(BaseException):
    """Raised by a timer into an input that does not end; no `except Exception` may hide it."""


def _problem(target: Target, value: Any) -> str | None:
    try:
        target.check(value)
    except (Exception, TookTooLong) as error:
        return f"{type(error).__name__}: {error}{_place(error)}"
    return None


def _place(error: BaseException) -> str:
    """Return the innermost line of Turngate in the traceback."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if "/src/turngate/" in frame.filename
    ]
    return f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""


def _show(value: Any) -> str:
    shown = repr(value)
    return (
        shown if len(shown) <= MAX_SHOWN_CHARS else f"{shown[:MAX_SHOWN_CHARS]}… ({len(shown):,} characters)"
    )
