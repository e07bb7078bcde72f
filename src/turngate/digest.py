"""What a judge may see of a conversation: its last answer, a bounded digest, or as much of it as fits."""

import json
import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, BinaryIO

from turngate.core.answers import parsed, writable
from turngate.journal import open_plain

HEAD = 512 * 1024  # bytes of a long transcript that are read: its beginning,
TAIL = 6 * 1024 * 1024  # and its end
MIDDLE = 400 * 1024 * 1024  # bytes before the end that are searched for requests and changes
EFFORT = 6_000_000  # what reading each of these may cost, see `_search`; always enough for the beginning
CHUNK = 1024 * 1024
LONGEST_RECORD = 8 * 1024 * 1024
SEPARATORS = 150_000  # commas and brackets of a record: each may stand for 200 bytes of memory
KEPT = 100  # requests that are kept
FILES = RUNS = 1_000  # changed files and commands that are kept; far fewer are shown
DIGEST_MOST = 12_000  # bytes in UTF-8, which is 3,000 to 4,000 tokens in most scripts
ASKED, CHANGED, RAN, ANSWER = 3_000, 2_000, 3_600, 3_000  # of them, for each part; headings take the rest
LONGEST_LINE = 300  # bytes of a file's name, a command, or of what it said at last
ANSWER_MOST = 100_000  # bytes of the last answer, when it is all that is asked for


def digest(path: str) -> str:
    """What was asked, what was changed, which commands ran and how they ended, and the last answer."""
    seen = _Seen()
    with _opened(path) as file:
        window = _look(file.fileno(), HEAD, TAIL)
        middle = _search(file.fileno(), max(window.start, window.end - MIDDLE), window.end, _TELLING)
        for record in _records(file.fileno(), window.head):
            seen.note(record)
        if window.left_out:
            seen.leap()
        for record in _records(file.fileno(), middle):
            seen.note(record, middle=True)
        for record in _records(file.fileno(), window.tail):
            seen.note(record)
    unread = window.head.unread + middle.unread + window.tail.unread + seen.unread
    gaps = _gaps(window.left_out, middle.reached - window.start, unread)
    return _cut("\n\n".join([*gaps, *seen.told()]), DIGEST_MOST)


def last_answer(path: str) -> str:
    """The text of the last answer, or nothing."""
    seen = _Seen()
    with _opened(path) as file:
        for record in _records(file.fileno(), _look(file.fileno(), 0, TAIL).tail):
            seen.note(record)
    return _without_middle(seen.answer, ANSWER_MOST)


def conversation(path: str, most: int) -> str:
    """All that was said and done, as text; more than so many bytes are left out in the middle."""
    with _opened(path) as file:
        window = _look(file.fileno(), min(most, HEAD), 2 * most)
        gaps = _gaps(0, 0, window.head.unread + window.tail.unread)
        head = "\n\n".join([*gaps, *_spoken(_records(file.fileno(), window.head))])
        tail = "\n\n".join(_spoken(_records(file.fileno(), window.tail)))
    if window.left_out:
        return f"{_cut(head, most // 3)}\n\n{_gap(window.left_out)}\n\n{_end(tail, most - most // 3)}"
    return _without_middle("\n\n".join(filter(None, (head, tail))), most)


# Reading: first it is found out where the records stand that matter, from the end backwards and without
# parsing; then these are read in order. So the latest ones come first when there are too many.


def _opened(path: str) -> BinaryIO:
    """What can not be read is as good as empty: whoever asks has the hook's input all the same."""
    try:
        return open(open_plain(path, os.O_RDONLY), "rb", buffering=0)
    except (OSError, ValueError):  # a name may hold what no name can
        return open(os.devnull, "rb", buffering=0)


def _bytes(file: int, start: int, end: int) -> bytes:
    try:
        return os.pread(file, end - start, start)
    except OSError:
        return b""


@dataclass(frozen=True)
class _Found:
    """Where records stand, in their order."""

    spans: list[tuple[int, int]]
    reached: int  # nothing before it was looked at
    unread: int  # how many are too large


@dataclass(frozen=True)
class _Window:
    """A file's beginning and its end, and what lies between them."""

    head: _Found
    tail: _Found
    start: int  # of what lies between

    @property
    def end(self) -> int:
        return self.tail.reached

    @property
    def left_out(self) -> int:
        return self.end - self.start


def _look(file: int, head: int, tail: int) -> _Window:
    size = os.fstat(file).st_size
    start = size if size <= head else _bytes(file, 0, head).rfind(b"\n") + 1
    end = max(start, size - tail)
    if end > start:
        newline = _bytes(file, end, size).find(b"\n")
        end = end + newline + 1 if newline >= 0 else size
    return _Window(_search(file, 0, start, _ANY), _search(file, end, size, _ANY), start)


# As programs write them, without blanks; inside of a text the quotes would be escaped.
_ANY = (b'"message"',)
_TELLING = (
    b'"name":"Write","input"',
    b'Edit","input"',
    b'"role":"user","content":"',
    b'"role":"user","content":[{"type":"te',  # a text, no tool's result
)


def _search(file: int, start: int, end: int, needles: Iterable[bytes]) -> _Found:
    """The lines that hold one of them, the latest ones when it would cost too much to read them all."""
    spans: list[tuple[int, int]] = []
    effort, unread, reached = EFFORT, 0, end
    for place, data in _pieces(file, start, end):
        for first, last in _lines_with(needles, data):
            commas = data.count(b",", first, last)
            brackets = data.count(b"[", first, last) + data.count(b"{", first, last)
            fits = commas + brackets <= SEPARATORS
            # A unit is about a tenth of a microsecond: lists and objects cost most, text next to nothing.
            effort -= 80 + (last - first) // 16 + (commas + 3 * brackets if fits else 0)
            if effort < 0:
                return _Found(spans[::-1], min(end, place + last + 1), unread)
            if fits:
                spans.append((place + first, place + last))
            else:
                unread += 1
        unread += not data
        reached = place
    return _Found(spans[::-1], reached, unread)


def _pieces(file: int, start: int, end: int) -> Iterator[tuple[int, bytes]]:
    """Whole lines and their place, from the end backwards; nothing stands for a line that is too long."""
    rest: list[bytes] = []  # of a line that begins in an earlier piece, from its end backwards
    size, place = 0, end
    while place > start:
        first = max(start, place - CHUNK)
        chunk = _bytes(file, first, place)
        if len(chunk) < place - first:  # it was cut while we read
            return
        place = first
        cut = chunk.find(b"\n") + 1 if place > start else 0
        if cut or place == start:
            whole = chunk[cut:]
            if size > LONGEST_RECORD:
                whole = whole[: whole.rfind(b"\n") + 1]
                yield place + cut + len(whole), b""
            if whole or rest:
                yield place + cut, b"".join([whole, *reversed(rest)])
            rest, size, chunk = [], 0, chunk[:cut]
        size += len(chunk)
        rest = [*rest, chunk] if size <= LONGEST_RECORD else []


def _lines_with(needles: Iterable[bytes], data: bytes) -> Iterator[tuple[int, int]]:
    """Where they begin and end, each once, from the end backwards."""
    ends = set()
    for needle in needles:
        place = data.find(needle)
        while place >= 0:
            end = data.find(b"\n", place)
            end = len(data) if end < 0 else end
            ends.add(end)
            place = data.find(needle, end)
    for end in sorted(ends, reverse=True):
        yield data.rfind(b"\n", 0, end) + 1, end


def _records(file: int, found: _Found) -> Iterator[dict[str, Any] | None]:
    """Half a line, or one that is no object, is passed over; None stands for one that can not be read."""
    for start, end in found.spans:
        try:
            record = parsed(_bytes(file, start, end).decode("utf-8", "replace").removeprefix("\ufeff"))
        except json.JSONDecodeError:
            continue
        except RecursionError:
            record = None
        if record is None or isinstance(record, dict):
            yield record


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
        for block in _blocks(message.get("content")):
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
        self.asked.append(_cut(text, ASKED))
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
        key = _cut(name, LONGEST_LINE), how
        self.changed[key] = self.changed.pop(key, 0) + 1  # the latest is the last
        if len(self.changed) > FILES:
            self.changed.popitem(last=False)

    def _runs(self, call: str, command: object) -> None:
        words = command[: 4 * LONGEST_LINE].split() if isinstance(command, str) else []
        self.ran[call] = _Ran(_cut(" ".join(words), LONGEST_LINE))
        if len(self.ran) > RUNS:
            self.ran.popitem(last=False)

    def told(self) -> Iterator[str]:
        yield from _part("What was asked", _asked(self.asked, self.dropped), ASKED)
        yield from _part("What was changed", "\n".join(_changes(self.changed)), CHANGED)
        yield from _part("Commands, the latest first", "\n".join(_commands(self.ran)), RAN)
        yield from _part("The last answer", self.answer, ANSWER)


_CHANGES = {"Write": "written", "Edit": "edited", "MultiEdit": "edited", "NotebookEdit": "edited"}


def _blocks(content: object) -> list[Any]:
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _how(result: Mapping[str, Any]) -> str:
    """How a command ended, and the last thing it said."""
    text = _result(result.get("content"))
    how = "FAILED" if result.get("is_error") is True else "ended well"
    code = _EXIT_CODE.match(text)
    if code is not None:
        how, text = f"{how}, {code[1].lower()}", text[code.end() :]
    last = text[-4 * LONGEST_LINE :].strip().rpartition("\n")[2]
    return f"{how}: {_cut(last, LONGEST_LINE)}" if last else how


def _result(content: object) -> str:
    texts = (block.get("text") for block in _blocks(content) if isinstance(block, dict))
    return "\n".join(text if isinstance(text, str) else "" for text in texts)


# Our words and Claude Code's; a number without an end is none.
_EXIT_CODE = re.compile(r"(exit code -?\d{1,10})(?!\d)\n?", re.IGNORECASE)


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


def _changes(changed: Mapping[tuple[str, str], int]) -> Iterator[str]:
    """The latest first, since the rest is cut."""
    for (file, how), count in reversed(list(changed.items())):
        yield f"- {file}: {how}" + (f" {count:,} times" if count > 1 else "")


def _commands(ran: Mapping[str, _Ran]) -> Iterator[str]:
    for each in reversed(list(ran.values())):
        yield f"$ {each.command}\n  {each.how}"


def _part(title: str, text: str, most: int) -> list[str]:
    return [f"## {title}\n{_cut(text, most)}"] if text.strip() else []


# The whole of it


def _spoken(records: Iterable[Mapping[str, Any] | None]) -> Iterator[str]:
    for record in records:
        if record is None:
            yield "[… a record that is nested too deeply to be read …]"
            continue
        message = record.get("message")
        if record.get("type") not in ("user", "assistant") or not isinstance(message, dict):
            continue
        who = "Agent" if message.get("role") == "assistant" else "Note" if record.get("isMeta") else "User"
        for block in _blocks(message.get("content")):
            match block:
                case {"type": "text", "text": str(text)} if text.strip():
                    yield f"{who}: {text}"
                case {"type": "tool_use", "name": str(name), "input": given}:
                    yield f"Call of {name}: {_json(given)}"
                case {"type": "tool_result", "content": said}:
                    yield f"Result{' (failed)' if block.get('is_error') is True else ''}: {_result(said)}"
                case _:
                    pass


def _json(value: object) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:  # what could just be read can not always be written
        return "…"


# Cutting


def _gaps(left_out: int, unseen: int, unread: int) -> Iterator[str]:
    """What a digest does not show."""
    if left_out:
        nothing = f", and nothing of the first {unseen:,} of them" if unseen else ""
        yield f"[… of {left_out:,} bytes in the middle only requests and changes{nothing} …]"
    if unread:
        yield f"[… records that are too large to be read: {unread:,} …]"


def _gap(size: int) -> str:
    return f"[… {size:,} bytes in the middle are left out …]"


def _without_middle(text: str, most: int) -> str:
    """About so many bytes of UTF-8, a third of them from the beginning."""
    size = len(text.encode("utf-8", "replace"))
    if size <= most:
        return writable(text)
    return f"{_cut(text, most // 3)}\n\n{_gap(size - most)}\n\n{_end(text, most - most // 3)}"


def _cut(text: str, most: int) -> str:
    """At most so many bytes of UTF-8; what is too long loses its end."""
    data = text[: most + 1].encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode("utf-8")
    return data[: max(0, most - 4)].decode("utf-8", "ignore") + " …"


def _end(text: str, most: int) -> str:
    """The same from behind."""
    data = text[-most - 1 :].encode("utf-8", "replace")
    if len(data) <= most:
        return data.decode("utf-8")
    return "… " + data[len(data) - max(0, most - 4) :].decode("utf-8", "ignore")
