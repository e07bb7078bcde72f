"""A session's folder: its transcript, who writes it, and the conversation as it was left."""

import contextlib
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from turngate.agent.transcript import message_of, read_records, usable
from turngate.core.messages import Message, Reply, ToolResult, ToolResults, ToolUse, UserMessage
from turngate.errors import SessionBusy, UsageError
from turngate.journal import is_same_file, make_private_dir, open_regular_file, session_folder

CHAT = "chat.jsonl"
COUNT_MOST = 1_000_000  # continuations; whoever wrote more did not count
TRIES = 20  # at a lock whose folder is being removed


@dataclass(frozen=True)
class Past:
    """What a transcript says about where the conversation stands."""

    messages: tuple[Message, ...] = ()
    continuations: int = 0  # of the turn that was not finished; 0 when it was
    last: str | None = field(default=None, compare=False)  # the last message's id
    keys: frozenset[str] = frozenset()  # of messages that may reach it once only


def main_transcript_path(state: str, session: str, dialect: str = "turngate") -> str:
    """Where a conversation is written; document 000 names a place of its own."""
    home = os.path.join(os.path.expanduser("~"), ".mux")
    return os.path.join(session_folder(home if dialect == "mux" else state, session), CHAT)


def read_conversation(path: str) -> Past:
    """The conversation up to its last whole message; tools that never answered get an answer."""
    messages: list[Message] = []
    continuations = 0
    last: str | None = None
    keys: set[str] = set()
    for record in _records(path):
        kind = record.get("type")
        if kind == "cleared":
            messages, continuations = [], 0
        elif kind == "turn_end":
            continuations = 0
        message = message_of(record)
        if message is None:
            continue
        if isinstance(record.get("key"), str):
            keys.add(record["key"])
        last = record["uuid"] if isinstance(record.get("uuid"), str) else last
        if isinstance(message, UserMessage):
            if message.origin == "summary":
                messages = []
            continuations = _count(record.get("continuation"))
        messages.append(message)
    return Past(tuple(_answered(messages)), continuations, last, frozenset(keys))


def _records(path: str) -> Iterator[dict[str, Any]]:
    with usable(path):
        yield from read_records(path)


def _count(said: object) -> int:
    return said if type(said) is int and 0 <= said <= COUNT_MOST else 0


def _answered(messages: list[Message]) -> Iterator[Message]:
    """Every tool call has one result, right after it: providers refuse any other conversation.

    What was written between two replies belongs to the first of them: the results of its calls, in as many
    records as there are, and then what was said.
    """
    for reply, rest in _by_reply(messages):
        if reply is not None:
            yield reply
        if reply is not None and reply.tool_uses:
            found = [
                result for message in rest if isinstance(message, ToolResults) for result in message.results
            ]
            yield ToolResults(tuple(_result(use, found) for use in reply.tool_uses))
        yield from (message for message in rest if isinstance(message, UserMessage))


def _by_reply(messages: list[Message]) -> Iterator[tuple[Reply | None, list[Message]]]:
    """Each reply with what follows it up to the next one; what comes before the first has none."""
    reply: Reply | None = None
    rest: list[Message] = []
    for message in messages:
        if isinstance(message, Reply):
            yield reply, rest
            reply, rest = message, []
        else:
            rest.append(message)
    yield reply, rest


def _result(use: ToolUse, found: list[ToolResult]) -> ToolResult:
    lost = ToolResult(use.id, "the session ended before this tool did", is_error=True)
    return next((result for result in found if result.tool_use_id == use.id), lost)


@dataclass
class SessionLock:
    """One process at a time writes a session; the lock dies with its owner."""

    path: str
    _fd: int = field(default=-1)

    def take(self) -> None:
        with usable(self.path):
            self._fd = self._locked()
            os.ftruncate(self._fd, 0)
            os.write(self._fd, str(os.getpid()).encode())

    def _locked(self) -> int:
        """A lock on a file that was removed meanwhile, with its whole folder, would hold nothing."""
        for _ in range(TRIES):
            with contextlib.suppress(FileNotFoundError):  # removed since we made it
                make_private_dir(os.path.dirname(self.path))
                fd = open_regular_file(self.path, os.O_RDWR | os.O_CREAT)
                self._lock(fd)
                if is_same_file(self.path, fd):
                    return fd
                os.close(fd)
        raise FileNotFoundError(errno.ENOENT, "it is removed again and again", self.path)

    def _lock(self, fd: int) -> None:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(fd, 100).decode("ascii", "replace").strip()
            os.close(fd)
            session = os.path.basename(os.path.dirname(self.path))
            raise SessionBusy(
                f"session {session} is in use by process {owner or 'unknown'}; end that one, or start another session"
            ) from None

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@dataclass(frozen=True)
class SessionSummary:
    """One earlier session, as `turngate sessions` shows it."""

    session_id: str
    changed: float
    size: int
    first: str  # what the user asked first
    project: str
    path: str


def list_sessions(state: str) -> list[SessionSummary]:
    """Newest first."""
    found = []
    for folder in _folders(state):
        path = os.path.join(folder, CHAT)
        with contextlib.suppress(OSError):
            info = os.stat(path)
            first, project = _first_words(path)
            found.append(
                SessionSummary(os.path.basename(folder), info.st_mtime, info.st_size, first, project, path)
            )
    return sorted(found, key=lambda listed: -listed.changed)


def _folders(state: str) -> Iterator[str]:
    """Every session's folder, also where the mux dialect writes."""
    for root in (state, os.path.join(os.path.expanduser("~"), ".mux")):
        folder = os.path.join(root, "sessions")
        with contextlib.suppress(OSError):  # there is none, or none that we may read
            names = os.listdir(folder)
            yield from (path for name in names if os.path.isdir(path := os.path.join(folder, name)))


def _first_words(path: str) -> tuple[str, str]:
    """What was asked first, and in which project."""
    project = ""
    for number, record in enumerate(read_records(path)):
        message = message_of(record)
        project = project or str(record.get("cwd", ""))
        if isinstance(message, UserMessage) and message.origin == "user":
            return " ".join(message.text.split())[:80], project
        if number > 20:
            break
    return "", project


def prune(state: str, days: float) -> list[str]:
    """Removes sessions that nobody wrote to for so long and that nobody holds; says which."""
    removed = []
    for path in list(_folders(state)):
        with contextlib.suppress(OSError, UsageError):  # somebody holds it, or has removed it meanwhile
            if time.time() - _changed(path) >= days * 86400:
                _remove(path, state)
                removed.append(os.path.basename(path))
    return sorted(removed)


def _changed(folder: str) -> float:
    every = [os.path.join(folder, name) for name in os.listdir(folder)]
    return max(os.path.getmtime(path) for path in every or [folder])


def _remove(folder: str, state: str) -> None:
    lock = SessionLock(os.path.join(state, "sessions", os.path.basename(folder), "lock"))
    lock.take()
    try:
        shutil.rmtree(folder)
    finally:
        lock.release()
