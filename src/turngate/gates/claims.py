"""The claims in an agent's answer: "all tests pass", "it builds", "lint is clean".

A sentence that asks, denies, plans, or sets a condition is not a claim, nor is what is quoted. Where it is unclear, there
is no claim: an agent that is held for something it did not say cannot do anything about it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from turngate.core.frozen import frozen
from turngate.core.text import one_line
from turngate.gates.markdown_tasks import read_lines

MAX_ANSWER_CHARS = 50_000  # of its end
MAX_CLAIM_CHARS = 120


@frozen
class Claim:
    kind: str
    text: str


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_WORDS = r"(?:\s+[\w'’/-]+){0,3}?\s+"  # up to three words between two parts
_PASSES = (
    r"(?:pass(?:es|ed)?(?!\s+(?:rate|through))|passing|succeeds?|succeeded|"
    r"(?:is|are|was|were|comes?|came|runs?|ran)\s+(?:\w+\s+){0,2}?(?:passing|green|clean|successful|happy|fine|ok))\b"
)
_NO_ERRORS = r"(?:reports?|reported|shows?|found|finds|has|have)\s+(?:no|zero|0)\s+(?:\w+\s+)?(?:errors?|issues?|warnings?|problems?)\b"
_TESTS = r"\b(?:tests?|test[ -]?suites?|suite|specs?|pytest|jest|vitest|rspec)\b"
_LINT = (
    r"\b(?:lint(?:er|ers|ing)?|ruff|eslint|flake8|pylint|clippy|biome|golangci-lint|rubocop|shellcheck|prettier|"
    r"pre-commit)\b"
)
_TYPES = r"\b(?:type[ -]?check(?:s|er|ing)?|types|mypy|pyright|tsc)\b"
_BUILT = r"(?:builds|compiles)(?=\s*(?:$|[,.;:!)]|and\b|again\b|now\b|successfully|cleanly|fine|ok\b|without|with no))"

CLAIMS: Mapping[str, re.Pattern[str]] = {
    "tests": _pattern(
        rf"{_TESTS}(?:{_WORDS}|\s+){_PASSES}",
        r"\b(?:all|everything)(?:\s+(?:is|are|now|tests?|checks?))*\s+(?:green|passing|passes|pass|passed)\b",
        r"\b\d+ (?:tests? )?pass(?:ed|ing)\b",
        r"\btests?\s*:?\s*[✅✔✓]",
        r"\btests?:\s*(?:pass(?:ed|ing)?|green|ok)\b",
    ),
    "build": _pattern(
        r"\b(?:it|code|project|app|application|everything|package|crate|solution|frontend|backend|site|workspace)\s+"
        rf"(?:\w+\s+)?{_BUILT}",
        rf"\b(?:build|compilation)(?:{_WORDS}|\s+)(?:works|{_PASSES})",
        r"\b(?:builds|compiles|compiled|built)\s+(?:successfully|cleanly|fine|without (?:any )?(?:errors|warnings))",
        r"\bsuccessfully (?:builds|compiles|compiled|built)\b",
    ),
    "lint": _pattern(
        rf"{_LINT}(?:{_WORDS}|\s+)(?:{_PASSES}|{_NO_ERRORS})",
        r"\bno (?:lint(?:er|ing)?|ruff|eslint|clippy)\s+(?:errors?|issues?|warnings?|problems?)\b",
        r"\blint[- ]clean\b",
        r"\blints cleanly\b",
    ),
    "types": _pattern(
        rf"{_TYPES}(?:{_WORDS}|\s+)(?:{_PASSES}|{_NO_ERRORS})",
        r"\bno type(?:[ -]check(?:ing)?)? errors?\b",
        r"\btype[- ]checks (?:cleanly|fine|without errors)\b",
    ),
}

_QUOTED = re.compile(
    r"\"[^\"]{0,500}\"|“[^”]{0,500}”|«[^»]{0,500}»|(?<!\w)'[^']{0,500}'(?!\w)|‘[^’]{0,500}’(?!\w)"
)
_INLINE_CODE = re.compile(r"(?<!`)(`+)(?!`)(.*?)(?<!`)\1(?!`)")
_CLAUSE_END = re.compile(
    r"(?<=[.!?])\s+|\s*;\s+|,?\s+\b(?:but|however|although|though|except)\b,?\s+|,\s+and\s+|\s+[–—-]\s+"
)
_HARMLESS = _pattern(
    r"\b(?:0|no|zero|without(?: any)?)\s+(?:\w+\s+){0,2}?"
    r"(?:failed|failures?|failing|errors?|warnings?|issues?|problems?|regressions?)\b",
    r"\bas expected\b",
)
# What makes a clause something else than a claim, anywhere in it,
_NOT_A_CLAIM = _pattern(
    r"\?\s*$",
    r"\b(?:not|never|cannot|no longer|unable|neither|nor|none|hardly)\b|\b\w+n['’]t\b|\bno (?:\w+ )?tests?\b",
    r"\bfail(?:s|ed|ing|ures?)?\b|\bbroken\b|\berrors?\b",
    r"\b(?:will|shall|would|should|could|might|may|must|going to|let me|let['’]s|please|hopefully|probably|likely)\b",
    r"\b\w+['’]ll\b|\b(?:needs?|needed|have|has|wants?|wanted|plans?|tr(?:y|ies|ied)|aims?|hopes?|expects?) (?:\w+ ){0,3}to\b",
    r"\b(?:hope|assum\w+|presum\w+|ensures?|ensuring|make sure|making sure|verify|verifying|so that|in order)\b",
    r"\b(?:check|checks|checking|see|seeing|confirm|confirming) (?:that|if|whether)\b",
    r"\b(?:if|unless|until|once|provided|in case|whether|as long as|assuming)\b",
    r"\b(?:before|previously|earlier|originally|used to|already passed)\b",
    r"\b(?:some|most|many|half|several|almost|nearly|partially|mostly)\b",
    r"\b(?:you|they|he|she|user) (?:said|say|says|claim|claims|asked)\b",
)
# or before what it claims.
_NOT_BEFORE_A_CLAIM = _pattern(
    r"\bwhen(?:ever)?\b",
    r"\b(?:make|making|get|getting|let|help|keep|keeping|to|for|run|running)\b(?:\s+\w+){0,2}\s*$",
)
_PART_OF = re.compile(r"\b(\d+)\s*(?:/|of|out of)\s*(?:the\s+)?(\d+)\b")


def find_claims(answer: str, patterns: Mapping[str, re.Pattern[str]]) -> list[Claim]:
    """Return the first claim of each kind."""
    found: dict[str, Claim] = {}
    for clause in _clauses(answer[-MAX_ANSWER_CHARS:], patterns.values()):
        for kind, pattern in patterns.items():
            if kind not in found and _claims(clause, pattern):
                found[kind] = Claim(kind, one_line(clause.strip(" .,:*_#-"), MAX_CLAIM_CHARS))
    return list(found.values())


def _clauses(answer: str, patterns: Iterable[re.Pattern[str]]) -> Iterator[str]:
    every = tuple(patterns)

    def unwrap(code: re.Match[str]) -> str:
        """Keep the name of a program; what would be a claim is quoted."""
        return " … " if any(pattern.search(code[2]) for pattern in every) else code[2]

    for line in read_lines(answer):
        text = _INLINE_CODE.sub(unwrap, line.text)
        text = _QUOTED.sub(" … ", text).replace("*", "").replace("|", " ; ")
        yield from _CLAUSE_END.split(one_line(text))


def _claims(clause: str, pattern: re.Pattern[str]) -> bool:
    found = pattern.search(clause)
    if found is None:
        return False
    part = _PART_OF.search(clause)
    if part is not None and part[1] != part[2]:
        return False
    if _NOT_A_CLAIM.search(_HARMLESS.sub("…", clause)):
        return False
    return _NOT_BEFORE_A_CLAIM.search(clause, 0, found.start()) is None
