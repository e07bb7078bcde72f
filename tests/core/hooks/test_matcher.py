import string

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import subagent_stop
from tests.support.measures import cpu_limit
from turngate.core.answers.report_types import HookFailed
from turngate.core.hooks.kinds import CommandHook
from turngate.core.hooks.matcher import MIN_SUBJECT_CHARS, InvalidMatcher, RegexMatcher, read_matcher
from turngate.core.hooks.selection import Plan, matches, plan
from turngate.core.settings import Rule, Settings

ENDLESS = [
    "(a+)+$",
    "(a*)*$",
    "(?:a|a)*$",
    "(a|ab)*$",
    "(.*a){20}$",
    "(x+x+)+y",
    "(\\w+\\s?)*!",
    "((a|b|ab)+)?$",
    "a?" * 30 + "a" * 30,
    "(a?){40}a{40}",
    "(?:){1000000000}.",
    "(?=(a+)+$).",
    ".*" * 12 + "x",
    "(" * 40 + "a?b" + "){60}" * 40,
    "(x)?((?(1)a|aa))*$",
    "(?>(a|ab))*$",
    "(foo|bar)+",
    ".*.*.*(?:" + "|".join(chr(0x4E00 + number) for number in range(400)) + ")!",
    "a*a*a*" + "[ab]" * 100 + "!",
    ".*.*.*(?:" + "|".join(2 * letter for letter in string.ascii_lowercase) + ")!",
]


@pytest.mark.parametrize("matcher", ENDLESS)
def test_an_expression_that_can_backtrack_without_bound_is_invalid(matcher: str) -> None:
    why = "can backtrack without bound (it repeats a part that itself repeats or is ambiguous)"
    assert read_matcher(matcher) == InvalidMatcher(why)


FINE = [
    "mcp__.*__.*",
    "(?>ab)+",
    "^(Edit|Write|MultiEdit)$",
    "(foo|bar)?x",
    ".*",
    ".+Tool$",
    "[A-Z][a-z]+_[0-9]+",
    "^mcp__",
    ".*a.*b.*c.*d",
    ".*.*.*.*!",
    "a+b*c+.*!",
    "(?i)bash.*",
    "Notebook(Edit)?|Write.",
    "(a{3}b)+",
    "(?!Bash).*",
    "[^_]+__[^_]+__[^_]+",
    "[一-龥]+",
    "(?i)größe.*",
    "^(?:" + "|".join(f"mcp__server_{number}__.*" for number in range(40)) + ")$",
]


@pytest.mark.parametrize("matcher", FINE)
def test_an_ordinary_expression_is_searched_in_bounded_time(matcher: str) -> None:
    meaning = read_matcher(matcher)
    assert isinstance(meaning, RegexMatcher)
    for subject in (
        "a" * meaning.max_chars,
        "ab" * (meaning.max_chars // 2),
        "mcp__" * (meaning.max_chars // 5),
    ):
        with cpu_limit(10):  # unbounded backtracking would take years
            meaning.matches(subject)
    assert meaning.max_chars >= MIN_SUBJECT_CHARS


_PARTS = st.sampled_from(
    ["a", "b", ".", "[ab]", "[^b]", "s", "ſ", r"\w", "a*", ".*?", "a+", "b?", "[ab]{2,5}", "^", "$"]
)
_PATTERNS = st.recursive(
    _PARTS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=6).map("".join),
        st.lists(inner, min_size=2, max_size=6).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{3}", "{0,4}"])).map(
            lambda part: f"(?:{part[0]}){part[1]}"
        ),
        inner.map(lambda part: f"(?={part})"),
        inner.map(lambda part: f"({part})\\1"),
        inner.map(lambda part: f"(?i:{part})"),
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(_PATTERNS, st.sampled_from(["a", "ab", "sſ", "aab"]))
def test_an_expression_that_is_accepted_is_searched_in_bounded_time(pattern: str, text: str) -> None:
    meaning = read_matcher(pattern + "!")
    if isinstance(meaning, RegexMatcher):
        subject = text * (meaning.max_chars // len(text))
        with cpu_limit(10):  # the bound is a fraction of a second
            meaning.matches(subject)


def test_an_expression_of_over_a_thousand_characters_is_invalid() -> None:
    assert (type(read_matcher("x." * 500)), read_matcher("x." * 500 + "x")) == (
        RegexMatcher,
        InvalidMatcher("is longer than 1,000 characters"),
    )


def test_a_name_that_is_too_long_to_be_searched_matches() -> None:
    event = subagent_stop("x" * 100_000)
    assert (matches("^y.*", event), matches("^y.*", subagent_stop("x" * 1000))) == (True, False)


@pytest.mark.parametrize(
    ("matcher", "why"),
    [
        ("(a+)+$", "can backtrack without bound (it repeats a part that itself repeats or is ambiguous)"),
        ("(((", "is not a valid regular expression"),
        ("(?i)[Ā-\uffff]", "ignores case in a range of over 1,000 characters"),
        ("(?i:x[^Ā-\uffff]*)", "ignores case in a range of over 1,000 characters"),
    ],
)
def test_a_hook_with_an_invalid_matcher_fails_with_the_reason(matcher: str, why: str) -> None:
    rule = Rule("SubagentStop", CommandHook("check"), matcher)
    planned = plan(Settings(rules=(rule,)), subagent_stop("a" * 40))
    assert planned == Plan(skip=((rule, HookFailed(f"its matcher {matcher!r} {why}")),))
