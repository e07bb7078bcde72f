"""What is added to a JSON text looks like the rest of it."""

import pytest

from turngate.hosts.install.json_text import read_json_text, rewrite


def append(text: str) -> str:
    """Return an object with the member `new`."""
    root = read_json_text(text)
    assert root is not None
    root.value["new"] = {"b": [2]}
    return rewrite(text, root, root.value)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param('{"a":1}', '{"a":1,"new":{"b":[2]}}', id="compact"),
        pytest.param('{ "a": 1 }', '{ "a": 1, "new": {"b": [2]} }', id="one line"),
        pytest.param(
            '{\r\n\t"a": 1\r\n}\r\n',
            '{\r\n\t"a": 1,\r\n\t"new": {\r\n\t\t"b": [2]\r\n\t}\r\n}\r\n',
            id="tabs and Windows line ends",
        ),
        pytest.param(
            '{\n   "a": 1,\n}',
            '{\n   "a": 1,\n   "new": {\n      "b": [2]\n   },\n}',
            id="three blanks and a trailing comma",
        ),
        pytest.param("{}", '{\n  "new": {\n    "b": [2]\n  }\n}', id="nothing"),
        pytest.param("{\n}", '{\n  "new": {\n    "b": [2]\n  }\n}', id="nothing on two lines"),
        pytest.param("{ // none\n}", '{ // none\n  "new": {\n    "b": [2]\n  }\n}', id="only a comment"),
    ],
)
def test_what_is_added_looks_like_the_rest(before: str, after: str) -> None:
    assert append(before) == after


def test_a_comment_at_the_end_of_a_line_stays_with_what_it_is_about() -> None:
    assert append('{\n "a": 1 // one\n // more\n}') == (
        '{\n "a": 1, // one\n "new": {\n  "b": [2]\n }\n // more\n}'
    )
