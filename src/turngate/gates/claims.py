"""The claims in an agent's answer: "all tests pass", "it builds", "lint is clean".

A sentence that asks, denies, plans, or sets a condition is not a claim, nor is what is quoted or what others report. Where it is unclear, there
is no claim: an agent that is held for something it did not say cannot do anything about it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from turngate._frozen_dataclass import frozen
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
# It passes something to something: "the tests pass a client to the service".
_OBJECT = (
    r"(?:rate|through|by|to|into|along)\b|"
    r"(?:an?|the|its|their|his|her|our|my|your|this|that|these|those|it|them|each|every|both|null|true|false)\b(?!\s+(?:\w+\s+)?time\b)"
)
_STYLE = r"and\s+(?:readable|easy|simple|clear|concise|minimal|small|short|well|consistent|tidy|maintainable|modern)\b"
_PASSES = (
    rf"(?:pass(?:es|ed)?(?!\s+(?:{_OBJECT}))|passing|succeeds?|succeeded|"
    rf"(?:is|are|was|were|comes?|came|runs?|ran)\s+(?:\w+\s+){{0,2}}?(?:passing|green|clean(?!\s+{_STYLE})|successful|happy|fine|ok))\b"
)
_NO_ERRORS = r"(?:reports?|reported|shows?|found|finds|has|have)\s+(?:no|zero|0)\s+(?:\w+\s+)?(?:errors?|issues?|warnings?|problems?)\b"
_TESTS = r"\b(?:tests?|test[ -]?suites?|suite|specs|spec(?!\s+is\b)|pytest|jest|vitest|rspec)\b"
_LINT = (
    r"\b(?:lint(?:er|ers|ing)?|ruff|eslint|flake8|pylint|clippy|biome|golangci-lint|rubocop|shellcheck|prettier|"
    r"pre-commit)\b"
)
_TYPES = r"\b(?:type[ -]?check(?:s|er|ing)?|types|mypy|pyright|tsc)\b"
_WORKS = r"works(?=\s*(?:$|[,.;!)]|and\b|again\b|now\b|fine\b|correctly\b|without\b|as expected\b))"
_BUILT = r"(?:builds|compiles)(?=\s*(?:$|[,.;:!)]|and\b|again\b|now\b|successfully|cleanly|fine|ok\b|without|with no))"

CLAIMS: Mapping[str, re.Pattern[str]] = {
    "tests": _pattern(
        rf"{_TESTS}(?:{_WORDS}|\s+){_PASSES}",
        r"\b(?:all|everything)(?:\s+(?:is|are|now|tests?|checks?))*\s+(?:green|passing|passes|pass|passed)\b",
        rf"\b\d+ (?:tests? )?pass(?:ed|ing)\b(?!\s+(?:{_OBJECT}))",
        r"\btests?\s*:?\s*[✅✔✓]",
        r"\btests?:\s*(?:pass(?:ed|ing)?|green|ok)\b",
    ),
    "build": _pattern(
        r"\b(?:it|code|project|app|application|everything|package|crate|solution|frontend|backend|site|workspace)\s+"
        rf"(?:\w+\s+)?{_BUILT}",
        rf"\b(?:build|compilation)(?:{_WORDS}|\s+)(?:{_WORKS}|{_PASSES})",
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
_SAYS = r"sa(?:y|ys|id)|claim(?:s|ed)?|report(?:s|ed)?|show(?:s|ed)?|state[sd]?|mention(?:s|ed)?|tells?|told"
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
    r"\b(?:tests?|specs?) (?:that|which)\b",
    # What others report
    rf"\b(?:you|they|he|she|user) (?:asked|wrote|{_SAYS})\b",
    rf"\b(?:CI|README|docs?|documentation|changelog|logs?|issue|ticket|comment|reviewer|colleague|subagent|agent) (?:\w+ )?(?:{_SAYS})\b",
    r"\baccording to\b|\bupstream\b|\bon (?:main|master)\b",
    r"\b(?:your|their|user['’]s) (?:\w+ )?(?:CI|logs?|output|report|screenshot|message|run)\b",
)
# or before what it claims.
_NOT_BEFORE_A_CLAIM = _pattern(
    r"\b(?:when(?:ever)?|how)\b",
    r"\b(?:make|making|get|getting|let|help|keep|keeping|to|for|run|running)\b(?:\s+\w+){0,2}\s*$",
)

# A line that announces what is to be done, not what is: a heading, or `Acceptance criteria:`.
_ANNOUNCED = _pattern(
    r"\b(?:plan|plans|goals?|objectives?|criteria|criterion|next|remaining|outstanding|requirements?|to[ -]?dos?|expected|"
    r"expectations?|definition of done|done when|still (?:to|open))\b"
)
_ANNOUNCED_LIST = _pattern(_ANNOUNCED.pattern, r"\b(?:steps|tasks|checklist|milestones?)\b")
_REPORTED = _pattern(
    r"(?<!definition of )\b(?:done(?! when)|did|took|taken|completed?|finished|fulfilled|met|satisfied|results?|verified|checked|ran)\b"
)
_PREFIX = re.compile(r"[^.:!?]{1,60}:(?=\s)")
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+(?:\[(.?)\]\s)?|\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
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

    for line in _reported_lines(answer):
        text = _INLINE_CODE.sub(unwrap, line)
        text = _QUOTED.sub(" … ", text).replace("*", "").replace("|", " ; ")
        yield from _CLAUSE_END.split(_without_announced(one_line(text)))


def _reported_lines(answer: str) -> Iterator[str]:
    """Yield the lines, except open checkboxes and the items of a list that is announced as a plan."""
    is_plan = False
    for line in read_lines(answer):
        item = _ITEM.match(line.text)
        words = line.text.rstrip(" *_")
        if line.is_heading or words.endswith(":"):
            is_plan = _announces(words, _ANNOUNCED_LIST)
        elif item is None:
            is_plan = bool(line.headings) and _announces(line.headings[-1], _ANNOUNCED_LIST)
        mark = item[1] if item else None
        if mark in (" ", "") or (item and is_plan and mark is None):
            continue
        yield line.text


def _without_announced(text: str) -> str:
    """Return a line without a first sentence such as `Goal: all tests pass.`."""
    prefix = _PREFIX.match(text)
    if prefix is None or not _announces(prefix[0], _ANNOUNCED):
        return text
    _, *others = _SENTENCE_END.split(text, maxsplit=1)
    return "".join(others)


def _announces(text: str, pattern: re.Pattern[str]) -> bool:
    return pattern.search(text) is not None and _REPORTED.search(text) is None


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
