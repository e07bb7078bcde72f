"""What a judge may see of a conversation: its last answer, a bounded digest, or as much of it as fits."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from turngate.core.text import indent, join_ends, one_line, truncate_bytes, truncate_bytes_middle
from turngate.transcript.digest.scan import look, opened, records, search, telling
from turngate.transcript.digest.summary import DigestBuilder, blocks, result_text

HEAD = 512 * 1024  # bytes of a long transcript that are read: its beginning,
TAIL = 6 * 1024 * 1024  # and its end
MIDDLE = 400 * 1024 * 1024  # bytes before the end that are searched for requests and changes
DIGEST_MOST = 12_000  # bytes in UTF-8, which is 3,000 to 4,000 tokens in most scripts
ANSWER_MOST = 100_000  # bytes of the last answer, when it is all that is asked for


def digest(path: str) -> str:
    """What was asked, what was changed, which commands ran and how they ended, and the last answer."""
    seen = DigestBuilder()
    with opened(path) as file:
        window = look(file.fileno(), HEAD, TAIL)
        needles = telling(file.fileno())
        middle = search(file.fileno(), max(window.start, window.end - MIDDLE), window.end, needles)
        for record in records(file.fileno(), window.head, numbers=False):
            seen.note(record)
        if window.left_out:
            seen.leap()
        for record in records(file.fileno(), middle, numbers=False):
            seen.note(record, middle=True)
        for record in records(file.fileno(), window.tail, numbers=False):
            seen.note(record)
    unread = window.head.unread + middle.unread + window.tail.unread + seen.unread
    gaps = _gaps(window.left_out, middle.reached - window.start, unread)
    head = "\n\n".join(gaps)
    told = seen.told(DIGEST_MOST - len(head.encode()))
    return truncate_bytes("\n\n".join(filter(None, (head, *told))), DIGEST_MOST)


def last_answer(path: str) -> str:
    """The text of the last answer, or nothing."""
    seen = DigestBuilder()
    with opened(path) as file:
        for record in records(file.fileno(), look(file.fileno(), 0, TAIL).tail):
            seen.note(record)
    return truncate_bytes_middle(seen.answer, ANSWER_MOST)


def conversation(path: str, most: int) -> str:
    """All that was said and done, as text; more than so many bytes are left out in the middle."""
    with opened(path) as file:
        window = look(file.fileno(), min(most, HEAD), 2 * most)
        gaps = _gaps(0, 0, window.head.unread + window.tail.unread)
        head = "\n\n".join([*gaps, *_spoken(records(file.fileno(), window.head))])
        tail = "\n\n".join(_spoken(records(file.fileno(), window.tail)))
    if window.left_out:
        return join_ends(head, tail, most, window.left_out)
    return truncate_bytes_middle("\n\n".join(filter(None, (head, tail))), most)


def _spoken(records: Iterable[Mapping[str, Any] | None]) -> Iterator[str]:
    for record in records:
        if record is None:
            yield "[… a record that is nested too deeply to be read …]"
            continue
        message = record.get("message")
        if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            continue
        who = "Agent" if message.get("role") == "assistant" else "Note" if record.get("isMeta") else "User"
        for block in blocks(message.get("content")):
            match block:
                case {"type": "text", "text": str(text)} if text.strip():
                    yield f"{who}: {indent(text)[2:]}"
                case {"type": "tool_use", "name": str(name), "input": given}:
                    yield f"Call of {one_line(name)}: {_json(given)}"
                case {"type": "tool_result", "content": said}:
                    failed = " (failed)" if block.get("is_error") is True else ""
                    yield f"Result{failed}: {indent(result_text(said))[2:]}"
                case _:
                    pass


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # what could just be read can not always be written
        return "…"


def _gaps(left_out: int, unseen: int, unread: int) -> Iterator[str]:
    """What a digest does not show."""
    if left_out:
        nothing = f", and nothing of the first {unseen:,} of them" if unseen else ""
        yield f"[… of {left_out:,} bytes in the middle only requests and changes{nothing} …]"
    if unread:
        yield f"[… records that are too large to be read: {unread:,} …]"
