"""Matchers: a list of names, or a regular expression whose search time is bounded before it is used."""

import math
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

MAX_PATTERN_CHARS = 5_000
MAX_SUBJECT_CHARS = 1_000  # names of tools and agent types are far shorter
MIN_SUBJECT_CHARS = 64  # a pattern that cannot search a name of this length in time is invalid
MAX_SEARCH_STEPS = 12_000_000  # in the worst case: a fraction of a second

_parser: Any = import_module("re._parser")  # no type stubs


@dataclass(frozen=True)
class NameMatcher:
    """Matches exactly these names."""

    names: tuple[str, ...]

    def matches(self, subject: str) -> bool:
        return subject in self.names


@dataclass(frozen=True)
class RegexMatcher:
    """Matches where the pattern is found anywhere in the name.

    A name that is too long to be searched in bounded time matches: one hook too many is the safer mistake.
    """

    pattern: re.Pattern[str]
    max_chars: int

    def matches(self, subject: str) -> bool:
        return len(subject) > self.max_chars or self.pattern.search(subject) is not None


@dataclass(frozen=True)
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
            max_chars = _searchable_chars(_count_sequence(_parser.parse(matcher)))
            if max_chars < MIN_SUBJECT_CHARS:
                return InvalidMatcher(_UNBOUNDED)
            return RegexMatcher(re.compile(matcher), max_chars)
    except (re.error, RecursionError, OverflowError):
        return InvalidMatcher("is not a valid regular expression")


_UNBOUNDED = "can backtrack without bound (it repeats a part that itself repeats or is ambiguous)"


@dataclass(frozen=True)
class _PathCount:
    """Upper bound of the number of ways in which a part can match: `times` × n**`power` for a name of length n."""

    power: int = 0
    times: float = 1

    @property
    def is_one(self) -> bool:
        return self.power == 0 and self.times == 1

    def then(self, other: "_PathCount") -> "_PathCount":
        return _PathCount(self.power + other.power, _cap(self.times * other.times))


def _cap(times: float) -> float:
    """Replace a count above the limit by infinity, which keeps the numbers small."""
    return times if times <= MAX_SEARCH_STEPS else math.inf


_ONE, _ENDLESS = _PathCount(), _PathCount(0, math.inf)


def _searchable_chars(paths: _PathCount) -> int:
    """Return how long a name may be. A search starts anew at each of its characters."""
    power = paths.power + 1
    if power > MAX_SEARCH_STEPS.bit_length() or paths.times > MAX_SEARCH_STEPS:
        return 0
    lengths = (MAX_SUBJECT_CHARS, 500, 250, 125, MIN_SUBJECT_CHARS)
    return next((n for n in lengths if math.comb(n + power, power) * paths.times <= MAX_SEARCH_STEPS), 0)


def _count_sequence(parts: Iterable[tuple[Any, Any]]) -> _PathCount:
    """Multiply the counts: each path of one part combines with each path of the next."""
    paths = _ONE
    for operation, value in parts:
        paths = paths.then(_count_operation(str(operation), value))
    return paths


def _count_operation(operation: str, value: Any) -> _PathCount:
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
        case _:
            return _ONE


def _count_repeat(minimum: int, maximum: int, body: Any) -> _PathCount:
    inner = _count_sequence(body)
    if maximum <= 1:
        return _PathCount(inner.power, inner.times + (minimum < maximum))
    if body.getwidth()[0] == 0:
        return _ENDLESS
    if inner.is_one:
        return _ONE if minimum == maximum else _PathCount(power=1)
    if maximum > MIN_SUBJECT_CHARS:
        return _ENDLESS
    return _PathCount(inner.power * maximum, _cap((inner.times + (minimum < maximum)) ** maximum))


def _count_branches(branches: Iterable[Any]) -> _PathCount:
    """Branches that start with different characters count once: only one of them gets past its first character."""
    counts = [_count_sequence(branch or ()) for branch in branches]
    starts = [_first_characters(branch or ()) for branch in branches]
    plain = [start for start in starts if start is not None]
    disjoint = len(plain) == len(starts) and len(frozenset().union(*plain)) == sum(map(len, plain))
    times = [count.times for count in counts]
    return _PathCount(max(count.power for count in counts), max(times) if disjoint else sum(times))


def _first_characters(parts: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    """Return the characters that a branch can start with, or None where they are not a few literals."""
    for operation, value in parts:
        match str(operation), value:
            case "LITERAL", code:
                return frozenset(chr(code).lower())
            case "IN", [*members] if all(str(kind) == "LITERAL" for kind, _ in members):
                return frozenset(chr(code).lower() for _, code in members)
            case "SUBPATTERN", (_, _, _, inner):
                return _first_characters(inner)
            case _:
                return None
    return None
