"""Read a transcript: its records, its messages, its last assistant message."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice
from typing import Any, BinaryIO, get_args

from turngate.core.conversation import messages
from turngate.core.conversation.messages import Message, Origin, Reply, StopReason, Text, ToolResult, ToolUse
from turngate.core.text import one_line
from turngate.state.files import open_regular_file
from turngate.transcript.format_detection import pieces_backwards

MAX_LINE_BYTES = 64 * 1024 * 1024  # of one record
MAX_TITLE_CHARS = 80
MAX_TITLE_BYTES = 1024 * 1024
MAX_TITLE_RECORDS = 20  # in which the user's first message is searched


def read_records(path: str, max_bytes: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield the records that begin in the first `max_bytes`, by default all; skip lines that are not JSON objects."""
    try:
        with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
            yield from records_in(file, max_bytes)
    except FileNotFoundError:
        return


def title_and_project(path: str) -> tuple[str, str]:
    """Return the start of the user's first message and the project; "" for what a transcript of ours does not say."""
    project = ""
    with suppress(OSError):
        for number, record in enumerate(read_records(path, MAX_TITLE_BYTES)):
            message = message_of(record)
            project = project or f"{record.get('machine', '')}{record.get('cwd', '')}"
            if isinstance(message, messages.UserMessage) and message.origin == "user":
                return one_line(message.text, MAX_TITLE_CHARS), project
            if number > MAX_TITLE_RECORDS:
                break
    return "", project


def records_in(
    file: BinaryIO, max_bytes: int | None = None, *, without: bytes = b"\n"
) -> Iterator[dict[str, Any]]:
    """Yield the records from the position of the file on, except lines that begin with `without`."""
    for line in _lines(file, max_bytes):
        record = None if line.startswith(without) else parse_record(line)
        if record is not None:
            yield record


def _lines(file: BinaryIO, max_bytes: int | None) -> Iterator[bytes]:
    """Yield the lines. Of one that is too long, such as a block of zeros after a crash, every part is skipped."""
    part = b"\n"
    while max_bytes is None or file.tell() < max_bytes:
        begins_line = part.endswith(b"\n")
        part = file.readline(MAX_LINE_BYTES)
        if not part:
            return
        if begins_line and (part.endswith(b"\n") or len(part) < MAX_LINE_BYTES):
            yield part


def parse_record(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


_ORIGINS: tuple[object, ...] = get_args(Origin)
_STOP_REASONS: tuple[object, ...] = get_args(StopReason)
_USAGE_FIELDS = tuple(messages.Usage.__dataclass_fields__)


def message_of(record: Mapping[str, Any]) -> Message | None:
    """Return the message of a record, or None if it has none that Transcript could have written."""
    message = record.get("message")
    if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
        return None
    content = message.get("content")
    if message.get("role") == "assistant":
        return _read_reply(message, content) if isinstance(content, list) else None
    if isinstance(content, str):
        return messages.UserMessage(content, _read_origin(record))
    results = tuple(_read_results(content if isinstance(content, list) else []))
    return messages.ToolResults(results) if results else None


def _read_origin(record: Mapping[str, Any]) -> Origin:
    """Treat an unknown origin as injected context if the record is marked isMeta, otherwise as user input."""
    origin: Any = record.get("origin")
    fallback: Origin = "context" if record.get("isMeta") is True else "user"
    return origin if origin in _ORIGINS else fallback


def _read_results(blocks: list[Any]) -> Iterator[ToolResult]:
    for block in blocks:
        if isinstance(block, dict) and block.get("type") == "tool_result":
            identity = block.get("tool_use_id")
            if isinstance(identity, str):
                text = "\n".join(_texts_of(block.get("content")))
                yield ToolResult(identity, text, block.get("is_error") is True)


def _read_reply(message: Mapping[str, Any], content: list[Any]) -> Reply:
    reason: Any = message.get("stop_reason")
    stop: StopReason = reason if reason in _STOP_REASONS else "end_turn"
    used = counts if isinstance(counts := message.get("usage"), dict) else {}
    usage = messages.Usage(**{name: used[name] for name in _USAGE_FIELDS if type(used.get(name)) is int})
    model, identity = (v if isinstance(v := message.get(key), str) else "" for key in ("model", "id"))
    return Reply(tuple(_read_blocks(content)), stop, usage, model, identity)


def _read_blocks(content: list[Any]) -> Iterator[Text | ToolUse]:
    """Yield the blocks of a reply, without calls whose id occurred before: results could not be assigned to them."""
    ids: set[str] = set()
    for raw in content:
        kind = raw.get("type") if isinstance(raw, dict) else None
        if kind == "text" and isinstance(text := raw.get("text"), str):
            yield Text(text)
        elif kind == "tool_use":
            identity, name, args = raw.get("id"), raw.get("name"), raw.get("input")
            if isinstance(identity, str) and isinstance(name, str) and identity not in ids:
                ids.add(identity)
                yield ToolUse(identity, name, args if isinstance(args, dict) else {})


LAST_LINES = 50
MAX_TAIL_BYTES = 16 * 1024 * 1024  # the last lines are searched only within so many bytes


def read_last_assistant_message(path: str, lines: int = LAST_LINES) -> str | None:
    """Return the text of the last assistant message in the last lines, or None. Raises nothing.

    It reads from the end, so its cost does not depend on the size of the file.
    """
    texts = read_last_texts(path, lines)
    return "\n".join(texts) if texts else None


def read_last_texts(path: str, lines: int = LAST_LINES) -> tuple[str, ...]:
    for line in _last_lines(path, lines):
        record = parse_record(line)
        message = record.get("message") if record else None
        if isinstance(message, dict) and message.get("role") == "assistant":
            texts = _texts_of(message.get("content"))
            if any(text.strip() for text in texts):
                return texts
    return ()


def _texts_of(content: Any) -> tuple[str, ...]:
    if isinstance(content, str):
        return (content,)
    blocks = _read_blocks(content if isinstance(content, list) else [])
    return tuple(block.text for block in blocks if isinstance(block, Text))


def _last_lines(path: str, count: int) -> list[bytes]:
    try:
        with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
            size = os.fstat(file.fileno()).st_size
            pieces = pieces_backwards(file.fileno(), max(0, size - MAX_TAIL_BYTES), size, MAX_TAIL_BYTES)
            return list(islice((line for _, data in pieces for line in reversed(data.splitlines())), count))
    except OSError:
        return []


def blocks(content: object) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def result_text(content: object) -> str:
    texts = (block.get("text") for block in blocks(content) if isinstance(block, dict))
    return "\n".join(text if isinstance(text, str) else "" for text in texts)


def time_of(record: Mapping[str, Any]) -> float | None:
    from datetime import UTC, datetime  # noqa: PLC0415 # lazy: few stops read a time

    try:
        time = datetime.fromisoformat(record.get("timestamp", ""))
    except (TypeError, ValueError):
        return None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
