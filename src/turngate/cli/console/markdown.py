"""Markdown for a terminal, line by line as it arrives; code and what is not understood stay as they are.

Every line is printed as soon as it is complete, except for the rows of a table, whose widths depend on each other. No
line is wrapped: the terminal does that, also when its window changes its size. Each function takes linear time.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from itertools import zip_longest

Span = tuple[str, str]  # a text, and the parameters of its SGR sequence; "" is plain
Line = list[Span]

BOLD, DIM, ITALIC, UNDERLINE, STRIKE, CODE = "1", "2", "3", "4", "9", "36"
MAX_STYLED_CHARS = 10_000  # a longer line stays as it is
MAX_TABLE_ROWS = 200  # of which the widths are computed together
MAX_RULE_COLUMNS = 40

_FENCE = re.compile(r"\s*(`{3,}|~{3,})([^`]*)$")
_HEADING = re.compile(r" {0,3}(#{1,6})\s+(.*)")
_QUOTE = re.compile(r" {0,3}((?:> ?)+)(.*)")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,9}[.)])(\s+)(?:\[([ xX])\]\s)?(.*)")
_RULE = re.compile(r" {0,3}(?:(?:- *){3,}|(?:\* *){3,}|(?:_ *){3,})")
_DELIMITER_CELL = re.compile(r"\s*:?-+:?\s*")
_CELL_END = re.compile(r"(?<!\\)\|")
_INLINE = re.compile(
    r"(?<!`)(?P<ticks>`++)(?P<code>[^`]++)(?P=ticks)(?!`)"
    r"|\\(?P<escaped>[!-/:-@\[-`{-~])"
    r'|!?\[(?P<text>[^\[\]]*+)\]\((?P<url>[^\s()]++(?:\([^\s()]*+\)[^\s()]*+)*+)(?:\s+"[^"]*+")?\)'
    r"|<(?P<address>https?://[^\s<>]++)>"
    r"|(?P<mark>\*{1,3}|(?<!_)_(?!_)|~~)"
)
# Not `__`: in an answer about code, `__init__` is a name.
_MARKS = {"*": (ITALIC,), "_": (ITALIC,), "**": (BOLD,), "***": (BOLD, ITALIC), "~~": (STRIKE,)}


def render(text: str, columns: int, style: Callable[[str, str], str]) -> str:
    """Return a whole text; `style` adds the control sequences to a text with its SGR parameters."""
    markdown = Markdown(lambda: columns)
    lines = [rendered for line in text.split("\n") for rendered in markdown.feed(line)]
    return "\n".join(styled(line, style) for line in (*lines, *markdown.end()))


def styled(line: Line, style: Callable[[str, str], str]) -> str:
    return "".join(style(text, code) for text, code in line)


class Markdown:
    """The state between two lines: whether they are code, and the rows of a table that has not ended."""

    def __init__(self, columns: Callable[[], int]) -> None:
        self._columns = columns  # of the terminal now
        self._fence = ""  # of the code that has begun
        self.rows: list[str] = []  # of a table, which are not printed yet

    def feed(self, line: str) -> list[Line]:
        """Return what one more line completes."""
        if self._fence:
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
                return []
            return [[(line, CODE)]]
        if len(line) > MAX_STYLED_CHARS:
            return [*self._end_table(), [(line, "")]]
        if line.lstrip().startswith("|"):
            self.rows.append(line)
            return self._end_table() if len(self.rows) > MAX_TABLE_ROWS else []
        lines = self._end_table()
        if fence := _FENCE.match(line):
            self._fence = fence[1]
            return lines
        return [*lines, self._line(line)]

    def end(self) -> list[Line]:
        """Return the rest, and begin a new text."""
        self._fence = ""
        return self._end_table()

    def _line(self, line: str) -> Line:
        if heading := _HEADING.fullmatch(line):
            code = f"{BOLD};{UNDERLINE}" if len(heading[1]) == 1 else BOLD
            return inline(heading[2].rstrip(" #") or heading[2], code)
        if _RULE.fullmatch(line):
            return [("─" * min(self._columns(), MAX_RULE_COLUMNS), DIM)]
        if quote := _QUOTE.fullmatch(line):
            return [("│ " * quote[1].count(">"), DIM), *inline(quote[2])]
        if item := _ITEM.fullmatch(line):
            indent, bullet, blanks, task, text = item.groups()
            bullet = "•" if bullet in "-*+" else bullet
            box = "" if task is None else "☐ " if task == " " else "☑ "
            return [(f"{indent}{bullet}{blanks}{box}", ""), *inline(text)]
        return inline(line)

    def _end_table(self) -> list[Line]:
        rows, self.rows = self.rows, []
        if len(rows) < 2 or not all(map(_DELIMITER_CELL.fullmatch, _cells(rows[1]))):
            return [self._line(row) for row in rows]
        header, delimiter, *others = map(_cells, rows)
        cells = [[inline(cell, BOLD) for cell in header], *([inline(cell) for cell in row] for row in others)]
        widths = [max(map(_line_width, column)) for column in zip_longest(*cells, fillvalue=[])]
        if sum(widths) + 3 * (len(widths) - 1) > self._columns():
            return _records(cells)
        lines = [_row(row, widths, delimiter) for row in cells]
        return [lines[0], [("─┼─".join("─" * width for width in widths), DIM)], *lines[1:]]


def _cells(row: str) -> list[str]:
    row = row.strip().removeprefix("|")
    row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
    return [cell.strip().replace("\\|", "|") for cell in _CELL_END.split(row)]


def _row(cells: Sequence[Line], widths: Sequence[int], delimiter: Sequence[str]) -> Line:
    line: Line = []
    for number, width in enumerate(widths):
        cell = cells[number] if number < len(cells) else []
        align = delimiter[number] if number < len(delimiter) else ""
        room = width - _line_width(cell)
        left = 0 if not align.endswith(":") else room // 2 if align.startswith(":") else room
        line += [(" │ ", DIM)] if number else []
        line += [(" " * left, ""), *cell, (" " * (room - left), "")]
    return [span for span in line if span[0]]


def _records(cells: Sequence[Sequence[Line]]) -> list[Line]:
    """Return a table that is wider than the terminal as one line for each cell, after its column's name."""
    header, *rows = cells
    lines: list[Line] = []
    for row in rows:
        lines += [[]] if lines else []
        for name, cell in zip_longest(header, row, fillvalue=list[Span]()):
            lines.append([*name, (": " if name else "", BOLD), *cell])
    return lines or [[span for name in header for span in (*name, (" ", ""))]]


def inline(text: str, base: str = "") -> Line:
    """Return a line with emphasis, code and links; marks that enclose nothing stay as they are."""
    spans: list[tuple[str, tuple[str, ...]]] = []
    opened: dict[str, int] = {}  # the marks, and where their spans begin
    end = 0
    for match in _INLINE.finditer(text):
        spans.append((text[end : match.start()], ()))
        end = match.end()
        if mark := match["mark"]:
            _add_mark(mark, text[match.start() - 1 : match.start()], text[end : end + 1], spans, opened)
        elif match["code"]:
            code = match["code"]
            is_padded = code.startswith(" ") and code.endswith(" ") and code.strip()
            spans.append((code[1:-1] if is_padded else code, (CODE,)))
        elif match["url"]:
            spans.append((match["text"] or match["url"], (UNDERLINE,)))
            if match["text"] not in ("", match["url"]):
                spans.append((f" ({match['url']})", (DIM,)))
        else:
            spans.append((match["escaped"] or match["address"], (UNDERLINE,) if match["address"] else ()))
    spans.append((text[end:], ()))
    return [(part, ";".join(filter(None, (base, *codes)))) for part, codes in spans if part]


def _add_mark(
    mark: str,
    before: str,
    after: str,
    spans: list[tuple[str, tuple[str, ...]]],
    opened: dict[str, int],
) -> None:
    in_word = mark[0] == "_" and before.isalnum() and after.isalnum()
    spans.append((mark, ()))
    if mark in opened and before.strip() and not in_word:
        start = opened.pop(mark)
        for number in range(start, len(spans)):
            part, codes = spans[number]
            spans[number] = (part, (*_MARKS[mark], *codes))
        spans[start] = spans[-1] = ("", ())
        for other in [other for other, place in opened.items() if place > start]:
            del opened[other]
    elif mark not in opened and after.strip() and not in_word and not (mark[0] == "_" and before.isalnum()):
        opened[mark] = len(spans) - 1


def _line_width(line: Line) -> int:
    return sum(text_width(text) for text, _ in line)


def text_width(text: str) -> int:
    """Return how many columns a terminal needs: two for a wide character, none for a mark on another one."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def _width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
