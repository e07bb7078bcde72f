"""What a tool call changes and prints, for a person: differences with line numbers, and folded output."""

import json
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from itertools import takewhile
from typing import Any

from turngate.agent.tools.files import replace_text
from turngate.cli.console.conversation_text import format_tool
from turngate.cli.console.ui import TextStyle
from turngate.core.conversation.messages import ToolResult, ToolUse
from turngate.core.conversation.tools import ToolFailed
from turngate.core.text import MAX_SHOWN_LINE_CHARS, strip_controls, truncate

MAX_OUTPUT_LINES = 4  # that are shown at once
MAX_CHANGE_LINES = 30
CONTEXT_LINES = 2
MAX_COMPARED = (
    500_000  # pairs of lines; more are shown as removed and added: a comparison would take too long
)
_WITHOUT_OUTPUT = ("Read", "TodoWrite", "AskUser")  # the line of the call says enough

StyledLine = tuple[str, TextStyle]


def format_request(use: ToolUse, project: str, before: str | None) -> list[StyledLine]:
    """Format a tool call with everything that the user would permit; `before`: the text of its file, if it is known."""
    args = use.input
    match use.name:
        case "Bash":
            return [(f"Bash: {strip_controls(str(args.get('command', '')))}", "notice")]
        case "Write":
            change = format_change(before or "", str(args.get("content", "")))
        case "Edit":
            change = _format_edit(args, before)
        case _:
            text = strip_controls(json.dumps(dict(args), ensure_ascii=False, default=str))
            return [(f"{use.name}: {text}", "notice")]
    return [(format_tool(use, project), "notice"), *change]


def _format_edit(args: Mapping[str, Any], before: str | None) -> list[StyledLine]:
    old, new = str(args.get("old_string", "")), str(args.get("new_string", ""))
    try:
        after, _ = replace_text("", before or "", old, new, bool(args.get("replace_all")))
    except ToolFailed:  # the file is not known, or the edit will fail
        return format_change(old, new, numbered=False)
    return format_change(before or "", after)


def format_output(result: ToolResult, change: tuple[str, str] | None) -> list[StyledLine]:
    """Format what a tool has changed or printed."""
    if change:
        return format_change(*change)
    text = strip_controls(result.content).strip("\r\n").rstrip()  # the first line keeps its indentation
    return [(f"    {line.expandtabs()}", "dim") for line in text.splitlines()]


def fold_output(use: ToolUse, output: list[StyledLine]) -> list[StyledLine]:
    """Return the lines that are shown at once, each of them truncated, then how many were left out."""
    limit = MAX_CHANGE_LINES if use.name in ("Write", "Edit") else MAX_OUTPUT_LINES
    if use.name in _WITHOUT_OUTPUT:
        return []
    limit = limit if len(output) > limit + 1 else len(output)
    shown = [(truncate(text, MAX_SHOWN_LINE_CHARS), style) for text, style in output[:limit]]
    left_out = len(output) - limit
    return [*shown, (f"    … {left_out:,} more lines; /output shows all", "dim")] if left_out else shown


def format_change(before: str, after: str, *, numbered: bool = True) -> list[StyledLine]:
    """Return the lines that differ, and some around them: `  12 - old`. Without numbers, the texts are parts of a file."""
    old, new = _lines(before, after), _lines(after, before)
    width = len(str(max(len(old), len(new)))) if numbered else 0
    differences = list(_differences(old, new))
    shown: list[StyledLine] = []
    end = 0  # of the new lines that are shown
    for number, (old_start, old_end, new_start, new_end) in enumerate(differences):
        context = max(end, new_start - CONTEXT_LINES)
        if shown and context > end:
            shown.append((f"  {'':{width}} ⋮", "dim"))
        following = differences[number + 1][2] if number + 1 < len(differences) else len(new)
        end = min(new_end + CONTEXT_LINES, following)
        parts: tuple[tuple[TextStyle, str, list[str], int, int], ...] = (
            ("plain", " ", new, context, new_start),
            ("bad", "-", old, old_start, old_end),
            ("good", "+", new, new_start, new_end),
            ("plain", " ", new, new_end, end),
        )
        for style, sign, lines, first, last in parts:
            for place, line in enumerate(lines[first:last], first + 1):
                shown.append((f"  {f'{place:>{width}} ' if numbered else ''}{sign} {line}", style))
    return shown


def _lines(text: str, other: str) -> list[str]:
    """Return the lines; that there is no newline at the end is said if the other text has one."""
    lines = text.removesuffix("\n").split("\n") if text else []
    if lines and not text.endswith("\n") and other.endswith("\n"):
        lines[-1] += "  (no newline at the end)"
    return lines


def _differences(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """Yield where lines differ, as positions in both; what is the same at both ends is not compared."""
    head = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))
    ends = zip(reversed(old[head:]), reversed(new[head:]), strict=False)
    tail = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], ends))
    old_part, new_part = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(old_part) * len(new_part) > MAX_COMPARED:
        yield head, len(old) - tail, head, len(new) - tail
        return
    for kind, *places in SequenceMatcher(None, old_part, new_part, autojunk=False).get_opcodes():
        if kind != "equal":
            a, b, c, d = places
            yield head + a, head + b, head + c, head + d
