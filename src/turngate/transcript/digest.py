"""What a judge sees of a transcript: the last answer, a bounded digest, or as much of it as fits."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, BinaryIO

from turngate._frozen_dataclass import frozen
from turngate.core.text import indent, join_ends, one_line, truncate_bytes, truncate_bytes_middle
from turngate.state.files import open_regular_file
from turngate.transcript.digest_builder import MESSAGE_TYPES, DigestBuilder
from turngate.transcript.format_detection import CLAUDE, recognize_format
from turngate.transcript.host_records import FORMATS, TranscriptFormat
from turngate.transcript.line_search import CHUNK_BYTES, read_span
from turngate.transcript.reader import blocks, result_text
from turngate.transcript.record_search import LineSpans, Window, find_lines, parse_spans, select_window


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
        return os.fstat(fd).st_size > 0 and recognize_format(fd) is None


@frozen
class RecordSource:
    """The records of one agent in an open transcript, as Claude Code writes them."""

    file: int
    form: TranscriptFormat
    agent: str | None  # the id of a subagent
    shown: set[int] = field(default_factory=set)

    def window(self, head: int, tail: int) -> Window:
        needles = (b'"message"',) if self._is_own_form else self.form.messages
        return select_window(self.file, head, tail, needles)

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
            found = self.form.convert(record)
            own = [each for each in found if each.get("agent", self.agent) == self.agent]
            return [self._without_shown(each, record.get("id")) for each in own]
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
        is_new = key not in self.shown
        self.shown.add(key)
        return is_new


def record_source(file: BinaryIO, agent: str | None) -> RecordSource:
    """Return the records of an open transcript. One whose format is not known has none, or is damaged."""
    return RecordSource(file.fileno(), FORMATS[recognize_format(file.fileno()) or CLAUDE], agent)


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
        speaker = "Note" if record.get("isMeta") else "User"
        speaker = "Agent" if message.get("role") == "assistant" else speaker
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
