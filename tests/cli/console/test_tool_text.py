"""What a tool call changes and prints, for a person."""

from typing import Any

import pytest

from turngate.cli.console.tool_text import fold_output, format_change, format_output, format_request
from turngate.core.conversation.messages import ToolResult, ToolUse

LINES = "".join(f"line {number}\n" for number in range(1, 13))


def test_a_difference_has_line_numbers_and_what_is_around_it() -> None:
    changed = LINES.replace("line 3\n", "LINE 3\n").replace("line 10\n", "line 10\nnew\n")
    assert format_change(LINES, changed) == [
        ("   1   line 1", "plain"),
        ("   2   line 2", "plain"),
        ("   3 - line 3", "bad"),
        ("   3 + LINE 3", "good"),
        ("   4   line 4", "plain"),
        ("   5   line 5", "plain"),
        ("     ⋮", "dim"),
        ("   9   line 9", "plain"),
        ("  10   line 10", "plain"),
        ("  11 + new", "good"),
        ("  12   line 11", "plain"),
        ("  13   line 12", "plain"),
    ]


CHANGES = [
    ("", "a\nb\n", ["  1 + a", "  2 + b"]),
    ("a\n", "", ["  1 - a"]),
    ("a\n", "a\n", []),
    ("a\n", "a", ["  1 - a", "  1 + a  (no newline at the end)"]),
    ("a", "a\n", ["  1 - a  (no newline at the end)", "  1 + a"]),
    ("a", "b", ["  1 - a", "  1 + b"]),
    ("", "", []),
]


@pytest.mark.parametrize(("before", "after", "shown"), CHANGES)
def test_the_beginning_and_the_end_of_a_file(before: str, after: str, shown: list[str]) -> None:
    assert [text for text, _ in format_change(before, after)] == shown


def test_a_huge_file_that_is_replaced_is_not_compared() -> None:
    before, after = ("".join(f"{word} {number}\n" for number in range(100_000)) for word in ("old", "new"))
    shown = format_change(before, after)
    assert [shown[0], shown[99_999], shown[100_000], len(shown)] == [
        ("       1 - old 0", "bad"),
        ("  100000 - old 99999", "bad"),
        ("       1 + new 0", "good"),
        200_000,
    ]


EDIT = {"file_path": "/p/x.py", "old_string": "b", "new_string": "B"}
REQUESTS: list[tuple[str, dict[str, Any], str | None, list[tuple[str, str]]]] = [
    ("Bash", {"command": "a\nb"}, None, [("Bash: a\nb", "notice")]),
    ("Deploy", {"to": "mars"}, None, [('Deploy: {"to": "mars"}', "notice")]),
    (
        "Write",
        {"file_path": "/p/x.py", "content": "a\nb\n"},
        None,
        [("Write: x.py", "notice"), ("  1 + a", "good"), ("  2 + b", "good")],
    ),
    (
        "Write",
        {"file_path": "/q/x.py", "content": "a\n"},
        "a\nb\n",
        [("Write: /q/x.py", "notice"), ("  1   a", "plain"), ("  2 - b", "bad")],
    ),
    (
        "Edit",
        EDIT,
        "a\nb\nc\n",
        [
            ("Edit: x.py", "notice"),
            ("  1   a", "plain"),
            ("  2 - b", "bad"),
            ("  2 + B", "good"),
            ("  3   c", "plain"),
        ],
    ),
    ("Edit", EDIT, None, [("Edit: x.py", "notice"), ("  - b", "bad"), ("  + B", "good")]),
    ("Edit", EDIT, "b\nb\n", [("Edit: x.py", "notice"), ("  - b", "bad"), ("  + B", "good")]),
    (
        "Edit",
        {**EDIT, "replace_all": True},
        "b\nb\n",
        [
            ("Edit: x.py", "notice"),
            ("  1 - b", "bad"),
            ("  2 - b", "bad"),
            ("  1 + B", "good"),
            ("  2 + B", "good"),
        ],
    ),
]


@pytest.mark.parametrize(("tool", "given", "before", "shown"), REQUESTS)
def test_a_question_shows_everything_that_is_going_to_be_done(
    tool: str, given: dict[str, Any], before: str | None, shown: list[tuple[str, str]]
) -> None:
    assert format_request(ToolUse("t", tool, given), "/p", before) == shown


def folded(tool: str, content: str, change: tuple[str, str] | None = None) -> list[str]:
    use, result = ToolUse("t", tool, {}), ToolResult("t", content)
    return [text for text, _ in fold_output(use, format_output(result, change))]


def numbers(last: int, first: int = 1, indent: str = "    ") -> list[str]:
    return [f"{indent}{number}" for number in range(first, last + 1)]


def test_the_output_of_a_tool_is_folded() -> None:
    printed = "\n".join(map(str, range(1, 8)))
    assert folded("Bash", printed) == [*numbers(4), "    … 3 more lines; /output shows all"]
    assert folded("Bash", printed[:9]) == numbers(5)  # a note would take the place of the line
    assert folded("Bash", "") == []
    assert folded("Bash", f"\x1b[31m{'x' * 400}\r\n") == ["    " + "x" * 295 + "…"]
    assert folded("Bash", "\n     9\tnine\n    10\tten\n\n") == ["         9  nine", "        10  ten"]
    assert folded("Read", printed) == []
    content = "".join(f"{number}\n" for number in range(1, 51))
    assert folded("Write", "Created x", ("", content)) == [
        *(f"  {number:>2} + {number}" for number in range(1, 31)),
        "    … 20 more lines; /output shows all",
    ]
