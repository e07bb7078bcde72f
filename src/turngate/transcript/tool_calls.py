"""Where the last tool call of a transcript of any host is."""

import os
from collections.abc import Sequence

from turngate.state.files import open_regular_file
from turngate.transcript.line_search import lines_with, pieces_backwards

MAX_LINE_BYTES = 16 * 1024 * 1024


def tool_call_position(path: str, marks: Sequence[str]) -> int | None:
    """Return the offset of the last line with one of the marks, -1 if there is none, or None if it cannot be known.

    A mark is a part of a line of JSON without blanks; such a line may also have a blank after each colon.
    """
    if not path or not marks:
        return None
    needles = tuple(text.encode() for mark in marks for text in {mark, mark.replace(":", ": ")})
    try:
        fd = open_regular_file(path, os.O_RDONLY)
    except OSError:
        return None
    with open(fd, "rb", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        try:
            for offset, data in pieces_backwards(file.fileno(), 0, size, MAX_LINE_BYTES):
                for first, _ in lines_with(needles, data):
                    return offset + first
        except OSError:
            return None
    return -1
