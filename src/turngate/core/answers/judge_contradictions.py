"""Find what contradicts the approval of a judge: it may quote an approval, or mean a block."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from turngate.core.answers.misplaced import ALLOWS, DENIALS, FLAGS, parts_of
from turngate.core.text import describe_json, one_line, replace_surrogates


class FoundObject(NamedTuple):
    """A JSON object in a text."""

    start: int
    end: int
    value: Mapping[str, Any]
    is_verdict: bool


_DECISIVE = frozenset({"ok", "decision", "permissiondecision", "behavior", "continue", "hookspecificoutput"})


def repeated_key(pairs: Sequence[tuple[str, Any]]) -> str | None:
    """Return a decisive key that an object has twice with different values."""
    value = dict(pairs)
    if len(value) == len(pairs):
        return None
    return next((key for key, each in pairs if key.lower() in _DECISIVE and each != value[key]), None)


def describe_repeated(key: str) -> str:
    return f"its answer contradicts itself: `{key}` is there twice, with different values"


def contradiction(text: str, objects: Iterable[FoundObject]) -> str | None:
    """Return what in the answer of a judge contradicts that it approves, or None."""
    prose, place = "", 0
    for start, end, value, is_verdict in objects:
        if found := contradicting_part(value, is_verdict=is_verdict):
            return found
        prose, place = f"{prose}{text[place:start]}\n", end
    said = _block_in_prose().search(prose + text[place:])
    if said is None:
        return None
    words = one_line(replace_surrogates(said["open"] or said["said"]), 80)
    return f"its answer contradicts itself: it approves, but its text says {words!r}"


def contradicting_part(value: Mapping[str, Any], *, is_verdict: bool = True) -> str | None:
    """Return which part of an object that approves restricts; in an object that is quoted, only a decision does."""
    budget = iter(range(_MAX_PARTS))
    for key, part in (pair for name, member in value.items() for pair in parts_of(name, member, budget)):
        if _is_restriction(key.replace("_", "").lower(), part, is_verdict=is_verdict):
            name = describe_json(key)[1:-1]
            return f"its answer contradicts itself: it approves, but `{name}` is {describe_json(part)}"
    return None


_MAX_PARTS = 200_000  # as many as characters


def _is_restriction(key: str, part: object, *, is_verdict: bool) -> bool:
    if part is None or isinstance(part, Mapping | list):
        return False
    word = str(part).strip().lower()
    if key == "ok":
        return part != 1 and word not in ("true", "yes")
    if key == "continue":
        return word == "false"
    if key in ("decision", "permissiondecision", "behavior"):
        return word not in ALLOWS
    return is_verdict and (word in DENIALS or word == str(FLAGS.get(key)).lower())


@cache  # compiled for the first approval of a judge
def _block_in_prose() -> re.Pattern[str]:
    """Find a line or a sentence that is a block and nothing else, and an object with a block that cannot be parsed."""
    return re.compile(_BLOCK_IN_PROSE, re.IGNORECASE | re.MULTILINE | re.VERBOSE)


_WORDS = "|".join(sorted(DENIALS))
_LABEL = r"""(?:decision|verdict|answer|judge?ment|conclusion|result|outcome|correction|final) [*_`"']{0,3} [ \t]{0,3}
    (?:is\b)? [ \t]{0,3} (?:[:=\u2192-]>?)? [ \t*_`"']{1,9}"""
_END = r"""[*_`"']*[ \t]*(?:$|[.!](?:\s|$)|</)"""
_BLOCK_IN_PROSE = rf"""
    (?P<open> \{{ [^{{}}]{{0,1000}}? ["']? \b(?:
        ok ["']? \s*:\s* ["']? (?:false|no)
      | (?:permission)?(?:decision|behavior) ["']? \s*:\s* ["']? (?:{_WORDS})
    )\b )
    | ^ (?:</?\w{{1,20}}>){{0,4}} [ \t*_`"'\#>.,;:)+\u2022\u2013\u2014-]* (?:\d{{1,3}}[.)][ \t*_`"']*)? (?:(?:my|the|final)[ ]+)*
    (?P<said>
        (?:{_LABEL})?
        (?: (?:block|deny) [*_`"']* [ \t]* (?: : | [\u2013\u2014-](?!\w)) | (?:{_WORDS}) (?={_END}) [.!]? )
      | (?:{_LABEL}) (?:{_WORDS}) (?= [*_`"']* (?: [,;:] | [ \t]+ (?:because|since|as|until|due)\b ) )
      | (?:{_LABEL})? (?:ok|approved?|allow(?:ed)?) [*_`"']{{0,3}} [ \t]{{0,3}} (?:[:=]|is\b) [ \t*_`"']{{0,9}}
        (?:false|no) (?={_END} | [*_`"']*[ \t]*[,;])
    )
    """
