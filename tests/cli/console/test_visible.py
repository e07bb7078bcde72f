import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngate.cli.review.entries import make_visible
from turngate.core.text import strip_controls


@pytest.mark.req("S3-16")
@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("make test", "make test"),
        ("a\tb\nc", "a\tb\nc"),
        ("rm -rf \u202etxt.sh", "rm -rf <U+202E>txt.sh"),
        ("curl\u200b x", "curl<U+200B> x"),
        ("a\rb\x1b[2Jc\x00", "a<U+000D>b<U+001B>[2Jc<U+0000>"),
        ("\u0441url x", "<U+0441>url x"),  # Cyrillic es
        ("h\u043e\u043eks/\u0445.sh", "h<U+043E><U+043E>ks/<U+0445>.sh"),
        ("\u0430\u0441", "<U+0430><U+0441>"),  # no letter of it is ASCII, and it can be read as `ac`
        ("\uff4c\uff53", "<U+FF4C><U+FF53>"),  # full width
        ("\U0001d5eb", "<U+1D5EB>"),  # a mathematical X
        ("a\u2215b", "a<U+2215>b"),  # a division slash in a path
        ("a\u00a0b", "a<U+00A0>b"),
        ("\u201cx\u201d", "<U+201C>x<U+201D>"),
        ("\u3164", "<U+3164>"),
        ("x\ufe0f", "x<U+FE0F>"),
        ("\udc80", "<U+DC80>"),
        ("\u2028", "<U+2028>"),
        ("\u0442\u0435\u0441\u0442\u044b \u043f\u0440\u043e\u0448\u043b\u0438", None),  # Russian words
        ("gr\u00fc\u00dfe, na\u00efve \u4e2d\u6587 \u2713 \u20ac \u2026 \u2014", None),
    ],
)
def test_what_hides_or_looks_like_ascii_is_named_and_other_alphabets_stay(
    text: str, shown: str | None
) -> None:
    assert make_visible(text) == (text if shown is None else shown)


@given(st.text())
def test_a_terminal_removes_nothing_from_a_visible_text(text: str) -> None:
    visible = make_visible(text)
    assert strip_controls(visible) == visible


@given(st.text(), st.text())
def test_different_texts_stay_different_if_one_is_ascii(text: str, other: str) -> None:
    ascii_text = other.encode("ascii", "ignore").decode()
    if text != ascii_text and "<U+" not in ascii_text:
        assert make_visible(text) != make_visible(ascii_text)
