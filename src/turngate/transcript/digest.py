"""What a judge sees of a transcript: the last answer, a bounded digest, or as much of it as fits."""

import itertools
import json
import os
import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from turngate._frozen_dataclass import frozen
from turngate.core.text import indent, join_ends, one_line, truncate_bytes, truncate_bytes_middle
from turngate.state.files import open_regular_file
from turngate.transcript.format_detection import CHUNK_BYTES, CLAUDE, read_span, recognize_format
from turngate.transcript.host_records import FORMATS, TranscriptFormat
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
        """Find requests and changes, the records of the middle that matter; in the JSON style of this file."""
        needles = (*self.form.prompts, *self.form.calls)
        if self._is_own_form:
            is_spaced = b'"message": {' in read_span(self.file, 0, CHUNK_BYTES)
            needles = _SPACED_NEEDLES if is_spaced else _NEEDLES
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


HEAD_BYTES = 512 * 1024  # the beginning of a long transcript that is read,
TAIL_BYTES = 6 * 1024 * 1024  # and its end
MAX_MIDDLE_BYTES = 400 * 1024 * 1024  # before the tail, searched for requests and changes
MAX_DIGEST_BYTES = 12_000  # 3,000 to 4,000 tokens in most scripts
MAX_ANSWER_BYTES = 100_000  # of the last answer, when the judge sees only that


def digest(path: str, agent: str | None = None) -> str:
    """Return the requests, the changed files, the commands and how they ended, and the last answer. `agent`: the id of a subagent."""
    builder = DigestBuilder()
    with open_or_empty(path) as file:
        source = record_source(file, agent)
        window = source.window(HEAD_BYTES, TAIL_BYTES)
        start = max(window.middle_start, window.middle_end - MAX_MIDDLE_BYTES)
        middle = source.find_middle(start, window.middle_end)
        for lines in (window.head, middle, window.tail):
            if lines is middle and window.middle_bytes:
                builder.skip_gap()
            for record in source.records(lines, numbers=False):
                builder.add(record, middle=lines is middle)
    unread = window.head.too_large + middle.too_large + window.tail.too_large + builder.unread
    head = "\n\n".join(_gaps(window.middle_bytes, middle.searched_from - window.middle_start, unread))
    parts = builder.render(MAX_DIGEST_BYTES - len(head.encode()))
    return truncate_bytes("\n\n".join(filter(None, (head, *parts))), MAX_DIGEST_BYTES)


def last_answer(path: str, agent: str | None = None) -> str:
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


# What a digest shows, collected from one record after another

MAX_REQUESTS = 100  # requests that are collected
MAX_FILES = MAX_STEPS = 1_000  # changed files and commands that are collected; far fewer are shown
REQUESTS_BYTES, CHANGES_BYTES, STEPS_BYTES = 3_000, 2_000, 3_600  # for each part of the digest
MIN_ANSWER_BYTES = 3_000
HEADING_BYTES = 100  # for the heading of one part
MAX_LINE_BYTES = 300  # of a file name, a command, or the last line of its output
COUNT_LINE_BYTES = 40  # of the line that counts the requests left out
NO_RESULT = "no result"
MESSAGE_TYPES = ("user", "assistant", "message")  # the last one: Factory droid
_Change = tuple[str, str]  # a file, and how it was changed


@dataclass
class _Step:
    """A command or a subagent's task and how it ended, or the changes between two of them."""

    title: str = ""
    outcome: str = NO_RESULT
    files: dict[_Change, int] = field(default_factory=dict)  # changed files, and how often

    def render(self) -> str:
        if self.title:
            return f"{self.title}\n  {self.outcome}"
        several = f" {len(self.files):,} files" if len(self.files) > 1 else ""
        names = ", ".join(file for file, _ in reversed(self.files))
        return truncate_bytes(f"- changed{several}: {names}", MAX_LINE_BYTES)


@dataclass
class DigestBuilder:
    """Takes the records of a transcript in order, and renders the parts of a digest."""

    requests: list[str] = field(default_factory=list)  # the first one, and the latest ones
    dropped: int = 0  # requests between them
    # Number of changes; the latest is the last.
    changes: OrderedDict[_Change, int] = field(default_factory=OrderedDict)
    steps: deque[_Step] = field(default_factory=lambda: deque(maxlen=MAX_STEPS))
    calls: OrderedDict[str, tuple[_Step, list[_Change]]] = field(default_factory=OrderedDict)  # the latest
    answer: str = ""
    unread: int = 0

    def add(self, record: Mapping[str, Any] | None, *, middle: bool = False) -> None:
        """Add one record. Of the middle only requests and changes count: its results and answers are not read."""
        if record is None:
            self.unread += 1
            return
        message = record.get("message")
        if record.get("type") not in MESSAGE_TYPES or not isinstance(message, dict):
            return
        text = self._add_blocks(message, middle=middle)
        if not text.strip():
            return
        if message.get("role") != "assistant":
            if record.get("isMeta") is not True:
                self.requests.append(truncate_bytes(indent(text[: REQUESTS_BYTES + 1]), REQUESTS_BYTES))
            if len(self.requests) > MAX_REQUESTS:
                del self.requests[1]
                self.dropped += 1
        elif not middle:
            self.answer = text

    def _add_blocks(self, message: Mapping[str, Any], *, middle: bool) -> str:
        """Add the tool calls and results of a message, and return its text."""
        texts = []
        for block in blocks(message.get("content")):
            kind = block.get("type") if isinstance(block, dict) else None  # `match` takes twice as long
            if kind == "text" and isinstance(block.get("text"), str):
                texts.append(block["text"])
            elif kind == "tool_use":
                self._add_call(block, middle=middle)
            elif kind == "tool_result" and not middle:
                self._add_result(block)
        return "\n".join(texts)

    def skip_gap(self) -> None:
        """Note a gap: calls without a result so far may have ended in it, and the answer is not the last one."""
        self.answer = ""
        for step in self.steps:
            if step.outcome == NO_RESULT:
                step.outcome = "its result was not read"

    def _add_call(self, block: Mapping[str, Any], *, middle: bool) -> None:
        name, call, args = block.get("name"), block.get("id"), block.get("input")
        if not isinstance(name, str) or not isinstance(args, dict):
            return
        file = args.get("file_path", args.get("notebook_path"))
        if name in _CHANGES and isinstance(file, str):
            self._add_change(call, (_file_name(file), _CHANGES[name]), middle=middle)
        elif name == "Bash" and not middle:
            self._add_step(call, _Step(f"$ {_line(args.get('command'))}"))
        elif name in ("Task", "Agent") and not middle:
            agent_type = _line(args.get("subagent_type")) or "general-purpose"
            self._add_step(call, _Step(f"A subagent ({agent_type}): {_line(args.get('description'))}"))

    def _add_change(self, call: object, change: _Change, *, middle: bool) -> None:
        self.changes[change] = self.changes.pop(change, 0) + 1
        if len(self.changes) > MAX_FILES:
            self.changes.popitem(last=False)
        if not middle:
            in_a_row = self.steps and not self.steps[-1].title
            step = self.steps[-1] if in_a_row else _Step(outcome="")
            step.files[change] = step.files.pop(change, 0) + 1  # the latest is the last
            self._add_step(call, step, change)

    def _add_step(self, call: object, step: _Step, change: _Change | None = None) -> None:
        """Add a step. A result belongs to the latest call with its id; changes in a row with one id are one call: a patch of several files."""
        if not self.steps or self.steps[-1] is not step:
            self.steps.append(step)
        if isinstance(call, str):
            known, together = self.calls.get(call, (None, []))
            changes = together if known is step else []
            if change and len(changes) < MAX_FILES:
                changes.append(change)
            self.calls[call] = step, changes
            if len(self.calls) > MAX_STEPS:
                self.calls.popitem(last=False)

    def _add_result(self, block: Mapping[str, Any]) -> None:
        call = block.get("tool_use_id")
        step, changes = self.calls.get(call, (None, [])) if isinstance(call, str) else (None, [])
        if step and not changes:
            step.outcome = _describe_result(block)
        elif step:
            del self.calls[str(call)]
            for change in changes if block.get("is_error") is True else ():  # it was not made
                _decrement(self.changes, change)
                _decrement(step.files, change)

    def render(self, limit: int) -> Iterator[str]:
        """Yield the parts of the digest, in about `limit` bytes; the last answer gets what the others leave."""
        ran = any(step.title for step in self.steps)  # without a command there is no order to show
        steps = (step.render() for step in reversed(self.steps) if step.title or step.files)
        done = "\n".join(_merge_equal(steps)) if ran else ""
        changed = (
            f"- {file}: {how}" + (f" {count:,} times" if count > 1 else "")
            for (file, how), count in reversed(self.changes.items())  # the end is truncated
        )
        parts = [
            *_part("What was asked", _render_requests(self.requests, self.dropped), REQUESTS_BYTES),
            *_part("What was changed", "\n".join(changed), CHANGES_BYTES),
            *_part("Commands and changes, the latest first", done, STEPS_BYTES),
        ]
        yield from parts
        used = sum(len(part.encode("utf-8", "replace")) + HEADING_BYTES for part in parts)
        room = max(MIN_ANSWER_BYTES, limit - used)
        answer = truncate_bytes_middle(indent(self.answer), room - HEADING_BYTES)
        yield from _part("The last answer", answer, room)


_CHANGES = {"Write": "written", "Edit": "edited", "MultiEdit": "edited", "NotebookEdit": "edited"}


def _decrement(counts: MutableMapping[_Change, int], change: _Change) -> None:
    counts[change] = counts.get(change, 0) - 1
    if counts[change] <= 0:
        del counts[change]


def _merge_equal(texts: Iterable[str]) -> Iterator[str]:
    for text, group in itertools.groupby(texts):
        count = sum(1 for _ in group)
        yield f"{text} ({count:,} times in a row)" if count > 1 else text


def _file_name(name: str) -> str:
    """Return the name as one line: with line breaks it could contain headings of a digest."""
    return truncate_bytes(" ".join(name[: MAX_LINE_BYTES + 1].splitlines()), MAX_LINE_BYTES)


def _line(value: object) -> str:
    words = value[: 4 * MAX_LINE_BYTES].split() if isinstance(value, str) else []
    return truncate_bytes(" ".join(words), MAX_LINE_BYTES)


def _describe_result(result: Mapping[str, Any]) -> str:
    """Describe how a command ended, with the last line of its output."""
    text = result_text(result.get("content"))
    how = "FAILED" if result.get("is_error") is True else "ended well"
    code = _EXIT_CODE.match(text)
    if code is not None:
        how, text = f"{how}, {code[1].lower()}", text[code.end() :]
    lines = text[-4 * MAX_LINE_BYTES :].strip().splitlines()
    return f"{how}: {truncate_bytes(lines[-1], MAX_LINE_BYTES)}" if lines else how


# As the Bash tool and Claude Code write it; a longer number is not an exit code.
_EXIT_CODE = re.compile(r"(exit code -?\d{1,10})(?!\d)\n?", re.IGNORECASE)


def _render_requests(texts: list[str], dropped: int) -> str:
    """Render the first request and as many of the latest ones as fit."""
    whole = "\n\n".join(texts)
    if not dropped and len(whole.encode("utf-8", "replace")) <= REQUESTS_BYTES:
        return whole
    if len(texts) < 2:
        return "".join(texts)
    first, *later = texts
    share = REQUESTS_BYTES // 3  # for one request
    latest, unused = _latest(later, share, REQUESTS_BYTES - share - COUNT_LINE_BYTES)
    missing = len(later) - len(latest) + dropped
    count = [f"… {missing:,} more …"] if missing else []
    return "\n\n".join([truncate_bytes(first, share + unused), *count, *latest])


def _latest(texts: list[str], share: int, room: int) -> tuple[list[str], int]:
    """Return the latest texts that fit into the room, each within its share, and the bytes that remain."""
    latest: list[str] = []
    for text in reversed(texts):
        piece = truncate_bytes(text, share)
        size = len(piece.encode("utf-8", "replace")) + 2
        if size > room:
            break
        room -= size
        latest.insert(0, piece)
    return latest, room


def _part(title: str, text: str, limit: int) -> list[str]:
    return [f"## {title}\n{truncate_bytes(text, limit)}"] if text.strip() else []
