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
_CHECKBOX = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+\[(.{0,2}|\s{3})\](?:\s+(.*))?$")
_CLOSED_MARKS = "xX✓✔✅☑-"  # - stands for a task that was dropped
_LATER = re.compile(
    r"(?:\W|\d)*(?:out of scope|not in scope|non-?goals?|future|later|optional|nice[- ]to[- ]haves?|could have|won['’]?t (?:have|do|fix)|backlog|ideas|"
    r"stretch|follow[- ]?ups?|deferred|postponed|parking lot|icebox|someday|not (?:now|planned)|possible (?:\w+ )?(?:improvements|extensions))\b",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"[*_`]{1,3}")


def read_checkboxes(text: str) -> list[Task]:
    """Return the items with a checkbox: `- [ ]`, `* [x]`, `1. [ ]`."""
    return [task for line in read_lines(text, hides_rest=False) if (task := _checkbox(line)) is not None]


def read_plan(text: str) -> list[Task]:
    """Return the items with a checkbox, and what has a status: `Status: pending`, a heading, the row of a table."""
    tasks: list[Task] = []
    column: int | None = None  # of the status, in the table that is read
    for line in read_lines(text, hides_rest=False):
        cells = _cells(line.text)
        if cells is None:
            column = None
            if task := _checkbox(line) or _status_line(line) or _marked_heading(line):
                tasks.append(task)
        elif column is None:
            words = [cell.lower() for cell in cells]
            column = words.index("status") if "status" in words else None
        elif column < len(cells) and (done := _is_done(cells[column])) is not None:
            others = [cell for place, cell in enumerate(cells) if place != column and cell]
            tasks.append(Task(" ".join(others[:2]), done, line.headings))
    return tasks


def section(tasks: Sequence[Task], heading: str) -> list[Task]:
    wanted = plain(heading.lstrip("#")).casefold()
    return [task for task in tasks if any(each.casefold() == wanted for each in task.headings)]


def in_scope(tasks: Sequence[Task]) -> list[Task]:
    """Return the tasks that are meant to be done now: not those below headings such as `Out of scope` and `Future ideas`."""
    return [task for task in tasks if not any(map(_LATER.match, task.headings))]


def has_heading(text: str, heading: str) -> bool:
    wanted = plain(heading.lstrip("#")).casefold()
    lines = read_lines(text, hides_rest=False)
    return any(line.is_heading and line.headings[-1].casefold() == wanted for line in lines)


def read_lines(text: str, *, hides_rest: bool = True) -> Iterator[Line]:
    """Yield the lines that count. `hides_rest`: a block of code or a comment without an end reaches to the end."""
    headings: list[tuple[int, str]] = []
    names: tuple[str, ...] = ()
    fence = ""  # the mark that began a block of code
    in_list = False
    lines = _without_comments(text, hides_rest=hides_rest).splitlines()
    last = len(lines) if hides_rest else _unclosed_fence(lines)
    for number, raw in enumerate(lines):
        was_code, fence = fence, _next_fence(raw, fence) if number < last else ""
        if was_code or fence:
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


def _next_fence(line: str, fence: str) -> str:
    """Return the mark of the block of code that goes on after a line, given that of the block that it is in."""
    mark = _FENCE.match(line)
    if fence:
        return "" if mark and mark[1].startswith(fence) and not mark[2].strip() else fence
    return mark[1] if mark and not (mark[1][0] == "`" and "`" in mark[2]) else ""


def _unclosed_fence(lines: Sequence[str]) -> int:
    """Return the number of the line that begins a block of code without an end, or the number of lines."""
    fence, start = "", 0
    for number, line in enumerate(lines):
        was_code, fence = fence, _next_fence(line, fence)
        if fence and not was_code:
            start = number
    return start if fence else len(lines)


def _heading_text(text: str) -> str:
    """Return the text without the marks that may close a heading: `# Title #`."""
    text = text.strip()
    closed = text.rstrip("#")
    return plain(closed if closed[-1:].isspace() or not closed else text)


def _without_comments(text: str, *, hides_rest: bool) -> str:
    """Remove HTML comments; one that has no end reaches to the end, as browsers show it, if it `hides_rest`."""
    parts, place = [], 0
    while (start := text.find("<!--", place)) >= 0:
        end = text.find("-->", start + 4)
        parts.append(text[place:start])
        if end < 0:
            return "".join(parts if hides_rest else [*parts, text[start + 4 :]])
        parts.append("\n" * text.count("\n", start, end))
        place = end + 3
    return "".join([*parts, text[place:]])


def plain(text: str) -> str:
    return one_line(_EMPHASIS.sub("", text))


def _checkbox(line: Line) -> Task | None:
    found = _CHECKBOX.match(line.text)
    is_done = _is_checked(found[1]) if found else None
    if not found or is_done is None:
        return None
    return Task(one_line(found[2] or "", MAX_TASK_CHARS) or "(without a name)", is_done, line.headings)


def _is_checked(mark: str) -> bool | None:
    """Return what a mark means, or None if it is a reference such as `[1]` or a label such as `[UI]`."""
    mark = mark.replace("\ufe0f", "").strip()
    if mark.isdecimal() or (len(mark) > 1 and mark.isalnum()):
        return None
    return mark != "" and mark in _CLOSED_MARKS


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
    box = re.match(r"\[(.{0,2})\]\s+(.+)", name)
    if box and (is_done := _is_checked(box[1])) is not None:
        return Task(box[2], is_done, line.headings[:-1])
    found = _HEADING_STATUS.match(name)
    done = _is_done(found[2] or found[3]) if found else None
    return None if found is None or done is None else Task(found[1], done, line.headings[:-1])


def _cells(line: str) -> list[str] | None:
    stripped = line.strip()
    if not (stripped.startswith("|") and stripped.endswith("|") and len(stripped) > 1):
        return None
    return [plain(cell) for cell in stripped[1:-1].split("|")]


# Reasons


def describe_open(tasks: Sequence[Task], *, with_section: bool = False) -> str:
    still_open = [task for task in tasks if not task.is_done]
    lines = [
        f"- {task.text}" + (f" ({task.headings[-1]})" if with_section and task.headings else "")
        for task in still_open[:MAX_LISTED]
    ]
    more = len(still_open) - MAX_LISTED
    return "\n".join([*lines, *([f"… and {more} more"] if more > 0 else [])])


def count_open(tasks: Sequence[Task]) -> int:
    return sum(not task.is_done for task in tasks)
