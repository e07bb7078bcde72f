"""Redaction of secrets that an endpoint echoes."""

import pytest

from turngate.core.decisions import Allow, Block, Fault
from turngate.core.hook_output import Answer
from turngate.core.redaction import Redactor, make_redactor
from turngate.core.reports import Exited, Replied


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


def test_only_a_reply_is_redacted_in_a_report() -> None:
    assert redactor("s3cr3t").report(Replied("s3cr3t")) == Replied("…")
    assert redactor("s3cr3t").report(Exited(0, "s3cr3t")) == Exited(0, "s3cr3t")


def test_a_warning_that_quotes_a_truncated_secret_shows_nothing_of_it() -> None:
    secret = "sk-" + "0123456789" * 10
    warnings = (
        redactor(secret).decision(Allow(warnings=(f'`decision` is "{secret[:50]}…", … ignored',))).warnings
    )
    assert warnings == ('`decision` is "…", … ignored',)
