"""What a judge may see of a conversation: its last answer, a bounded digest, or as much of it as fits."""

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from turngate.journal import open_plain

HEAD = 512 * 1024  # bytes of a long transcript that are read: its beginning,
TAIL = 6 * 1024 * 1024  # and its end
MIDDLE = 400 * 1024 * 1024  # bytes between them that are searched for requests and changes,
FOUND = 100_000  # and how many of those are looked at
REQUESTS = 5_000  # requests that are read; more are counted
KEPT = 100  # requests that are kept
CHUNK = 1024 * 1024
LONGEST_RECORD = 8 * 1024 * 1024
DIGEST_MOST = 12_000  # bytes in UTF-8, which is 3,000 to 4,000 tokens in most scripts
ASKED, CHANGED, RAN, ANSWER = 3_000, 2_000, 3_600, 3_000  # of them, for each part; headings take the rest
LONGEST_LINE = 300  # bytes of a command, or of what it said at last


def digest(path: str) -> str:
    """What was asked, what was changed, which commands ran and how they ended, and the last answer."""
    window = _look(path)
    seen = _Seen()
    for record in window.head:
        seen.note(record)
    for piece in _middle(path, window):
        seen.search(piece)
        if seen.found >= FOUND:
            break
    for record in window.tail:
        seen.note(record)
    return _cut(seen.told(window.left_out), DIGEST_MOST)


def last_answer(path: str) -> str:
    """The text of the last answer, or nothing."""
    seen = _Seen()
    for record in _look(path, head=0).tail:
        seen.note(record)
    return seen.answer


def conversation(path: str, most: int) -> str:
    """All that was said and done, as text; more than so many bytes are left out in the middle."""
    window = _look(path, head=most, tail=2 * most)
    head, tail = "\n\n".join(_spoken(window.head)), "\n\n".join(_spoken(window.tail))
    if window.left_out:
        return f"{_cut(head, most // 3)}\n\n{_gap(window.left_out)}\n\n{_end(tail, most - most // 3)}"
    if len(tail.encode("utf-8", "replace")) <= most:
        return tail
    return f"{_cut(tail, most // 3)}\n\n[…]\n\n{_end(tail, most - most // 3)}"


# Reading


@dataclass(frozen=True)
class _Window:
    """What was read of a file: all of it, or its beginning and its end."""

    head: Iterable[dict[str, Any]] = ()
    tail: Iterable[dict[str, Any]] = ()
    start: int = 0  # where what lies between them begins
    end: int = 0

    @property
    def left_out(self) -> int:
        return self.end - self.start


def _look(path: str, head: int = HEAD, tail: int = TAIL) -> _Window:
    """Nothing, when the file can not be read: whoever asks has the hook's input all the same."""
    try:
        with open(open_plain(path, os.O_RDONLY), "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= head + tail:
                return _Window(tail=_records(file.read(head + tail)))
            first = os.pread(file.fileno(), head, 0).rpartition(b"\n")[0]
            last = os.pread(file.fileno(), tail, size - tail).partition(b"\n")[2]
    except OSError:
        return _Window()
    return _Window(_records(first), _records(last), len(first) + 1, size - len(last))


def _records(data: bytes) -> Iterator[dict[str, Any]]:
    """Each line by itself: half a line, or one that is no object, is passed over."""
    place = 0
    while place < len(data):
        end = data.find(b"\n", place)
        end = len(data) if end < 0 else end
        try:
            record = json.loads(data[place:end])
        except (ValueError, RecursionError):
            record = None
        if isinstance(record, dict):
            yield record
        place = end + 1


def _middle(path: str, window: _Window) -> Iterator[bytes]:
    """What lies between, in pieces of whole lines."""
    if not window.left_out:
        return
    place, end = window.start, min(window.end, window.start + MIDDLE)
    rest = b""  # of a line that goes on in the next piece
    with open(open_plain(path, os.O_RDONLY), "rb", buffering=0) as file:
        while place < end and (chunk := os.pread(file.fileno(), min(CHUNK, end - place), place)):
            place += len(chunk)
            whole, _, rest = (rest + chunk).rpartition(b"\n")
            rest = rest if len(rest) <= LONGEST_RECORD else b""
            yield whole


# As programs write them, without blanks; inside of a text the quotes would be escaped.
_CHANGING = {b'"name":"Write","input"': "written", b'Edit","input"': "edited"}
_ASKING = (b'"role":"user","content":"', b'"role":"user","content":[{"type":"text"')
_PATH = b'"file_path":"'


def _places(data: bytes, needle: bytes) -> Iterator[tuple[int, int]]:
    """Where it stands, and where its line ends."""
    place = data.find(needle)
    while place >= 0:
        end = data.find(b"\n", place)
        yield place, len(data) if end < 0 else end
        place = data.find(needle, place + len(needle))


# Noting


@dataclass
class _Ran:
    command: str
    how: str = "no result"


@dataclass
class _Seen:
    """What is worth telling, while a transcript goes by."""

    asked: list[str] = field(default_factory=list)  # the first, and the latest ones
    dropped: int = 0  # requests between them
    changed: Counter[tuple[str, str]] = field(
        default_factory=Counter
    )  # file and how, in order of the first time
    ran: dict[str, _Ran] = field(default_factory=dict)
    answer: str = ""

    found: int = 0  # by searching

    def search(self, data: bytes) -> None:
        """Requests and changes in many lines, most of which are not even split."""
        for needle, how in _CHANGING.items():
            for place, end in _places(data, needle):
                self.found += 1
                start = data.find(_PATH, place, end) + len(_PATH)
                name = data[start : data.find(b'"', start, end)] if start >= len(_PATH) else b""
                if name:
                    self.changed[name.decode("utf-8", "replace"), how] += 1
        for needle in _ASKING:
            for place, end in _places(data, needle):
                self.found += 1
                if self.dropped + len(self.asked) > REQUESTS:
                    self.dropped += 1  # it is counted; the latest ones are read anyway
                    continue
                for record in _records(data[data.rfind(b"\n", 0, place) + 1 : end]):
                    self.note(record)

    def note(self, record: Mapping[str, Any]) -> None:
        message = record.get("message")
        if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            return
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
        texts = []
        for block in blocks:
            match block:
                case {"type": "text", "text": str(text)}:
                    texts.append(text)
                case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict(given)}:
                    self._called(call, name, given)
                case {"type": "tool_result", "tool_use_id": str(call)} if call in self.ran:
                    self.ran[call].how = _how(block)
                case _:
                    pass
        said = "\n".join(texts)
        if said.strip() and message.get("role") == "assistant":
            self.answer = said
        elif said.strip() and record.get("isMeta") is not True:
            self.asked.append(_cut(said, ASKED))
            if len(self.asked) > KEPT:
                del self.asked[1:2]
                self.dropped += 1

    def _called(self, call: str, name: str, given: Mapping[str, Any]) -> None:
        file = given.get("file_path", given.get("notebook_path"))
        if name == "Bash":
            self.ran[call] = _Ran(str(given.get("command", "")))
        elif isinstance(file, str) and name in _CHANGES:
            self.changed[file, _CHANGES[name]] += 1

    def told(self, left_out: int) -> str:
        parts = [f"[… of {left_out:,} bytes in the middle only requests and changes …]"] if left_out else []
        parts += _part("What was asked", _asked(self.asked, self.dropped), ASKED)
        parts += _part("What was changed", "\n".join(_changes(self.changed)), CHANGED)
        parts += _part("Commands, the latest first", "\n".join(_commands(self.ran)), RAN)
        parts += _part("The last answer", self.answer, ANSWER)
        return "\n\n".join(parts)


_CHANGES = {"Write": "written", "Edit": "edited", "MultiEdit": "edited", "NotebookEdit": "edited"}


def _how(result: Mapping[str, Any]) -> str:
    """How a command ended, and the last thing it said."""
    content = result.get("content")
    blocks = content if isinstance(content, list) else [{"text": content}]
    text = "\n".join(str(block.get("text") or "") for block in blocks if isinstance(block, dict))
    how = "FAILED" if result.get("is_error") is True else "ended well"
    code = _EXIT_CODE.match(text)
    if code is not None:
        how, text = f"{how}, {code[1].lower()}", text[code.end() :]
    last = text[-4 * LONGEST_LINE :].strip().rpartition("\n")[2]
    return f"{how}: {_cut(last, LONGEST_LINE)}" if last else how


_EXIT_CODE = re.compile(r"(exit code -?\d+)\n?", re.IGNORECASE)  # our words and Claude Code's


def _asked(texts: list[str], dropped: int) -> str:
    """The first request and the latest ones; the latest come first when there is no room for all."""
    if len(texts) < 2:
        return "".join(texts)
    first, *later = texts
    room = ASKED // 3
    shown = [_cut(first, room)]
    recent: list[str] = []
    left = ASKED - room
    for text in reversed(later):
        piece = _cut(text, room)
        left -= len(piece.encode("utf-8", "replace")) + 2
        if left < 0:
            break
        recent.insert(0, piece)
    missing = len(later) - len(recent) + dropped
    if missing:
        shown.append(f"… {missing:,} more …")
    return "\n\n".join([*shown, *recent])


def _changes(changed: Counter[tuple[str, str]]) -> Iterator[str]:
    """The latest first, since the rest is cut."""
    for (file, how), count in reversed(changed.items()):
        yield f"- {_cut(file, LONGEST_LINE)}: {how}" + (f" {count:,} times" if count > 1 else "")


def _commands(ran: Mapping[str, _Ran]) -> Iterator[str]:
    for each in reversed(list(ran.values())):
        yield f"$ {_cut(' '.join(each.command.split()), LONGEST_LINE)}\n  {each.how}"


def _part(title: str, text: str, most: int) -> list[str]:
    return [f"## {title}\n{_cut(text, most)}"] if text.strip() else []


# The whole of it


def _spoken(records: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for record in records:
        message = record.get("message")
        if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            continue
        who = "Agent" if message.get("role") == "assistant" else "Note" if record.get("isMeta") else "User"
        content = message.get("content")
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            match block:
                case {"type": "text", "text": str(text)} if text.strip():
                    yield f"{who}: {text}"
                case {"type": "tool_use", "name": str(name), "input": given}:
                    yield f"Call of {name}: {json.dumps(given, ensure_ascii=False)}"
                case {"type": "tool_result", "content": said}:
                    texts = said if isinstance(said, list) else [{"text": said}]
                    text = "\n".join(str(t.get("text") or "") for t in texts if isinstance(t, dict))
                    yield f"Result{' (failed)' if block.get('is_error') is True else ''}: {text}"
                case _:
                    pass


# Cutting


def _gap(size: int) -> str:
    return f"[… {size:,} bytes in the middle are left out …]"


def _cut(text: str, most: int) -> str:
    """At most so many bytes of UTF-8; what is too long loses its end."""
    data = text[: most + 1].encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode("utf-8")
    return data[: most - 4].decode("utf-8", "ignore") + " …"


def _end(text: str, most: int) -> str:
    """The same from behind."""
    data = text[-most - 1 :].encode("utf-8", "replace")
    return data.decode("utf-8") if len(data) <= most else "… " + data[-(most - 4) :].decode("utf-8", "ignore")
