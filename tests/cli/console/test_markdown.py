"""Markdown of an answer, as a terminal shows it."""

import pytest

from turngate.cli.console.markdown import (
    MAX_STYLED_CHARS,
    MAX_TABLE_ROWS,
    Markdown,
    inline,
    render,
    text_width,
)


def shown(text: str, columns: int = 80) -> str:
    """Return the rendered text with styles as `<1:bold>`."""
    return render(text, columns, lambda part, code: f"<{code}:{part}>" if code else part)


INLINE = [
    ("plain text", "plain text"),
    ("a **bold** word", "a <1:bold> word"),
    ("an *italic* and an _italic_ word", "an <3:italic> and an <3:italic> word"),
    ("***both***", "<1;3:both>"),
    ("**bold with *italic* in it**", "<1:bold with ><1;3:italic><1: in it>"),
    ("~~gone~~", "<9:gone>"),
    ("run `pytest -q`", "run <36:pytest -q>"),
    ("`**not bold**`", "<36:**not bold**>"),
    ("``a ` b``", "``a ` b``"),
    ("` a `", "<36:a>"),
    (r"\*no emphasis\*", "*no emphasis*"),
    ("[docs](https://a.b/c_(d))", "<4:docs><2: (https://a.b/c_(d))>"),
    ("[https://a.b](https://a.b)", "<4:https://a.b>"),
    ('![a picture](p.png "title")', "<4:a picture><2: (p.png)>"),
    ("<https://a.b>", "<4:https://a.b>"),
    ("2 * 3 * 4 and 2*3", "2 * 3 * 4 and 2*3"),
    ("__init__ and snake_case_name", "__init__ and snake_case_name"),
    ("src/**/*.py", "src/**/*.py"),
    ("**a *b** c", "<1:a ><1:*><1:b> c"),
    ("**never closed", "**never closed"),
    ("a < b && c > d", "a < b && c > d"),
    ("日本 **語**", "日本 <1:語>"),
]


@pytest.mark.parametrize(("text", "expected"), INLINE)
def test_emphasis_code_and_links_in_a_line(text: str, expected: str) -> None:
    assert shown(text) == expected


LINES = [
    ("# Title", "<1;4:Title>"),
    ("### Part `x` ###", "<1:Part ><1;36:x>"),
    ("#hashtag", "#hashtag"),
    ("- one\n  * two\n3. three", "• one\n  • two\n3. three"),
    ("- [ ] open\n- [x] **done**", "• ☐ open\n• ☑ <1:done>"),
    ("-not an item", "-not an item"),
    ("> quoted *text*\n>> twice", "<2:│ >quoted <3:text>\n<2:│ │ >twice"),
    ("---\n* * *", f"<2:{'─' * 40}>\n<2:{'─' * 40}>"),
    ("```python\ndef f(**kw):\n    pass\n```\n**b**", "<36:def f(**kw):>\n<36:    pass>\n<1:b>"),
    ("````\n```\n````\nx", "<36:```>\nx"),
    ("~~~\na\n~~~", "<36:a>"),
    ("```\nnever closed", "<36:never closed>"),
    ("a\n\nb\n", "a\n\nb\n"),
    ("  indented stays", "  indented stays"),
]


@pytest.mark.parametrize(("text", "expected"), LINES)
def test_headings_lists_quotes_and_code(text: str, expected: str) -> None:
    assert shown(text) == expected


TABLE = "| file | lines |\n|:--|--:|\n| `a.py` | 12 |\n| 日本.md | 3 |\nAfter."


def test_the_columns_of_a_table_are_as_wide_as_their_cells() -> None:
    assert shown(TABLE).split("\n") == [
        "<1:file>   <2: │ ><1:lines>",
        "<2:────────┼──────>",
        "<36:a.py>   <2: │ >   12",
        "日本.md<2: │ >    3",
        "After.",
    ]


def test_a_table_that_is_wider_than_the_terminal_is_a_list() -> None:
    assert shown(TABLE, 12).split("\n") == [
        "<1:file><1:: ><36:a.py>",
        "<1:lines><1:: >12",
        "",
        "<1:file><1:: >日本.md",
        "<1:lines><1:: >3",
        "After.",
    ]


NO_TABLES = ["| only a row", "| a | b |\n| c | d |", "|x| is a norm"]


@pytest.mark.parametrize("text", NO_TABLES)
def test_rows_without_a_line_below_the_first_one_are_text(text: str) -> None:
    assert shown(text) == text


def test_rows_may_be_longer_or_shorter_than_the_first_one() -> None:
    assert shown("|a|\n|-|\n|1|2|\n||\nx").split("\n") == [
        "<1:a><2: │ > ",
        "<2:──┼──>",
        "1<2: │ >2",
        " <2: │ > ",
        "x",
    ]


def test_only_the_rows_of_a_table_wait_and_not_forever() -> None:
    markdown = Markdown(lambda: 80)
    assert [markdown.feed(line) for line in ("text", "|a|", "|-|", "end")] == [
        [inline("text")],
        [],
        [],
        [[("a", "1")], [("─", "2")], inline("end")],
    ]
    fed = [markdown.feed(line) for line in ["|a|", "|-|", *["|b|"] * MAX_TABLE_ROWS]]
    assert [number for number, lines in enumerate(fed) if lines] == [MAX_TABLE_ROWS]


def test_the_next_answer_does_not_begin_as_code() -> None:
    markdown = Markdown(lambda: 80)
    markdown.feed("```")
    assert (markdown.end(), markdown.feed("**b**")) == ([], [[("b", "1")]])


def test_a_very_long_line_stays_as_it_is() -> None:
    line = "**b** " * (MAX_STYLED_CHARS // 6 + 1)
    assert shown(line) == line


@pytest.mark.parametrize(("text", "width"), [("abc", 3), ("日本", 4), ("e\u0301", 1), ("👍", 2), ("", 0)])
def test_the_width_of_a_text_is_that_of_its_characters(text: str, width: int) -> None:
    assert text_width(text) == width


PIECES = ("**", "*a **b ", "[a](", "`a``", "|a", "> ", "- ", "_a_ ", "![", "\\", "<https://", "*a* **b *")


@pytest.mark.parametrize("piece", PIECES)
def test_a_huge_answer_of_marks_that_enclose_nothing_is_rendered(piece: str) -> None:
    """In time that grows with its length only: otherwise this would take hours."""
    line = (piece * MAX_STYLED_CHARS)[:MAX_STYLED_CHARS]
    assert len(shown("\n".join([line] * 100)).split("\n")) == 100
