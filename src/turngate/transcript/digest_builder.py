"""Collect what a digest shows, one record of a transcript after another."""

import itertools
import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from turngate.core.text import indent, truncate_bytes, truncate_bytes_middle
from turngate.transcript.reader import blocks, result_text

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
                self._add_request(text)
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

    def _add_request(self, text: str) -> None:
        self.requests.append(truncate_bytes(indent(text[: REQUESTS_BYTES + 1]), REQUESTS_BYTES))
        if len(self.requests) > MAX_REQUESTS:
            del self.requests[1]
            self.dropped += 1

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
        """Add a step. A call's id may be used again, so a result belongs to the latest call with its id.

        Changes in a row with one id and without a result are one call: a patch of several files.
        """
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
        parts = [
            *_part("What was asked", _render_requests(self.requests, self.dropped), REQUESTS_BYTES),
            *_part("What was changed", "\n".join(_render_changes(self.changes)), CHANGES_BYTES),
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
    """Merge equal texts in a row into one with a count."""
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


def _render_changes(changes: Mapping[_Change, int]) -> Iterator[str]:
    """Render one line per changed file, the latest first, because the end is truncated."""
    for (file, how), count in reversed(list(changes.items())):
        yield f"- {file}: {how}" + (f" {count:,} times" if count > 1 else "")


def _part(title: str, text: str, limit: int) -> list[str]:
    return [f"## {title}\n{truncate_bytes(text, limit)}"] if text.strip() else []
