"""Where the records of a transcript stand, and what they hold.

First it is found out where those stand that matter, from the end backwards and without parsing; then these are read
in order. So the latest ones come first when there are too many.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from turngate.core.hook_output import parsed
from turngate.state.files import open_regular_file

EFFORT = (
    6_000_000  # what reading one part of a transcript may cost, see `search`; always enough for the beginning
)
CHUNK = 1024 * 1024
LONGEST_RECORD = 8 * 1024 * 1024
SEPARATORS = 150_000  # commas and brackets of a record: each may stand for 200 bytes of memory


def opened(path: str) -> BinaryIO:
    """What can not be read is as good as empty: whoever asks has the hook's input all the same."""
    try:
        return open(open_regular_file(path, os.O_RDONLY), "rb", buffering=0)
    except (OSError, ValueError):  # a name may hold what no name can
        return open(os.devnull, "rb", buffering=0)


def _bytes(file: int, start: int, end: int) -> bytes:
    try:
        return os.pread(file, end - start, start)
    except OSError:
        return b""


@dataclass(frozen=True)
class Found:
    """Where records stand, in their order."""

    spans: list[tuple[int, int]]
    reached: int  # nothing before it was looked at
    unread: int  # how many are too large


@dataclass(frozen=True)
class Window:
    """A file's beginning and its end, and what lies between them."""

    head: Found
    tail: Found
    start: int  # of what lies between

    @property
    def end(self) -> int:
        return self.tail.reached

    @property
    def left_out(self) -> int:
        return self.end - self.start


def look(file: int, head: int, tail: int) -> Window:
    size = os.fstat(file).st_size
    start = size if size <= head else _bytes(file, 0, head).rfind(b"\n") + 1
    end = max(start, size - tail)
    if end > start:
        newline = _bytes(file, end, size).find(b"\n")
        end = end + newline + 1 if newline >= 0 else size
    return Window(search(file, 0, start, _ANY), search(file, end, size, _ANY), start)


_ANY = (b'"message"',)

# What tells of the middle; inside of a text the quotes would be escaped.
_TELLING = (
    b'"name":"Write","input"',
    b'Edit","input"',
    b'"role":"user","content":"',
    b'"role":"user","content":[{"type":"te',  # a text, no tool's result
    b'"role":"user","content":[{"type":"im',  # or an image, before one
)
_WITH_BLANKS = tuple(needle.replace(b":", b": ").replace(b",", b", ") for needle in _TELLING)


def telling(file: int) -> tuple[bytes, ...]:
    """The same as this file's program writes JSON: most leave no blanks."""
    return _WITH_BLANKS if b'"message": {' in _bytes(file, 0, CHUNK) else _TELLING


def search(file: int, start: int, end: int, needles: Iterable[bytes]) -> Found:
    """The lines that hold one of them, the latest ones when it would cost too much to read them all."""
    spans: list[tuple[int, int]] = []
    effort, unread, reached = EFFORT, 0, end
    for place, data in _pieces(file, start, end):
        for first, last in _lines_with(needles, data):
            commas = data.count(b",", first, last)
            brackets = data.count(b"[", first, last) + data.count(b"{", first, last)
            fits = commas + brackets <= SEPARATORS
            # A unit is about a tenth of a microsecond: lists and objects cost most, text next to nothing.
            effort -= 80 + (last - first) // 16 + (commas + 3 * brackets if fits else 0)
            if effort < 0:
                return Found(spans[::-1], min(end, place + last + 1), unread)
            if fits:
                spans.append((place + first, place + last))
            else:
                unread += 1
        unread += not data
        reached = place
    return Found(spans[::-1], reached, unread)


def _pieces(file: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines and their place, from the end backwards; nothing stands for a line that is too long."""
    rest: list[bytes] = []  # of a line that begins in an earlier piece, from its end backwards
    size, place = 0, end
    while place > start:
        first = max(start, place - CHUNK)
        chunk = _bytes(file, first, place)
        if len(chunk) < place - first:  # it was cut while we read
            return
        place = first
        cut = chunk.find(b"\n") + 1 if place > start else 0
        if cut or place == start:
            whole = chunk[cut:]
            if size > LONGEST_RECORD:
                whole = whole[: whole.rfind(b"\n") + 1]
                yield place + cut + len(whole), b""
            if whole or rest:
                yield place + cut, b"".join([whole, *reversed(rest)])
            rest, size, chunk = [], 0, chunk[:cut]
        size += len(chunk)
        rest = [*rest, chunk] if size <= LONGEST_RECORD else []


def _lines_with(needles: Iterable[bytes], data: bytes) -> Iterator[tuple[int, int]]:
    """Where they begin and end, each once, from the end backwards."""
    ends = set()
    for needle in needles:
        place = data.find(needle)
        while place >= 0:
            end = data.find(b"\n", place)
            end = len(data) if end < 0 else end
            ends.add(end)
            place = data.find(needle, end)
    for end in sorted(ends, reverse=True):
        yield data.rfind(b"\n", 0, end) + 1, end


def records(file: int, found: Found, *, numbers: bool = True) -> Iterator[dict[str, Any] | None]:
    """Half a line, or one that is no object, is passed over; None stands for one that can not be read.

    `numbers`: without them there is nothing to compute, however long they are.
    """
    read: Callable[[str], Any] = parsed if numbers else _WITHOUT_NUMBERS.decode
    for start, end in found.spans:
        try:
            record = read(_bytes(file, start, end).decode("utf-8", "replace").removeprefix("\ufeff"))
        except json.JSONDecodeError:
            continue
        except RecursionError:
            record = None
        if record is None or isinstance(record, dict):
            yield record


_WITHOUT_NUMBERS = json.JSONDecoder(parse_int=len, parse_float=len)
