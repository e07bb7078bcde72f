"""What a judge sees of a transcript: the last answer, a bounded digest, or as much of it as fits."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from turngate.core.text import indent, join_ends, one_line, truncate_bytes, truncate_bytes_middle
from turngate.transcript.digest.source import has_unknown_format, open_or_empty, record_source
from turngate.transcript.digest.summary import MESSAGE_TYPES, DigestBuilder, blocks, result_text

__all__ = ["conversation", "digest", "has_unknown_format", "last_answer"]

HEAD_BYTES = 512 * 1024  # the beginning of a long transcript that is read,
TAIL_BYTES = 6 * 1024 * 1024  # and its end
MAX_MIDDLE_BYTES = 400 * 1024 * 1024  # before the tail, searched for requests and changes
MAX_DIGEST_BYTES = 12_000  # 3,000 to 4,000 tokens in most scripts
MAX_ANSWER_BYTES = 100_000  # of the last answer, when the judge sees only that


def digest(path: str, agent: str | None = None) -> str:
    """Return the requests, the changed files, the commands and how they ended, and the last answer.

    `agent` is the id of a subagent: some hosts write several agents into one transcript.
    """
    builder = DigestBuilder()
    with open_or_empty(path) as file:
        source = record_source(file, agent)
        window = source.window(HEAD_BYTES, TAIL_BYTES)
        start = max(window.middle_start, window.middle_end - MAX_MIDDLE_BYTES)
        middle = source.find_middle(start, window.middle_end)
        for record in source.records(window.head, numbers=False):
            builder.add(record)
        if window.middle_bytes:
            builder.skip_gap()
        for record in source.records(middle, numbers=False):
            builder.add(record, middle=True)
        for record in source.records(window.tail, numbers=False):
            builder.add(record)
    unread = window.head.too_large + middle.too_large + window.tail.too_large + builder.unread
    head = "\n\n".join(_gaps(window.middle_bytes, middle.searched_from - window.middle_start, unread))
    parts = builder.render(MAX_DIGEST_BYTES - len(head.encode()))
    return truncate_bytes("\n\n".join(filter(None, (head, *parts))), MAX_DIGEST_BYTES)


def last_answer(path: str, agent: str | None = None) -> str:
    """Return the text of the last answer, or ""."""
    builder = DigestBuilder()
    with open_or_empty(path) as file:
        source = record_source(file, agent)
        for record in source.records(source.window(0, TAIL_BYTES).tail):
            builder.add(record)
    return truncate_bytes_middle(builder.answer, MAX_ANSWER_BYTES)


def conversation(path: str, limit: int, agent: str | None = None) -> str:
    """Return the whole conversation as text; what exceeds `limit` bytes is left out in the middle."""
    with open_or_empty(path) as file:
        source = record_source(file, agent)
        window = source.window(min(limit, HEAD_BYTES), 2 * limit)
        gaps = _gaps(0, 0, window.head.too_large + window.tail.too_large)
        head = "\n\n".join([*gaps, *_message_texts(source.records(window.head))])
        tail = "\n\n".join(_message_texts(source.records(window.tail)))
    if window.middle_bytes:
        return join_ends(head, tail, limit, window.middle_bytes)
    return truncate_bytes_middle("\n\n".join(filter(None, (head, tail))), limit)


def _message_texts(records: Iterable[Mapping[str, Any] | None]) -> Iterator[str]:
    for record in records:
        if record is None:
            yield "[… a record that is nested too deeply to be read …]"
            continue
        message = record.get("message")
        if record.get("type") not in MESSAGE_TYPES or not isinstance(message, dict):
            continue
        speaker = (
            "Agent" if message.get("role") == "assistant" else "Note" if record.get("isMeta") else "User"
        )
        for block in blocks(message.get("content")):
            match block:
                case {"type": "text", "text": str(text)} if text.strip():
                    yield f"{speaker}: {indent(text)[2:]}"
                case {"type": "tool_use", "name": str(name), "input": args}:
                    yield f"Call of {one_line(name)}: {_json(args)}"
                case {"type": "tool_result", "content": content}:
                    status = " (failed)" if block.get("is_error") is True else ""
                    yield f"Result{status}: {indent(result_text(content))[2:]}"
                case _:
                    pass


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # writing can need more depth than parsing
        return "…"


def _gaps(left_out: int, unseen: int, unread: int) -> Iterator[str]:
    """Describe what a digest does not show."""
    if left_out:
        nothing = f", and nothing of the first {unseen:,} of them" if unseen else ""
        yield f"[… of {left_out:,} bytes in the middle only requests and changes{nothing} …]"
    if unread:
        yield f"[… records that are too large to be read: {unread:,} …]"
