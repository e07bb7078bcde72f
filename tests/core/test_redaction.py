"""Redaction of secrets that an endpoint or a command echoes."""

import pytest

from turngate.core.answers.answer_json import Answer
from turngate.core.answers.report_types import Exited, HookFailed, Replied, Report, Skipped, TimedOut
from turngate.core.redaction import Redactor, join_redactors, make_redactor
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault


def test_the_secrets_of_two_redactors_are_joined() -> None:
    exact = make_redactor(["environment"], ignores_case=False)
    joined = join_redactors(redactor("header-value"), exact)
    assert joined is not None
    assert joined.text("environment Header-Value") == "… …"
    assert (join_redactors(None, exact), join_redactors(exact, None)) == (exact, exact)


def redactor(*secrets: str) -> Redactor:
    made = make_redactor(secrets)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("secret", "text", "expected"),
    [
        ("s3cr3t/+", "<p>s3cr3t/+ S3CR3T%2f%2B s3cr3t/%2B</p>", "<p>… … …</p>"),
        ("two words", "two+words two%20words", "… …"),
        ('a "quote"', r'{"reason": "a \"quote\""}', '{"reason": "…"}'),
        ("s3cr3t/", r'"s3cr3t\/"', '"…"'),
        ("s3cr3t+", r'"s3cr3t\u002B"', '"…"'),
        ("\\" * 40 + "x", "\\" * 10_000, "\\" * 10_000),
    ],
)
def test_a_secret_and_its_common_encodings_are_redacted(secret: str, text: str, expected: str) -> None:
    assert redactor(secret).text(text) == expected


def test_the_longest_secret_is_redacted_first() -> None:
    assert redactor("secret", "secret-and-more").text("secret-and-more secret") == "… …"


@pytest.mark.parametrize("secret", ["", "short", "Bearer"])
def test_a_short_value_or_a_scheme_is_not_a_secret(secret: str) -> None:
    assert make_redactor([secret]) is None


def test_texts_are_redacted_and_words_of_the_contract_stay() -> None:
    decision = Block("a reason", "advice", notice="reason", warnings=("reason",))
    assert redactor("reason").decision(decision) == Block("a …", "advice", notice="…", warnings=("…",))
    assert redactor("failed").decision(Fault("it failed")) == Fault("it …")


def test_the_input_of_a_tool_stays_as_it_came() -> None:
    answer = Answer(advice="s3cr3t", permission="allow", updated_input={"command": "s3cr3t"})
    expected = Answer(advice="…", permission="allow", updated_input={"command": "s3cr3t"})
    assert redactor("s3cr3t").answer(answer) == expected


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (Replied("a s3cr3t"), Replied("a …")),
        (Exited(1, "s3cr3t", "b s3cr3t", truncated=True), Exited(1, "…", "b …", truncated=True)),
        (TimedOut(5, "s3cr3t", "b s3cr3t"), TimedOut(5, "…", "b …")),
        (HookFailed("no program s3cr3t"), HookFailed("no program …")),
        (Skipped("s3cr3t"), Skipped("s3cr3t")),
    ],
)
def test_what_a_hook_printed_is_redacted(report: Report, expected: Report) -> None:
    assert redactor("s3cr3t").report(report) == expected


def test_all_texts_of_an_answer_that_a_model_is_sent_are_redacted() -> None:
    answer = Answer(
        first_message="s3cr3t", lost="s3cr3t", updated_output={"a": ["s3cr3t", 1], "s3cr3t": None}
    )
    expected = Answer(first_message="…", lost="…", updated_output={"a": ["…", 1], "s3cr3t": None})
    assert redactor("s3cr3t").answer(answer) == expected


SECRET = "sk-" + "0123456789" * 10


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'`decision` is "{SECRET[:50]}…", … ignored', '`decision` is "…", … ignored'),
        (f"exit code 1: a {SECRET[:40]} … {SECRET[-40:]} b", "exit code 1: a  …  b"),
        (f"a {SECRET[:5]}… b", f"a {SECRET[:5]}… b"),
        ("nothing … of it", "nothing … of it"),
    ],
)
def test_a_text_that_is_truncated_shows_no_part_of_a_secret(text: str, expected: str) -> None:
    assert redactor(SECRET).decision(Allow(warnings=(text,))).warnings == (expected,)
    assert redactor(SECRET).decision(Fault(text)) == Fault(expected)


@pytest.mark.parametrize(
    ("report", "decision", "is_needed"),
    [
        (Exited(0, "fine"), Allow(), False),
        (Exited(0, "a S3cr3t-/x"), Allow(), True),
        (Exited(2, "", "S3cr3t-/x"), Block("S3cr3t-/x"), True),
        (Exited(0, "%53"), Allow(notice="S3cr3t-/x"), True),
        (Exited(0, r"S3cr3t-\/x"), Allow(), True),
        (Exited(0, "s3cr3t-/X"), Allow(), False),
    ],
)
def test_a_run_that_shows_no_secret_is_left_as_it_is(
    report: Report, decision: Decision, is_needed: bool
) -> None:
    of_a_command = make_redactor(["S3cr3t-/x"], ignores_case=False)
    assert of_a_command is not None
    assert of_a_command.is_needed(report, decision) is is_needed
