"""The tasks of a Markdown file: checkboxes, and for a plan also a status below a heading or in a table."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from turngate.core.text import one_line

MAX_LISTED = 20
MAX_TASK_CHARS = 200


class Task(NamedTuple):
    text: str
    is_done: bool
    headings: tuple[str, ...] = ()  # of the sections that it is in, the outermost first


class Line(NamedTuple):
    """A line of a file that is neither code, quotation nor comment."""

    text: str
    headings: tuple[str, ...]
    is_heading: bool = False


_FENCE = re.compile(r"\s*(?:(?:[-*+]|\d{1,9}[.)])\s+)?(`{3,}|~{3,})(.*)")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*)")
_LIST_ITEM = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s")
_CODE_INDENT = re.compile(r"(?: {4}| {0,3}\t)")
_CHECKBOX = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+\[([^\w\]]|[xXo]|\s{0,3})\](?:\s+(.*))?$")
_CLOSED_MARKS = "xX✓✔✅☑-"  # - stands for a task that was dropped
_EMPHASIS = re.compile(r"[*_`]{1,3}")


def read_checkboxes(text: str) -> list[Task]:
    """Return the items with a checkbox: `- [ ]`, `* [x]`, `1. [ ]`."""
    return [task for line in read_lines(text) if (task := _checkbox(line)) is not None]


def read_plan(text: str) -> list[Task]:
    """Return the items with a checkbox, and what has a status: `Status: pending`, a heading, the row of a table."""
    return [*_read_plan(read_lines(text))]


def _read_plan(lines: Sequence[Line]) -> Iterator[Task]:
    column: int | None = None  # of the status, in the table that is read
    for line in lines:
        cells = _cells(line.text)
        if cells is None:
            column = None
            if task := _checkbox(line) or _status_line(line) or _marked_heading(line):
                yield task
        elif column is None:
            words = [cell.lower() for cell in cells]
            column = words.index("status") if "status" in words else None
        elif column < len(cells) and (done := _is_done(cells[column])) is not None:
            others = [cell for place, cell in enumerate(cells) if place != column and cell]
            yield Task(" ".join(others[:2]), done, line.headings)


def section(tasks: Sequence[Task], heading: str) -> list[Task]:
    """Return the tasks below a heading."""
    wanted = plain(heading.lstrip("#")).casefold()
    return [task for task in tasks if any(each.casefold() == wanted for each in task.headings)]


def has_heading(text: str, heading: str) -> bool:
    wanted = plain(heading.lstrip("#")).casefold()
    return any(line.is_heading and line.headings[-1].casefold() == wanted for line in read_lines(text))


def read_lines(text: str) -> list[Line]:
    """Return the lines that count, with the headings above them."""
    return [*_read_lines(text)]


def _read_lines(text: str) -> Iterator[Line]:
    headings: list[tuple[int, str]] = []
    names: tuple[str, ...] = ()
    fence = ""  # the mark that began a block of code
    in_list = False
    for raw in _without_comments(text).splitlines():
        mark = _FENCE.match(raw)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                fence = ""
            continue
        if mark and not (mark[1][0] == "`" and "`" in mark[2]):
            fence = mark[1]
            continue
        stripped = raw.strip()
        is_item = _LIST_ITEM.match(raw) is not None
        if stripped.startswith(">") or (_CODE_INDENT.match(raw) and not in_list):
            continue
        if stripped and not raw[0].isspace():
            in_list = is_item
        in_list = in_list or is_item
        heading = _HEADING.match(raw)
        if heading:
            level = len(heading[1])
            headings = [*(each for each in headings if each[0] < level), (level, _heading_text(heading[2]))]
            names = tuple(name for _, name in headings)
        if stripped:
            yield Line(raw, names, heading is not None)


def _heading_text(text: str) -> str:
    """Return the text without the marks that may close a heading: `# Title #`."""
    text = text.strip()
    closed = text.rstrip("#")
    return plain(closed if closed[-1:].isspace() or not closed else text)


def _without_comments(text: str) -> str:
    """Remove HTML comments; one that has no end reaches to the end, as browsers show it."""
    parts, place = [], 0
    while (start := text.find("<!--", place)) >= 0:
        end = text.find("-->", start + 4)
        parts.append(text[place:start])
        if end < 0:
            return "".join(parts)
        parts.append("\n" * text.count("\n", start, end))
        place = end + 3
    return "".join([*parts, text[place:]])


def plain(text: str) -> str:
    """Return a text on one line, without emphasis."""
    return one_line(_EMPHASIS.sub("", text))


def _checkbox(line: Line) -> Task | None:
    found = _CHECKBOX.match(line.text)
    if not found:
        return None
    is_done = found[1] != "" and found[1] in _CLOSED_MARKS
    return Task(one_line(found[2] or "", MAX_TASK_CHARS) or "(without a name)", is_done, line.headings)


# The status of a task in words

_DONE = re.compile(
    r"(?:done|completed?|finished|implemented|closed|resolved|merged|shipped|cancelled|canceled|skipped|dropped|"
    r"obsolete|n/a|x|\[x\]|[✅☑✔✓])(?!\w)",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"(?:not (?:yet )?(?:started|done|completed?)|to[ -]?do|pending|open|in[ _-]progress|wip|started|blocked|partial|"
    r"partially|incomplete|planned|next|\[ ?\]|[⬜☐🔲🔄⏳🚧❌])(?!\w)",
    re.IGNORECASE,
)
_STATUS = re.compile(r"\s*(?:[-*+]\s+)?[*_]{0,2}status[*_]{0,2}\s*:[*_]{0,2}\s*(.+)", re.IGNORECASE)
_HEADING_STATUS = re.compile(r"(.*?)\s*(?:[\[(]([^\])]{1,20})[\])]|([✅☑✔✓⬜☐🔲🔄⏳🚧❌])\ufe0f?)$")


def _is_done(status: str) -> bool | None:
    """Return what a status means, or None if it is another word."""
    words = plain(status)
    if _OPEN.match(words):
        return False
    return True if _DONE.match(words) else None


def _status_line(line: Line) -> Task | None:
    found = _STATUS.match(line.text)
    done = _is_done(found[1]) if found else None
    if found is None or done is None or line.is_heading:
        return None
    name = line.headings[-1] if line.headings else "the plan"
    return Task(f"{name} has the status {one_line(plain(found[1]), 40)}", done, line.headings)


def _marked_heading(line: Line) -> Task | None:
    """Read `### Task 1: Parser ✅`, `### [ ] Parser` and `### Parser (pending)`."""
    if not line.is_heading:
        return None
    name = line.headings[-1]
    box = re.match(r"\[(.?)\]\s+(.+)", name)
    if box:
        return Task(box[2], box[1] != "" and box[1] in _CLOSED_MARKS, line.headings[:-1])
    found = _HEADING_STATUS.match(name)
    done = _is_done(found[2] or found[3]) if found else None
    return None if found is None or done is None else Task(found[1], done, line.headings[:-1])


def _cells(line: str) -> list[str] | None:
    """Return the cells of a row of a table."""
    stripped = line.strip()
    if not (stripped.startswith("|") and stripped.endswith("|") and len(stripped) > 1):
        return None
    return [plain(cell) for cell in stripped[1:-1].split("|")]


# Reasons


def describe_open(tasks: Sequence[Task], *, with_section: bool = False) -> str:
    """Return the open tasks as a list."""
    still_open = [task for task in tasks if not task.is_done]
    lines = [
        f"- {task.text}" + (f" ({task.headings[-1]})" if with_section and task.headings else "")
        for task in still_open[:MAX_LISTED]
    ]
    more = len(still_open) - MAX_LISTED
    return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])


def count_open(tasks: Sequence[Task]) -> int:
    return sum(not task.is_done for task in tasks)
