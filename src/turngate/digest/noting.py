"""What is worth telling of a conversation, while its records go by."""

import re
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from turngate.digest.cutting import cut, indented

KEPT = 100  # requests that are kept
FILES = RUNS = 1_000  # changed files and commands that are kept; far fewer are shown
ASKED, CHANGED, RAN, ANSWER = 3_000, 2_000, 3_600, 3_000  # bytes for each part
LONGEST_LINE = 300  # bytes of a file's name, a command, or of what it said at last


@dataclass
class _Ran:
    command: str
    how: str = "no result"


@dataclass
class Seen:
    """What is worth telling, while a transcript goes by."""

    asked: list[str] = field(default_factory=list)  # the first, and the latest ones
    dropped: int = 0  # requests between them
    changed: OrderedDict[tuple[str, str], int] = field(default_factory=OrderedDict)  # file and how, how often
    ran: OrderedDict[str, _Ran] = field(default_factory=OrderedDict)
    answer: str = ""
    unread: int = 0

    def note(self, record: Mapping[str, Any] | None, *, middle: bool = False) -> None:
        """Of the middle no command counts, since nothing says how it ended, and no answer is the last."""
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
        for each in self.ran.values():
            if each.how == "no result":
                each.how = "its result was not read"

    def _asks(self, text: str) -> None:
        self.asked.append(cut(indented(text[: ASKED + 1]), ASKED))
        if len(self.asked) > KEPT:
            del self.asked[1]
            self.dropped += 1

    def _calls(self, block: Mapping[str, Any], *, middle: bool) -> None:
        name, call, given = block.get("name"), block.get("id"), block.get("input")
        if not isinstance(name, str) or not isinstance(given, dict):
            return
        if name in _CHANGES:
            self._changes(given.get("file_path", given.get("notebook_path")), _CHANGES[name])
        elif name == "Bash" and isinstance(call, str) and not middle:
            self._runs(call, given.get("command"))

    def _results(self, block: Mapping[str, Any]) -> None:
        call = block.get("tool_use_id")
        if isinstance(call, str) and call in self.ran:
            self.ran[call].how = _how(block)

    def _changes(self, file: object, how: str) -> None:
        if not isinstance(file, str):
            return
        name = " ".join(file[: LONGEST_LINE + 1].splitlines())  # or it could bring headings of its own
        key = cut(name, LONGEST_LINE), how
        self.changed[key] = self.changed.pop(key, 0) + 1  # the latest is the last
        if len(self.changed) > FILES:
            self.changed.popitem(last=False)

    def _runs(self, call: str, command: object) -> None:
        words = command[: 4 * LONGEST_LINE].split() if isinstance(command, str) else []
        self.ran[call] = _Ran(cut(" ".join(words), LONGEST_LINE))
        if len(self.ran) > RUNS:
            self.ran.popitem(last=False)

    def told(self) -> Iterator[str]:
        yield from _part("What was asked", _asked(self.asked, self.dropped), ASKED)
        yield from _part("What was changed", "\n".join(_changes(self.changed)), CHANGED)
        yield from _part("Commands, the latest first", "\n".join(_commands(self.ran)), RAN)
        yield from _part("The last answer", indented(self.answer), ANSWER)


_CHANGES = {"Write": "written", "Edit": "edited", "MultiEdit": "edited", "NotebookEdit": "edited"}


def blocks(content: object) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _how(result: Mapping[str, Any]) -> str:
    """How a command ended, and the last thing it said."""
    text = result_text(result.get("content"))
    how = "FAILED" if result.get("is_error") is True else "ended well"
    code = _EXIT_CODE.match(text)
    if code is not None:
        how, text = f"{how}, {code[1].lower()}", text[code.end() :]
    lines = text[-4 * LONGEST_LINE :].strip().splitlines()
    return f"{how}: {cut(lines[-1], LONGEST_LINE)}" if lines else how


def result_text(content: object) -> str:
    texts = (block.get("text") for block in blocks(content) if isinstance(block, dict))
    return "\n".join(text if isinstance(text, str) else "" for text in texts)


# Our words and Claude Code's; a number without an end is none.
_EXIT_CODE = re.compile(r"(exit code -?\d{1,10})(?!\d)\n?", re.IGNORECASE)


def _asked(texts: list[str], dropped: int) -> str:
    """The first request and the latest ones; the latest come first when there is no room for all."""
    if len(texts) < 2:
        return "".join(texts)
    first, *later = texts
    room = ASKED // 3
    shown = [cut(first, room)]
    recent: list[str] = []
    left = ASKED - room
    for text in reversed(later):
        piece = cut(text, room)
        left -= len(piece.encode("utf-8", "replace")) + 2
        if left < 0:
            break
        recent.insert(0, piece)
    missing = len(later) - len(recent) + dropped
    if missing:
        shown.append(f"… {missing:,} more …")
    return "\n\n".join([*shown, *recent])


def _changes(changed: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """The latest first, since the rest is cut."""
    for (file, how), count in reversed(list(changed.items())):
        yield f"- {file}: {how}" + (f" {count:,} times" if count > 1 else "")


def _commands(ran: Mapping[str, _Ran]) -> Iterator[str]:
    for each in reversed(list(ran.values())):
        yield f"$ {each.command}\n  {each.how}"


def _part(title: str, text: str, most: int) -> list[str]:
    return [f"## {title}\n{cut(text, most)}"] if text.strip() else []
