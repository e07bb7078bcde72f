"""What a matcher means: a list of names, or a regular expression that is held against a name and surely comes to an end."""

import math
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

LONGEST = 5_000  # characters of an expression
SUBJECT_MOST = 1_000  # characters; the names of tools and agents are far shorter
STEPS_MOST = 12_000_000  # of a search, at worst: a fraction of a second
COMMON = 64  # characters of a name that every expression must be able to search

_parser: Any = import_module("re._parser")  # it has no types


@dataclass(frozen=True)
class Names:
    """Exactly one of these."""

    names: tuple[str, ...]

    def fits(self, subject: str) -> bool:
        return subject in self.names


@dataclass(frozen=True)
class Expression:
    """Found anywhere in the name. One that is too long to be searched in time fits: better one hook too many."""

    pattern: re.Pattern[str]
    longest: int  # characters

    def fits(self, subject: str) -> bool:
        return len(subject) > self.longest or self.pattern.search(subject) is not None


@dataclass(frozen=True)
class InvalidMatcher:
    """It can not be held against anything, so its hooks are never asked, and that is said."""

    why: str

    def fits(self, _: str) -> bool:
        return False


# Claude Code: "only [A-Za-z0-9_ ,|-] -> exact or list; otherwise unanchored regex" (measured).
_NAMES_ONLY = re.compile(r"[A-Za-z0-9_\- ,|]+")


@lru_cache(maxsize=4096)
def read_matcher(matcher: str) -> Names | Expression | InvalidMatcher:
    if _NAMES_ONLY.fullmatch(matcher):
        return Names(tuple(name.strip() for name in re.split(r"[,|]", matcher) if name.strip()))
    if len(matcher) > LONGEST:
        return InvalidMatcher(f"is longer than {LONGEST:,} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd is not wrong
            ways = _ways(_parser.parse(matcher))
            longest = _searchable(ways)
            return InvalidMatcher(_ENDLESS) if longest < COMMON else Expression(re.compile(matcher), longest)
    except (re.error, RecursionError, OverflowError):
        return InvalidMatcher("is not a valid regular expression")


_ENDLESS = "can backtrack without bound (it repeats a part that itself repeats or is ambiguous)"


@dataclass(frozen=True)
class _Ways:
    """In how many ways a part can match, at most: `times` × a power of the name's length."""

    power: int = 0
    times: float = 1

    @property
    def only_one(self) -> bool:
        return self.power == 0 and self.times == 1

    def then(self, other: "_Ways") -> "_Ways":
        return _Ways(self.power + other.power, _bounded(self.times * other.times))


def _bounded(times: float) -> float:
    """More than there are steps is as bad as for ever, and keeps the numbers small."""
    return times if times <= STEPS_MOST else math.inf


ONE, ENDLESS = _Ways(), _Ways(0, math.inf)


def _searchable(ways: _Ways) -> int:
    """How long a name may be; a search begins anew at each of its characters."""
    power = ways.power + 1
    if power > STEPS_MOST.bit_length() or ways.times > STEPS_MOST:
        return 0
    lengths = (SUBJECT_MOST, 500, 250, 125, COMMON)
    return next((n for n in lengths if math.comb(n + power, power) * ways.times <= STEPS_MOST), 0)


def _ways(parts: Iterable[tuple[Any, Any]]) -> _Ways:
    """Of a sequence: each way of one part goes with each way of the next."""
    found = ONE
    for operation, value in parts:
        found = found.then(_ways_of(str(operation), value))
    return found


def _ways_of(operation: str, value: Any) -> _Ways:
    match operation:
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            return _repeated(*value)
        case "BRANCH":
            return _branched(value[1])
        case "SUBPATTERN":
            return _ways(value[3])
        case "ATOMIC_GROUP":
            return _ways(value)
        case "ASSERT" | "ASSERT_NOT":
            return _ways(value[1])
        case "GROUPREF_EXISTS":
            return _branched(value[1:])
        case _:
            return ONE


def _repeated(least: int, most: int, body: Any) -> _Ways:
    inner = _ways(body)
    if most <= 1:
        return _Ways(inner.power, inner.times + (least < most))
    if body.getwidth()[0] == 0:
        return ENDLESS
    if inner.only_one:
        return ONE if least == most else _Ways(power=1)
    if most > COMMON:
        return ENDLESS
    return _Ways(inner.power * most, _bounded((inner.times + (least < most)) ** most))


def _branched(branches: Iterable[Any]) -> _Ways:
    """Branches that begin with different characters are one way: only one of them gets past the first."""
    found = [_ways(branch or ()) for branch in branches]
    starts = [_start(branch or ()) for branch in branches]
    known = [start for start in starts if start is not None]
    apart = len(known) == len(starts) and len(frozenset().union(*known)) == sum(map(len, known))
    times = [ways.times for ways in found]
    return _Ways(max(ways.power for ways in found), max(times) if apart else sum(times))


def _start(parts: Iterable[tuple[Any, Any]]) -> frozenset[str] | None:
    """The characters that it can begin with, where they are few and plain."""
    for operation, value in parts:
        match str(operation), value:
            case "LITERAL", code:
                return frozenset(chr(code).lower())
            case "IN", [*members] if all(str(kind) == "LITERAL" for kind, _ in members):
                return frozenset(chr(code).lower() for _, code in members)
            case "SUBPATTERN", (_, _, _, inner):
                return _start(inner)
            case _:
                return None
    return None
