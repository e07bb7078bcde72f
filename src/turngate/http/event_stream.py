"""Server-sent events: bytes → events, bounded. See https://html.spec.whatwg.org/multipage/server-sent-events.html."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from turngate.http.connection import HttpError

MAX_EVENT_BYTES = 16 * 1024 * 1024
_LINE_END = re.compile(rb"\r\n|\n|\r")


class Event(NamedTuple):
    name: str  # "" without a name
    data: str


class EventDecoder:
    """Feed it the pieces of a body; an event is returned when the empty line after it has arrived."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []  # the beginning of a line, in pieces
        self._name = ""
        self._data: list[str] = []
        self._size = 0
        self._is_first = True

    def feed(self, piece: bytes) -> Iterator[Event]:
        """Raises HttpError if an event is too large or is not UTF-8."""
        self._size += len(piece)
        has_end = b"\n" in piece or b"\r" in piece or self._rest[-1:] == [b"\r"]
        self._rest.append(piece)
        if has_end:
            yield from self._take_lines(b"".join(self._rest))
        if self._size > MAX_EVENT_BYTES:
            raise HttpError(f"one event is larger than {MAX_EVENT_BYTES // 2**20} MiB")

    def _take_lines(self, data: bytes) -> Iterator[Event]:
        # A carriage return at the end may be half of a line break: the next piece decides.
        held = b"\r" if data.endswith(b"\r") else b""
        *lines, rest = _LINE_END.split(data.removesuffix(held))
        self._rest = [rest, held] if held else [rest]
        for line in lines:
            if event := self._take(line):
                yield event

    def _take(self, line: bytes) -> Event | None:
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError:
            raise HttpError("the stream of events is not UTF-8") from None
        if self._is_first:
            text, self._is_first = text.removeprefix("\ufeff"), False
        if not text:
            event = Event(self._name, "\n".join(self._data)) if self._data else None
            self._name, self._data, self._size = "", [], 0
            return event
        field, _, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
        elif field == "event":
            self._name = value
        return None
