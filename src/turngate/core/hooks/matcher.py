"""Matchers: a list of names, or a regular expression whose search time is bounded before it is used."""

import math
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import zip_longest
from typing import Any, NamedTuple

from turngate._frozen_dataclass import frozen

MAX_PATTERN_CHARS = 1_000
MAX_SUBJECT_CHARS = 1_000  # names of tools and agent types are far shorter
MIN_SUBJECT_CHARS = 64  # a pattern that cannot search a name of this length in time is invalid
MAX_SEARCH_STEPS = 30_000_000  # in the worst case: a fraction of a second
MAX_POWER = 24  # of the length of a name, in the number of steps
MAX_RANGE_CHARS = 1_000  # in a set, where case is ignored: the compiler then visits each of its characters

_parser: Any = import_module("re._parser")  # no type stubs


@frozen
class NameMatcher:
    names: tuple[str, ...]

    def matches(self, subject: str) -> bool:
        return subject in self.names


@frozen
class RegexMatcher:
    """Matches where the pattern is found anywhere in the name, and every name that is too long: one hook too many is the safer mistake."""

    pattern: re.Pattern[str]
    max_chars: int

    def matches(self, subject: str) -> bool:
        return len(subject) > self.max_chars or self.pattern.search(subject) is not None


@frozen
class InvalidMatcher:
    """Matches nothing, so its hooks never run; `why` completes a message: "its matcher '(' is not a valid …"."""

    why: str

    def matches(self, _: str) -> bool:
        return False


# Claude Code: "only [A-Za-z0-9_ ,|-] -> exact or list; otherwise unanchored regex" (measured).
_NAMES_ONLY = re.compile(r"[A-Za-z0-9_\- ,|]+")


@lru_cache(maxsize=4096)
def read_matcher(matcher: str) -> NameMatcher | RegexMatcher | InvalidMatcher:
    if _NAMES_ONLY.fullmatch(matcher):
        return NameMatcher(tuple(name.strip() for name in re.split(r"[,|]", matcher) if name.strip()))
    if len(matcher) > MAX_PATTERN_CHARS:
        return InvalidMatcher(f"is longer than {MAX_PATTERN_CHARS:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a pattern that causes a FutureWarning is still valid
            parsed = _parser.parse(matcher)
            max_chars = _searchable_chars(_count_sequence(parsed).steps)
            if _IGNORES_CASE.search(matcher) and max(_range_widths(parsed), default=0) > MAX_RANGE_CHARS:
                return InvalidMatcher(f"ignores case in a range of over {MAX_RANGE_CHARS:,} characters")
            return RegexMatcher(re.compile(matcher), max_chars)
    except _UnboundedSearch:
        return InvalidMatcher(_UNBOUNDED)
    except (re.error, RecursionError, OverflowError):
        return InvalidMatcher("is not a valid regular expression")


_UNBOUNDED = "can backtrack without bound (it repeats a part that itself repeats or is ambiguous)"
_IGNORES_CASE = re.compile(r"\(\?[a-zA-Z]*i")


def _range_widths(part: Any) -> Iterator[int]:
    match part:
        case (operation, (int(first), int(last))) if str(operation) == "RANGE":
            yield last - first + 1
        case tuple() | list() | _parser.SubPattern():
            for inner in part:
                yield from _range_widths(inner)
        case _:
            return


class _UnboundedSearch(Exception):
    """Raised for a pattern whose search has no acceptable bound."""


class _Cost(NamedTuple):
    """Upper bounds for one part of a pattern and a name of length n.

    The part can match in `times` × n**`power` ways. To try all of them takes `steps`, the coefficients of a polynomial
    in n. Each power of n stands for a position in the name, and positions in a match never decrease, so n**power is
    at most the number of combinations with repetition.
    """

    power: int = 0
    times: float = 1
    steps: tuple[float, ...] = (1,)

    @property
    def matches_in_one_way(self) -> bool:
        return self.power == 0 and self.times == 1


def _searchable_chars(steps: Sequence[float]) -> int:
    """Return how long a name may be. A search starts anew at each of its characters."""
    for chars in (MAX_SUBJECT_CHARS, 500, 250, 125, MIN_SUBJECT_CHARS):
        total = sum(times * math.comb(chars + power, power) for power, times in enumerate(steps, 1))
        if total <= MAX_SEARCH_STEPS:
            return chars
    raise _UnboundedSearch


def _repeat_steps(steps: Sequence[float], power: int, times: float) -> tuple[float, ...]:
    """Return the steps of a part that is tried `times` × n**`power` times."""
    if power + len(steps) > MAX_POWER or times > MAX_SEARCH_STEPS:
        raise _UnboundedSearch
    return (0,) * power + tuple(times * step for step in steps)


def _add_steps(*parts: Sequence[float]) -> tuple[float, ...]:
    return tuple(map(sum, zip_longest(*parts, fillvalue=0)))


def _count_sequence(parts: Iterable[tuple[Any, Any]]) -> _Cost:
    """Combine the parts: each way to match one of them is followed by all ways to match the next."""
    power, times, steps = _Cost(steps=())
    for operation, value in parts:
        part = _count_operation(str(operation), value)
        steps = _add_steps(steps, _repeat_steps(part.steps, power, times))
        power, times = power + part.power, times * part.times
    return _Cost(power, times, steps)


def _count_operation(operation: str, value: Any) -> _Cost:
    match operation:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _count_repeat(*value)
        case "BRANCH":
            return _count_branches(value[1])
        case "SUBPATTERN":
            return _count_sequence(value[3])
        case "ATOMIC_GROUP":
            return _count_sequence(value)
        case "ASSERT" | "ASSERT_NOT":
            return _count_sequence(value[1])
        case "GROUPREF_EXISTS":
            return _count_branches(value[1:])
        case "GROUPREF":
            return _Cost(steps=(0, 1))
        case "IN":
            return _Cost(steps=(len(value),))
        case _:
            return _Cost()


def _count_repeat(minimum: int, maximum: int, body: Any) -> _Cost:
    inner = _count_sequence(body)
    if maximum <= 1:
        return inner._replace(times=inner.times + (minimum < maximum))
    if body.getwidth()[0] == 0:
        raise _UnboundedSearch
    if inner.matches_in_one_way and minimum == maximum:
        return _Cost(steps=_repeat_steps(inner.steps, 0, min(maximum, MAX_SUBJECT_CHARS)))
    if inner.matches_in_one_way:
        return _Cost(power=1, steps=_repeat_steps(inner.steps, 1, 1))
    if maximum > MIN_SUBJECT_CHARS or inner.power * maximum > MAX_POWER:
        raise _UnboundedSearch
    times = (inner.times + (minimum < maximum)) ** maximum
    power = inner.power * maximum
    return _Cost(power, times, _repeat_steps(inner.steps, power, times * maximum))


def _count_branches(branches: Sequence[Any]) -> _Cost:
    costs = [_count_sequence(branch or ()) for branch in branches]
    steps = _add_steps((len(costs),), *(cost.steps for cost in costs))
    return _Cost(max(cost.power for cost in costs), sum(cost.times for cost in costs), steps)
