"""Read only the records of a transcript that a resumed session needs.

The messages before the last compaction are not needed, and parsing them takes most of the time. They are searched for
the few records that still count.
"""

import os
from collections.abc import Iterator
from typing import Any, BinaryIO

from turngate.core.conversation.messages import UserMessage
from turngate.core.verdict.unenforced import RECORD_TYPE
from turngate.state.files import open_regular_file
from turngate.transcript.line_search import lines_with, pieces_backwards, read_span
from turngate.transcript.reader import MAX_LINE_BYTES, message_of, parse_record, records_in

_RESTARTS = (b'"summary"', b'"cleared"')
_PROMPTS = (b'"user"',)
_COPY = b'{"type":"tool_call",'  # of a call that the message after it has too
# Inside a text the quotes would be escaped, so few lines contain these by chance.
_KEYS = (b'"key"',)
_TURN_ENDS = (b'"turn_end"', b'"cleared"')
_MISSED = (f'"{RECORD_TYPE}"'.encode(),)


def read_needed_records(path: str) -> Iterator[dict[str, Any]]:
    """Yield the records from which the conversation and its state follow, in the order of the file.

    These are all records since the last compaction or `cleared`, and since the last message of the user before it: this
    message decides what is counted and asked. Of the earlier ones, these are the keys that were delivered and the gates
    that the turn has missed.
    """
    try:
        with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
            start = _find_start(file)
            yield from _read_spans(file, [*_find_kept(file, start)][::-1])
            file.seek(start)
            yield from records_in(file, without=_COPY)
    except FileNotFoundError:
        return


def _find_start(file: BinaryIO) -> int:
    """Return the offset of the earlier one of the last restart and the last message of the user, or 0."""
    size = os.fstat(file.fileno()).st_size
    restarts = (span for span in _find_spans(file, _RESTARTS, 0, size) if _is_restart(_read(file, span)))
    restart = next(restarts, (0, 0))[0]
    if not restart:
        return 0
    prompts = (span for span in _find_spans(file, _PROMPTS, 0, size) if _is_prompt(_read(file, span)))
    return min(restart, next(prompts, (0, 0))[0])


def _find_kept(file: BinaryIO, end: int) -> Iterator[tuple[int, int]]:
    """Yield where the lines before `end` are that may hold a key, or a missed gate since the end of a turn."""
    turn_ends = (span for span in _find_spans(file, _TURN_ENDS, 0, end) if _is_turn_end(_read(file, span)))
    turn_end = next(turn_ends, (0, 0))[0]
    yield from _find_spans(file, _KEYS + _MISSED, turn_end, end)
    yield from _find_spans(file, _KEYS, 0, turn_end)


def _find_spans(
    file: BinaryIO, needles: tuple[bytes, ...], start: int, end: int
) -> Iterator[tuple[int, int]]:
    """Yield where the lines with a needle begin and end, from the end backwards."""
    for offset, data in pieces_backwards(file.fileno(), start, end, MAX_LINE_BYTES):
        for first, last in lines_with(needles, data):
            if last - first < MAX_LINE_BYTES:
                yield offset + first, offset + last


def _read(file: BinaryIO, span: tuple[int, int]) -> bytes:
    return read_span(file.fileno(), *span)


def _read_spans(file: BinaryIO, spans: list[tuple[int, int]]) -> Iterator[dict[str, Any]]:
    for span in spans:
        record = parse_record(_read(file, span))
        if record is not None:
            yield record


def _is_restart(line: bytes) -> bool:
    record = parse_record(line) or {}
    message = message_of(record)
    return record.get("type") == "cleared" or (
        isinstance(message, UserMessage) and message.origin == "summary"
    )


def _is_turn_end(line: bytes) -> bool:
    return (parse_record(line) or {}).get("type") in ("turn_end", "cleared")


def _is_prompt(line: bytes) -> bool:
    """Return whether it is a message of the user with an id, so that no earlier record changes the state after it."""
    record = {} if b'"tool_result"' in line else parse_record(line) or {}
    message = message_of(record)
    is_prompt = isinstance(message, UserMessage) and message.origin == "user"
    return is_prompt and isinstance(record.get("uuid"), str)
