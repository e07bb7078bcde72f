"""Search a transcript backward from its end, without parsing: which program wrote it, where its last tool call is.

Imports little: `turngate hook` asks at every stop.
"""

import json
import os
from collections.abc import Iterable, Iterator

from turngate.state.files import open_regular_file

CLAUDE, CODEX, QWEN, GEMINI, COPILOT = "claude", "codex", "qwen", "gemini", "copilot"
FIRST_CHUNK_BYTES = 32 * 1024  # most searches end near the end of the file
CHUNK_BYTES = 1024 * 1024
MAX_LINE_BYTES = 8 * 1024 * 1024  # of a line that is read
MAX_PARSED_BYTES = 256 * 1024  # of a line that is parsed here
MAX_CANDIDATES = 100  # lines that look like a message,
MAX_SEARCHED_BYTES = 400 * 1024 * 1024  # and where they are searched for: the end
_ROLES = (b'"role":"user"', b'"role":"assistant"', b'"role":"model"')


def recognize_format(file: int) -> str | None:
    """Return the format of an open transcript, or None if it is not known. That of Claude Code may begin with any record."""
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
    """Return the offset of the last line with a tool call; -1: there is none; None: not known, such as of a line that is too long."""
    try:
        with open(open_regular_file(path, os.O_RDONLY), "rb", buffering=0) as opened:
            form = recognize_format(file := opened.fileno())
            if form is None:
                return None
            for offset, data in pieces_backwards(file, 0, os.fstat(file).st_size, MAX_LINE_BYTES):
                first = next((first for first, _ in lines_with(CALLS[form], data)), None if data else 0)
                if first is not None:
                    return offset + first
            return -1
    except OSError:
        return None


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


# Lines with certain bytes


def read_span(file: int, start: int, end: int) -> bytes:
    try:
        return os.pread(file, end - start, start)
    except OSError:
        return b""


def pieces_backwards(file: int, start: int, end: int, max_line: int) -> Iterator[tuple[int, bytes]]:
    """Yield whole lines and their offset, from the end backward; b"" replaces a line that is too long."""
    rest: list[bytes] = []  # chunks of a line that begins in an earlier chunk, the last chunk first
    size, offset, wanted = 0, end, FIRST_CHUNK_BYTES
    while offset > start:
        first, wanted = max(start, offset - wanted), min(4 * wanted, CHUNK_BYTES)
        chunk = read_span(file, first, offset)
        if len(chunk) < offset - first:  # the file was truncated meanwhile
            return
        offset = first
        split = chunk.find(b"\n") + 1 if offset > start else 0
        if split or offset == start:
            lines = chunk[split:]
            last = lines.rfind(b"\n") + 1
            if size + len(lines) - last > max_line:
                lines = lines[:last]
                yield offset + split + len(lines), b""
            if lines or rest:
                yield offset + split, b"".join([lines, *reversed(rest)])
            rest, size, chunk = [], 0, chunk[:split]
        size += len(chunk)
        rest = [*rest, chunk] if size <= max_line else []


def lines_with(needles: Iterable[bytes], data: bytes) -> Iterator[tuple[int, int]]:
    """Yield where the lines with a needle begin and end, each line once, from the end backward."""
    places = {needle: data.rfind(needle) for needle in needles}
    while (last := max(places.values(), default=-1)) >= 0:
        first = data.rfind(b"\n", 0, last) + 1
        end = data.find(b"\n", last)
        yield first, len(data) if end < 0 else end
        for needle, place in places.items():
            if place >= first:
                places[needle] = data.rfind(needle, 0, first)
