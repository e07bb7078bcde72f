"""Search a large file for lines with certain bytes, backward from its end, without parsing the other lines."""

import os
from collections.abc import Iterable, Iterator

FIRST_CHUNK_BYTES = 32 * 1024  # most searches end near the end of the file
CHUNK_BYTES = 1024 * 1024


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
