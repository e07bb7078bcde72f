"""The records of a transcript for a digest, whichever program wrote it."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, BinaryIO

from turngate._frozen import frozen
from turngate.state.files import open_regular_file
from turngate.transcript.digest.scan import LineSpans, Window, find_lines, parse_spans, select_window
from turngate.transcript.formats import CLAUDE, recognise_format
from turngate.transcript.host_records import FORMATS, TranscriptFormat
from turngate.transcript.line_search import CHUNK_BYTES, read_span

MAX_REMEMBERED = 100_000  # blocks that are not shown again


def open_or_empty(path: str) -> BinaryIO:
    """Open a transcript; one that cannot be read counts as empty, because the judge has the hook's input too."""
    try:
        return open(open_regular_file(path, os.O_RDONLY), "rb", buffering=0)
    except OSError:
        return open(os.devnull, "rb", buffering=0)


def has_unknown_format(path: str) -> bool:
    """Return whether a transcript has content, but no messages in a format that is known."""
    with open_or_empty(path) as file:
        fd = file.fileno()
        return os.fstat(fd).st_size > 0 and recognise_format(fd) is None


@frozen
class RecordSource:
    """The records of one agent in an open transcript, as Claude Code writes them."""

    file: int
    form: TranscriptFormat
    agent: str | None  # the id of a subagent
    shown: set[int] = field(default_factory=set)

    def window(self, head: int, tail: int) -> Window:
        return select_window(
            self.file, head, tail, (b'"message"',) if self._is_own_form else self.form.messages
        )

    def find_middle(self, start: int, end: int) -> LineSpans:
        """Find requests and changes, the records of the middle that matter."""
        needles = _needles_for(self.file) if self._is_own_form else (*self.form.prompts, *self.form.calls)
        return find_lines(self.file, start, end, needles)

    def records(self, lines: LineSpans, *, numbers: bool = True) -> Iterator[Mapping[str, Any] | None]:
        """Yield the records; None replaces one that is nested too deeply. Other hosts need numbers: exit codes."""
        for record in parse_spans(self.file, lines, numbers=numbers or not self._is_own_form):
            if record is None or self._is_own_form:
                yield record
            else:
                yield from self._convert(record)

    @property
    def _is_own_form(self) -> bool:
        return self.form is FORMATS[CLAUDE]

    def _convert(self, record: Mapping[str, Any]) -> Sequence[Mapping[str, Any] | None]:
        try:
            found = [
                each for each in self.form.convert(record) if each.get("agent", self.agent) == self.agent
            ]
            return [self._without_shown(each, record.get("id")) for each in found]
        except RecursionError:  # writing a value as text can need more depth than parsing it
            return (None,)

    def _without_shown(self, record: Mapping[str, Any], identity: object) -> Mapping[str, Any]:
        """Leave out what was there already: Gemini CLI writes a message again when its tool calls have ended."""
        if not isinstance(identity, str):
            return record
        message = record["message"]
        content = [block for block in message["content"] if self._is_new(identity, block)]
        return {**record, "message": {**message, "content": content}}

    def _is_new(self, identity: str, block: Mapping[str, Any]) -> bool:
        keys = ("type", "text", "id", "tool_use_id", "content")
        key = hash((identity, *(str(block.get(name)) for name in keys)))
        if key in self.shown:
            return False
        if len(self.shown) < MAX_REMEMBERED:
            self.shown.add(key)
        return True


def record_source(file: BinaryIO, agent: str | None) -> RecordSource:
    """Return the records of an open transcript. One whose format is not known has none, or is damaged."""
    return RecordSource(file.fileno(), FORMATS[recognise_format(file.fileno()) or CLAUDE], agent)


# Inside a text the quotes would be escaped.
_NEEDLES = (
    b'"name":"Write","input"',
    b'Edit","input"',
    b'"role":"user","content":"',
    b'"role":"user","content":[{"type":"te',  # a text, not a tool's result
    b'"role":"user","content":[{"type":"im',  # or an image, before one
)
_SPACED_NEEDLES = tuple(needle.replace(b":", b": ").replace(b",", b", ") for needle in _NEEDLES)


def _needles_for(file: int) -> tuple[bytes, ...]:
    """Return what to search for in the middle, in the JSON style of this file: with spaces or without."""
    return _SPACED_NEEDLES if b'"message": {' in read_span(file, 0, CHUNK_BYTES) else _NEEDLES
