"""Truncating, describing and cleaning texts, in tables."""

import pytest

from turngate.core.text import (
    describe,
    describe_exception,
    describe_json,
    describe_name,
    describe_url,
    keep_ends,
    one_line,
    printable,
    quote_name,
    truncate,
    truncate_bytes,
    truncate_bytes_left,
    truncate_bytes_middle,
)


class Unreadable(Exception):
    def __str__(self) -> str:
        raise KeyError("x")


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (truncate("abcd", 4), "abcd"),
        (truncate("abcde", 4), "abc…"),
        (truncate("abcde", 4, " [more]"), "abcd [more]"),
        (keep_ends("abcdef", 2, 4), "abcdef"),
        (keep_ends("abcdefg", 2, 4), "ab\n… [1 characters left out] …\ndefg"),
        (keep_ends("abcdefg", 2, 1, " … "), "ab … g"),
        (truncate_bytes("éé", 4), "éé"),
        (truncate_bytes("ééééé", 9), "éé …"),
        (truncate_bytes_left("ééééé", 9), "… éé"),
        (truncate_bytes_middle("a" * 12, 12), "a" * 12),
        (one_line(" a\n b\tc "), "a b c"),
        (one_line("a b c", 4), "a b…"),
        (printable("a\x1b[2Jb\nc"), "ab c"),
    ],
)
def test_a_text_is_truncated_and_cleaned(result: str, expected: str) -> None:
    assert result == expected


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (describe({}), "a dict"),
        (describe((1,)), "a list"),
        (describe(None), "None"),
        (describe("x" * 60), "'" + "x" * 58 + "…"),
        (describe(10**5000), "a number of more than 60 digits"),
        (describe(object()), "of the type object"),
        (describe_json({}), "an object"),
        (describe_json([1]), "a list"),
        (describe_json(None), "null"),
        (describe_json(True), "true"),
        (describe_json("\ud800"), r'"\ud800"'),
        (describe_json(10**5000), "a number of more than 60 digits"),
        (describe_name("\ud800"), r"\ud800"),
        (describe_url("https://user:secret@a.example/\nx"), "https://…@a.example/ x"),
        (describe_exception(KeyError("x")), "KeyError: 'x'"),
        (describe_exception(ValueError()), "ValueError"),
        (describe_exception(Unreadable()), "Unreadable"),
    ],
)
def test_a_value_is_described(result: str, expected: str) -> None:
    assert result == expected


@pytest.mark.parametrize(
    ("name", "quoted"),
    [
        ("tests", '"tests"'),
        ("it's", '"it\'s"'),
        ('"$DIR"/x.sh', "'\"$DIR\"/x.sh'"),
        ("""sh -c 'echo "x"'""", r'''"sh -c 'echo \"x\"'"'''),
    ],
)
def test_a_name_is_quoted_so_that_its_own_quotes_can_be_told_apart(name: str, quoted: str) -> None:
    assert quote_name(name) == quoted
