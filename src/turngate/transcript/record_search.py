"""Find the records of a transcript that matter, and parse them.

The search runs backward from the end, without parsing, so that the latest records are kept when there are too
many. Parsing then runs forward, in the order of the conversation.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.answers.answer_json import parse_json
from turngate.transcript.format_detection import lines_with, pieces_backwards, read_span

MAX_COST = 6_000_000  # of parsing one part of a transcript, see `find_lines`; always enough for the head
MAX_RECORD_BYTES = 8 * 1024 * 1024
MAX_SEPARATORS = 150_000  # commas and brackets of a record: each may take 200 bytes of memory


@frozen
class LineSpans:
    """Where the selected lines begin and end, in the order of the file."""

    spans: list[tuple[int, int]]
    searched_from: int  # nothing before it was searched
    too_large: int  # lines that were left out because of their size


@frozen
class Window:
    """The head and the tail of a file, and the middle between them."""

    head: LineSpans
    tail: LineSpans
    middle_start: int

    @property
    def middle_end(self) -> int:
        return self.tail.searched_from

    @property
    def middle_bytes(self) -> int:
        return self.middle_end - self.middle_start


def select_window(file: int, head: int, tail: int, needles: Iterable[bytes]) -> Window:
    """Select the lines with a needle in about the first `head` and the last `tail` bytes, at whole lines."""
    size = os.fstat(file).st_size
    start = size if size <= head else read_span(file, 0, head).rfind(b"\n") + 1
    end = max(start, size - tail)
    if end > start:
        newline = read_span(file, end, size).find(b"\n")
        end = end + newline + 1 if newline >= 0 else size
    return Window(find_lines(file, 0, start, needles), find_lines(file, end, size, needles), start)


def find_lines(
    file: int, start: int, end: int, needles: Iterable[bytes], max_cost: int = MAX_COST
) -> LineSpans:
    """Find the lines that contain a needle, only the latest ones if parsing them all would cost too much."""
    needles = tuple(needles)
    spans: list[tuple[int, int]] = []
    budget, too_large, searched_from = max_cost, 0, end
    for offset, data in pieces_backwards(file, start, end, MAX_RECORD_BYTES):
        for first, last in lines_with(needles, data):
            commas = data.count(b",", first, last)
            brackets = data.count(b"[", first, last) + data.count(b"{", first, last)
            fits = commas + brackets <= MAX_SEPARATORS
            # One unit is about a tenth of a microsecond: lists and objects cost most, text next to nothing.
            budget -= 80 + (last - first) // 16 + (commas + 3 * brackets if fits else 0)
            if budget < 0:
                return LineSpans(spans[::-1], min(end, offset + last + 1), too_large)
            if fits:
                spans.append((offset + first, offset + last))
            else:
                too_large += 1
        too_large += not data
        searched_from = offset
    return LineSpans(spans[::-1], searched_from, too_large)


def parse_spans(file: int, lines: LineSpans, *, numbers: bool = True) -> Iterator[dict[str, Any] | None]:
    """Yield the records; None is one that is nested too deeply. Without `numbers` they are not converted: very long ones take time."""
    parse: Callable[[str], Any] = parse_json if numbers else _WITHOUT_NUMBERS.decode
    for start, end in lines.spans:
        try:
            record = parse(read_span(file, start, end).decode("utf-8", "replace").removeprefix("\ufeff"))
        except json.JSONDecodeError:
            continue
        except RecursionError:
            record = None
        if record is None or isinstance(record, dict):
            yield record


_WITHOUT_NUMBERS = json.JSONDecoder(parse_int=len, parse_float=len)
