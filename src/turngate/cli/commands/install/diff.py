"""A unified diff of a settings file, for the terminal."""

import difflib
from collections.abc import Iterator, Sequence

from turngate.cli.console.ui import TextStyle
from turngate.cli.console.visible import make_visible

MAX_COMPARED_LINES = 5_000  # of both sides; more would take minutes
MAX_SHARED_CHARS = 60  # of a long line, before and behind what differs

Line = tuple[str, TextStyle]

_STYLES: dict[str, TextStyle] = {"+": "good", "-": "bad", "@": "notice"}
_CONTEXT = 3


def format_file_diff(name: str, before: str | None, after: str | None) -> Iterator[Line]:
    """Yield the difference of a file; None stands for no file."""
    yield f"--- {name if before is not None else '/dev/null'}", "user"
    yield f"+++ {name if after is not None else '/dev/null'}", "user"
    yield from _hunks(before or "", after or "")


def _hunks(before: str, after: str) -> Iterator[Line]:
    r"""Yield the hunks. Line ends \r\n are shown as \n."""
    old, new = _lines(before), _lines(after)
    start, end = _shared(old, new)
    first = max(0, start - _CONTEXT)
    old, new = _middle(old, first, end), _middle(new, first, end)
    if len(old) + len(new) > MAX_COMPARED_LINES:
        yield f"@@ too long to compare: {len(old):,} lines become {len(new):,} @@", "notice"
        return
    if len(old) == len(new) == 1:
        old, new = _shorten(old[0], new[0])
    for line in list(difflib.unified_diff(old, new, lineterm=""))[2:]:
        shown = _shifted(line, first) if line.startswith("@@") else line
        yield shown, _STYLES.get(line[:1], "plain")


def _shared(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return how many lines or characters are equal at the beginning, and at the end."""
    start = _equal_at_start(old, new)
    rest = min(len(old), len(new)) - start
    return start, min(rest, _equal_at_start(old[::-1], new[::-1]))


def _equal_at_start(old: Sequence[str], new: Sequence[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((place for place, (one, other) in pairs if one != other), min(len(old), len(new)))


def _lines(text: str) -> list[str]:
    lines = make_visible(text.replace("\r\n", "\n").removeprefix("\ufeff")).split("\n")
    if lines[-1]:
        return [*lines[:-1], f"{lines[-1]}\n\\ No newline at end of file"]
    return lines[:-1]


def _middle(lines: list[str], first: int, equal_at_end: int) -> list[str]:
    return lines[first : len(lines) - max(0, equal_at_end - _CONTEXT)]


def _shifted(header: str, lines: int) -> str:
    """Return the header of a hunk with the numbers of lines that it has in the whole text."""
    marks = header.split(" ")
    for place in (1, 2):
        number, comma, count = marks[place][1:].partition(",")
        marks[place] = f"{marks[place][0]}{int(number) + lines}{comma}{count}"
    return " ".join(marks)


def _shorten(old: str, new: str) -> tuple[list[str], list[str]]:
    """Return two lines without most of what they share: settings can be one line of a megabyte."""
    start, end = _shared(old, new)
    return [_cut(old, start, end)], [_cut(new, start, end)]


def _cut(line: str, start: int, end: int) -> str:
    first, last = max(0, start - MAX_SHARED_CHARS), max(0, end - MAX_SHARED_CHARS)
    middle = line[first : len(line) - last]
    return f"{'…' if first else ''}{middle}{'…' if last else ''}"
