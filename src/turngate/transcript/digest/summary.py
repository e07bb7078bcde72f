"""What is worth telling of a conversation, while its records go by."""

import itertools
import re
from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from turngate.core.text import indent, truncate_bytes, truncate_bytes_middle

KEPT = 100  # requests that are kept
FILES = RUNS = 1_000  # changed files and commands that are kept; far fewer are shown
ASKED, CHANGED, RAN, ANSWER = 3_000, 2_000, 3_600, 3_000  # bytes for each part
LONGEST_LINE = 300  # bytes of a file's name, a command, or of what it said at last
MORE = 40  # bytes of a line that counts what is left out
NO_RESULT = "no result"
_Change = tuple[str, str]  # a file, and how it was changed


@dataclass
class _Done:
    """A command or a child's work and how it ended, or the changes between two of them."""

    what: str = ""
    how: str = NO_RESULT
    files: dict[_Change, int] = field(default_factory=dict)  # changed, and how often

    def told(self) -> str:
        if self.what:
            return f"{self.what}\n  {self.how}"
        several = f" {len(self.files):,} files" if len(self.files) > 1 else ""
        return truncate_bytes(
            f"- changed{several}: {', '.join(file for file, _ in reversed(self.files))}", LONGEST_LINE
        )


@dataclass
class DigestBuilder:
    """What is worth telling, while a transcript goes by."""

    asked: list[str] = field(default_factory=list)  # the first, and the latest ones
    dropped: int = 0  # requests between them
    changed: OrderedDict[_Change, int] = field(default_factory=OrderedDict)  # how often, the latest last
    done: deque[_Done] = field(default_factory=lambda: deque(maxlen=RUNS))
    calls: OrderedDict[str, tuple[_Done, _Change | None]] = field(default_factory=OrderedDict)  # the latest
    answer: str = ""
    unread: int = 0

    def note(self, record: Mapping[str, Any] | None, *, middle: bool = False) -> None:
        """Of the middle nothing counts but requests and changes: nothing says how it ended, and no answer is the last."""
        if record is None:
            self.unread += 1
            return
        message = record.get("message")
        if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            return
        texts = []
        for block in blocks(message.get("content")):
            kind = block.get("type") if isinstance(block, dict) else None  # `match` would take twice as long
            if kind == "text" and isinstance(block.get("text"), str):
                texts.append(block["text"])
            elif kind == "tool_use":
                self._calls(block, middle=middle)
            elif kind == "tool_result" and not middle:
                self._results(block)
        said = "\n".join(texts)
        if not said.strip():
            return
        if message.get("role") != "assistant":
            if record.get("isMeta") is not True:
                self._asks(said)
        elif not middle:
            self.answer = said

    def leap(self) -> None:
        """Over a gap: what was open before it may have ended in it."""
        self.answer = ""
        for each in self.done:
            if each.how == NO_RESULT:
                each.how = "its result was not read"

    def _asks(self, text: str) -> None:
        self.asked.append(truncate_bytes(indent(text[: ASKED + 1]), ASKED))
        if len(self.asked) > KEPT:
            del self.asked[1]
            self.dropped += 1

    def _calls(self, block: Mapping[str, Any], *, middle: bool) -> None:
        name, call, given = block.get("name"), block.get("id"), block.get("input")
        if not isinstance(name, str) or not isinstance(given, dict):
            return
        file = given.get("file_path", given.get("notebook_path"))
        if name in _CHANGES and isinstance(file, str):
            self._changes(call, (_file(file), _CHANGES[name]), middle=middle)
        elif name == "Bash" and not middle:
            self._does(call, _Done(f"$ {_line(given.get('command'))}"))
        elif name in ("Task", "Agent") and not middle:
            kind = _line(given.get("subagent_type")) or "general-purpose"
            self._does(call, _Done(f"A child ({kind}): {_line(given.get('description'))}"))

    def _changes(self, call: object, change: _Change, *, middle: bool) -> None:
        self.changed[change] = self.changed.pop(change, 0) + 1
        if len(self.changed) > FILES:
            self.changed.popitem(last=False)
        if not middle:
            in_a_row = self.done and not self.done[-1].what
            done = self.done[-1] if in_a_row else _Done(how="")
            done.files[change] = done.files.pop(change, 0) + 1  # the latest is the last
            self._does(call, done, change)

    def _does(self, call: object, done: _Done, change: _Change | None = None) -> None:
        """A call's id may be used again: a result is that of the latest."""
        if not self.done or self.done[-1] is not done:
            self.done.append(done)
        if isinstance(call, str):
            self.calls[call] = done, change
            if len(self.calls) > RUNS:
                self.calls.popitem(last=False)

    def _results(self, block: Mapping[str, Any]) -> None:
        call = block.get("tool_use_id")
        done, change = self.calls.get(call, (None, None)) if isinstance(call, str) else (None, None)
        if done and change is None:
            done.how = _how(block)
        elif done and change and block.get("is_error") is True:  # it was tried and not made
            _take_one(self.changed, change)
            _take_one(done.files, change)
            del self.calls[str(call)]

    def told(self, most: int) -> Iterator[str]:
        """In about so many bytes; the last answer has what the others leave."""
        ran = any(done.what for done in self.done)  # else there is nothing to put in an order
        told = (done.told() for done in reversed(self.done) if done.what or done.files)
        done = "\n".join(_counted(told)) if ran else ""
        parts = [
            *_part("What was asked", _asked(self.asked, self.dropped), ASKED),
            *_part("What was changed", "\n".join(_changes(self.changed)), CHANGED),
            *_part("Commands and changes, the latest first", done, RAN),
        ]
        yield from parts
        room = max(ANSWER, most - sum(len(part.encode("utf-8", "replace")) + 100 for part in parts))
        yield from _part("The last answer", truncate_bytes_middle(indent(self.answer), room - 100), room)


_CHANGES = {"Write": "written", "Edit": "edited", "MultiEdit": "edited", "NotebookEdit": "edited"}


def blocks(content: object) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _take_one(counts: MutableMapping[_Change, int], change: _Change) -> None:
    counts[change] = counts.get(change, 0) - 1
    if counts[change] <= 0:
        del counts[change]


def _counted(texts: Iterable[str]) -> Iterator[str]:
    """The same in a row is told once."""
    for text, same in itertools.groupby(texts):
        count = sum(1 for _ in same)
        yield f"{text} ({count:,} times in a row)" if count > 1 else text


def _file(name: str) -> str:
    return truncate_bytes(
        " ".join(name[: LONGEST_LINE + 1].splitlines()), LONGEST_LINE
    )  # or it could bring headings of its own


def _line(value: object) -> str:
    words = value[: 4 * LONGEST_LINE].split() if isinstance(value, str) else []
    return truncate_bytes(" ".join(words), LONGEST_LINE)


def _how(result: Mapping[str, Any]) -> str:
    """How a command ended, and the last thing it said."""
    text = result_text(result.get("content"))
    how = "FAILED" if result.get("is_error") is True else "ended well"
    code = _EXIT_CODE.match(text)
    if code is not None:
        how, text = f"{how}, {code[1].lower()}", text[code.end() :]
    lines = text[-4 * LONGEST_LINE :].strip().splitlines()
    return f"{how}: {truncate_bytes(lines[-1], LONGEST_LINE)}" if lines else how


def result_text(content: object) -> str:
    texts = (block.get("text") for block in blocks(content) if isinstance(block, dict))
    return "\n".join(text if isinstance(text, str) else "" for text in texts)


# Our words and Claude Code's; a number without an end is none.
_EXIT_CODE = re.compile(r"(exit code -?\d{1,10})(?!\d)\n?", re.IGNORECASE)


def _asked(texts: list[str], dropped: int) -> str:
    """The first request and the latest ones; the latest come first when there is no room for all."""
    whole = "\n\n".join(texts)
    if not dropped and len(whole.encode("utf-8", "replace")) <= ASKED:
        return whole
    if len(texts) < 2:
        return "".join(texts)
    first, *later = texts
    room = ASKED // 3
    recent: list[str] = []
    left = ASKED - room - MORE
    for text in reversed(later):
        piece = truncate_bytes(text, room)
        size = len(piece.encode("utf-8", "replace")) + 2
        if size > left:
            break
        left -= size
        recent.insert(0, piece)
    shown = [truncate_bytes(first, room + left)]
    missing = len(later) - len(recent) + dropped
    if missing:
        shown.append(f"… {missing:,} more …")
    return "\n\n".join([*shown, *recent])


def _changes(changed: Mapping[_Change, int]) -> Iterator[str]:
    """The latest first, since the rest is cut."""
    for (file, how), count in reversed(list(changed.items())):
        yield f"- {file}: {how}" + (f" {count:,} times" if count > 1 else "")


def _part(title: str, text: str, most: int) -> list[str]:
    return [f"## {title}\n{truncate_bytes(text, most)}"] if text.strip() else []
