"""Which program wrote a transcript, and where its last tool call is. Imports little: `turngate hook` asks at every stop."""

import json
import os
from collections.abc import Iterable, Iterator

from turngate.state.files import open_regular_file
from turngate.transcript.line_search import CHUNK_BYTES, lines_with, pieces_backwards, read_span

CLAUDE, CODEX, QWEN, GEMINI, COPILOT = "claude", "codex", "qwen", "gemini", "copilot"
MAX_LINE_BYTES = 8 * 1024 * 1024  # of a line that is read
MAX_PARSED_BYTES = 256 * 1024  # of a line that is parsed here
MAX_CANDIDATES = 100  # lines that look like a message,
MAX_SEARCHED_BYTES = 400 * 1024 * 1024  # and where they are searched for: the end
_ROLES = (b'"role":"user"', b'"role":"assistant"', b'"role":"model"')


def recognize_format(file: int) -> str | None:
    """Return the format of an open transcript, or None: it is not known, and its records must not be interpreted.

    Claude Code, and hosts that write as it does, begin with any record. So its messages are searched for.
    """
    head = read_span(file, 0, CHUNK_BYTES).split(b"\n", 1)[0]
    return _format_of_first(_parse(head)) or _format_of_messages(file)


def _format_of_first(record: dict[str, object]) -> str | None:
    kind = record.get("type")
    if kind in ("session_meta", "response_item") and isinstance(record.get("payload"), dict):
        return CODEX
    if isinstance(kind, str) and "." in kind and isinstance(record.get("data"), dict):
        return COPILOT
    return GEMINI if "projectHash" in record and "sessionId" in record else None


def _format_of_messages(file: int) -> str | None:
    for number, (_, line) in enumerate(lines_backwards(file, both_styles(_ROLES), MAX_SEARCHED_BYTES)):
        message = _parse(line).get("message")
        if isinstance(message, dict) and isinstance(message.get("role"), str):
            if "content" in message:
                return CLAUDE
            if isinstance(message.get("parts"), list):
                return QWEN
        if number == MAX_CANDIDATES:
            break
    return None


def tool_call_position(path: str) -> int | None:
    """Return the offset of the last line with a tool call; -1: there is none; None: it cannot be known.

    A line that is too long to be read may be a tool call.
    """
    try:
        file = open_regular_file(path, os.O_RDONLY)
    except (OSError, ValueError):
        return None
    try:
        form = recognize_format(file)
        if form is None:
            return None
        for offset, data in pieces_backwards(file, 0, os.fstat(file).st_size, MAX_LINE_BYTES):
            first = next((first for first, _ in lines_with(CALLS[form], data)), None if data else 0)
            if first is not None:
                return offset + first
        return -1
    finally:
        os.close(file)


def lines_backwards(
    file: int,
    needles: tuple[bytes, ...],
    limit: int | None = None,
    *,
    start: int = 0,
    end: int | None = None,
    max_line: int = MAX_LINE_BYTES,
) -> Iterator[tuple[int, bytes]]:
    """Yield the lines with a needle and their offsets, from the end backward, at most in the last `limit` bytes."""
    end = os.fstat(file).st_size if end is None else end
    start = start if limit is None else max(start, end - limit)
    for offset, data in pieces_backwards(file, start, end, max_line):
        for first, last in lines_with(needles, data):
            yield offset + first, data[first:last]


def both_styles(needles: Iterable[bytes]) -> tuple[bytes, ...]:
    """Return each key and its value in both styles of JSON. Inside a text the quotes would be escaped."""
    return tuple(style for needle in needles for style in (needle, needle.replace(b":", b": ")))


# What a line with a tool call has, in each format.
CALLS = {
    CLAUDE: both_styles([b'"type":"tool_use"', b'"type":"server_tool_use"', b'"type":"mcp_tool_use"']),
    CODEX: both_styles(
        b'"type":"%s_call"' % kind
        for kind in b"function custom_tool local_shell mcp_tool web_search tool_search image_generation".split()
    ),
    QWEN: (b'"functionCall"',),
    GEMINI: (b'"toolCalls"', b'"functionCall"'),
    COPILOT: both_styles([b'"type":"tool.execution_start"']),
}


def _parse(line: bytes) -> dict[str, object]:
    if len(line) > MAX_PARSED_BYTES:
        return {}
    try:
        record = json.loads(line.decode("utf-8", "replace").removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}
