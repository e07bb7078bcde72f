"""What an agent's answer says, roughly: whether it asks the user, is open about what is missing, and what it claims."""

import re
from collections.abc import Iterator, Mapping

from turngate._frozen_dataclass import frozen
from turngate.core.text import one_line
from turngate.gates.markdown_tasks import read_lines

MAX_ANSWER_CHARS = 20_000  # of its end
MAX_SENTENCE_CHARS = 1000
MAX_CLAIM_CHARS = 120
MAX_AFTER_QUESTION = 400  # characters, such as a list of what can be chosen


def _pattern(*alternatives: str) -> re.Pattern[str]:
    return re.compile("|".join(alternatives), re.IGNORECASE)


_PLAN = _pattern(
    r"\b(?:plan|goals?|criteria|next|remaining|to[ -]?dos?|requirements?|definition of done|open)\b"
)
_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s|\s+")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？؟])[\s)*_\"'”]+|(?<=[。！？])")
_QUOTED = re.compile(r"\"[^\"]{0,500}\"|“[^”]{0,500}”|«[^»]{0,500}»")
_EMPHASIS = re.compile(r"[*`]+|(?<!\w)_+|_+(?!\w)")

_NO_TROUBLE = _pattern(
    r"\b(?:0|no|zero|none|without(?: any)?|nothing)\s+(?:\w+\s+){0,2}?(?:fail\w*|errors?|warnings?|issues?|problems?|regressions?|missing|left)\b",
    r"\b(?:was|were|been|had|that|which) (?:\w+ )?fail(?:ing|s)?\b",
)
_SUBJECTS = {
    "tests": r"tests?|test suite|suite|specs|pytest|jest|vitest|rspec",
    "lint": r"lint(?:er|ing)?|ruff(?: check)?|eslint|flake8|clippy|rubocop|biome",
    "types": r"types|type[ -]?check(?:s|ing|er)?|mypy|pyright|tsc|typescript",
    "build": r"build|compilation|compiles|builds",
}
_CHECKED = r"(?:run|ran|running|execut\w+|tested|testing|test (?:it|this|them)|verif\w+|check(?:ed|ing)?|confirm\w*|tried|try|buil[dt]|compil\w+)"
_IS_OPEN = _pattern(
    rf"(?:\b(?:not|never|cannot|unable to|without|yet to|no way to|impossible to)|n['’]t)\b[^.,;:]{{0,40}}?\b{_CHECKED}\b",
    r"\b(?:untested|unverified|unchecked|incomplete|unfinished|WIP|partial(?:ly)?|work in progress)\b",
    r"\b(?:still|yet|currently|now) (?:\w+ )?(?:fail\w*|missing|broken|open|red|to do)\b|\bfail(?:s|ing)\b|\b(?:do|does)(?: not|n['’]t) pass\b",
    r"(?:\bnot|n['’]t)(?: \w+)? (?:done|finish\w*|complete\w*|implement\w*|work(?:ing)?|there yet)\b",
    rf"\b(?:{'|'.join(_SUBJECTS.values())})\b[^.;]{{0,20}}?\b(?:(?:has|have|reports?|shows?|prints?) (?:[\w-]+ ){{0,3}}?(?:errors?|warnings?|problems?|issues?)|(?:is|are|stays?) (?:still )?red)\b",
    r"\bunrelated to (?:this|these|my|our|the) (?:changes?|work|edits?|task)\b",
    r"\b(?:remains?|left) (?:to (?:do|be)|open|undone)\b|\bI (?:have )?stopped\b",
    # German, French, Spanish, Portuguese, Russian, Chinese, Japanese
    r"\bnicht (?:\w+ )?(?:ausgeführt|ausführen|getestet|testen|geprüft|laufen)|\bungetestet|\bpas (?:\w+ )?(?:exécut|test|lanc|vérifi)|\bnon testé",
    r"\bno (?:he |pude )(?:podido )?(?:ejecuta|proba)|\bsin probar|\bnão (?:\w+ )?(?:execut|test|rod)|\bне (?:\w+ )?(?:запуск|провер|тестир)",
    r"(?:没有|未|无法)(?:能)?(?:运行|测试|验证|执行)|(?:実行|テスト|確認)(?:して|でき)\w{0,3}(?:ない|ません)",
)
_IS_DONE = _pattern(
    r"(?<!not )(?<!n't )(?<!before )\b(?:done|finished|complete[d]?|implemented|fixed|solved|works|ready|verified|passes|passed|passing|green)\b",
    r"\ball (?:\w+ )?(?:set|good|pass)\b|[✅✔✓]|\b(?:fertig|erledigt|terminé|listo|hecho|pronto|готово)\b|完成|完了|修复|しました|통과",
)
# It offers more instead of asking for what it needs.
_OFFER = _pattern(
    r"\b(?:shall|should|may|can|could|do you want|would you like|want|like) (?:I|me|me to|us to)\b.*"
    r"\b(?:also|continue|go on|going|proceed|carry on|rest|remaining|next|instead|open a|commit|push)\b",
    r"\b(?:anything|something) else\b|\bwould you like me to\b|\bwant me to\b",
)


def read_sentences(answer: str) -> list[str]:
    """Return the sentences of an answer, without code, quotations, and the lists below `Next steps:` and the like."""
    lines, is_plan = [], False
    for line in read_lines(answer[-MAX_ANSWER_CHARS:]):
        if line.is_heading or line.text.rstrip(" *_").endswith(":"):
            is_plan = _PLAN.search(line.text) is not None
        if not (is_plan and _ITEM.match(line.text)):
            lines.append(line.text)
    texts = (_EMPHASIS.sub("", _QUOTED.sub("…", line)) for line in lines)
    parts = (part for text in texts for part in _SENTENCE_END.split(one_line(text)))
    return [part[:MAX_SENTENCE_CHARS] for part in parts if part.strip()]


def asks_user(answer: str) -> bool:
    """Return whether an answer ends with a question that the agent needs an answer to, and does not say that the work is done."""
    sentences = read_sentences(answer)
    after = 0
    for place, sentence in reversed([*enumerate(sentences)]):
        if sentence.rstrip(" )*_").endswith(("?", "？", "؟")):
            return not _OFFER.search(sentence) and not any(map(says_done, sentences[:place]))
        after += len(sentence)
        if after > MAX_AFTER_QUESTION:
            break
    return False


def says_done(text: str) -> bool:
    return _IS_DONE.search(text) is not None


def find_admission(answer: str) -> str | None:
    """Return the words with which an answer says openly that something was not checked, fails or is missing."""
    for sentence in read_sentences(answer):
        if _IS_OPEN.search(_NO_TROUBLE.sub(" ", sentence)):
            return one_line(sentence.strip(" -#|"), MAX_CLAIM_CHARS)
    return None


# Claims that can be compared with what happened


@frozen
class Claim:
    kind: str
    text: str
    is_whole: bool = False  # of all tests
    path: str = ""  # of a file that was written


_PASSES = (
    r"(?:(?:pass(?:es|ed)?|succeeds?|succeeded|works)(?= *(?:$|[,.;:!)|✅✔✓]|and\b|now\b|again\b|with\b|without\b|on my|cleanly|successfully|as expected))|passing|green|clean"
    r"(?! and)|successful|[✅✔✓]|(\d+)/\d+\b|(?:has|have|reports?|finds?|with|without|:) *(?:\d+ pass\w*|(?:any |no |0 )(?:\w+ )?(?:errors?|issues?|problems?|warnings?)))"
)
_CLAIMS: Mapping[str, re.Pattern[str]] = {
    kind: _pattern(
        rf"\b(?:{names})\b[ :|]{{0,3}}(?:[\w'’-]{{1,20}}[ ,:|]{{1,3}}){{0,4}}?{_PASSES}",
        rf"\bno (?:{names})\w* (?:errors?|issues?|problems?|warnings?)\b",
    )
    for kind, names in _SUBJECTS.items()
}
_ACTS = {kind: _pattern(rf"(?<!not )\b{kind}\b") for kind in ("committed", "pushed")}
_WROTE = re.compile(
    r"\b(?:wrote|written|saved|created|generated|added)\b.{0,40}?`([\w./-]+\.\w+)`", re.IGNORECASE
)
_WHOLE = _pattern(r"\b(?:all|whole|full|entire|complete|every)\b")
_CLAUSE_END = re.compile(r",?\s+\b(?:but|however|although|though|except)\b,?\s+|\s*;\s+|,\s+and\s+")
_NOT_A_CLAIM = _pattern(
    r"\?\s*$|^\W*\[ ?\]|\b(?:not|never|cannot|no longer|should|would|will|could|might|may|must|if|unless|until|once|when|before|previously)\b|n['’]t\b",
    r"\b(?:needs?|expect|hope\w*|hopefully|please|make sure|let me|as long as|how|most|some|other|goals?|plan|steps?|criteria|definition)\b|['’]ll\b",
    r"\b(?:you|they|CI|README|docs?|user|log|upstream|subagent)\b(?: \w+){0,2} (?:sa(?:y|ys|id)|report|show|wrote|claim|mention|are|is)\w*|\baccording to\b",
    r"\bno tests? pass|\bdone:|\bfail(?:s|ed|ing)?\b|\b(?!(\d+) ?(?:/|of) ?\1\b)\d+ ?(?:/|of) ?\d+\b",
)


def find_claims(answer: str) -> Iterator[Claim]:
    """Yield what an answer claims; a clause that denies, plans or sets a condition claims nothing."""
    for clause in (clause for sentence in read_sentences(answer) for clause in _CLAUSE_END.split(sentence)):
        if not _NOT_A_CLAIM.search(re.sub(r"\b(?:0|no) fail\w*", "", clause)):
            shown = one_line(clause.strip(" -#|."), MAX_CLAIM_CHARS)
            for kind, pattern in (*_CLAIMS.items(), *_ACTS.items()):
                if pattern.search(clause):
                    yield Claim(kind, shown, _WHOLE.search(clause) is not None)
    for found in _WROTE.finditer(answer[-MAX_ANSWER_CHARS:]):
        yield Claim("written", one_line(found[0], MAX_CLAIM_CHARS), path=found[1])
