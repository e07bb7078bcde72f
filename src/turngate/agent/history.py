"""A session's folder: its transcript, who writes it, and the conversation as it was left."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from turngate.agent.transcript import message_of, read_records
from turngate.core.messages import Message, Reply, Results, Said, ToolResult
from turngate.errors import SessionBusy
from turngate.journal import make_private, session_folder

CHAT = "chat.jsonl"


@dataclass(frozen=True)
class Past:
    """What a transcript says about where the conversation stands."""

    messages: tuple[Message, ...] = ()
    continuations: int = 0  # of the turn that was not finished; 0 when it was
    last: str | None = field(default=None, compare=False)  # the last message's id


def chat_path(state: str, session: str, dialect: str = "turngate") -> str:
    """Where a conversation is written; document 000 names a place of its own."""
    home = os.path.join(os.path.expanduser("~"), ".mux")
    return os.path.join(session_folder(home if dialect == "mux" else state, session), CHAT)


def read_past(path: str) -> Past:
    """The conversation up to its last whole message; tools that never answered get an answer."""
    messages: list[Message] = []
    continuations = 0
    last: str | None = None
    for record in read_records(path):
        kind = record.get("type")
        if kind == "cleared":
            messages, continuations = [], 0
        elif kind == "turn_end":
            continuations = 0
        message = message_of(record)
        if message is None:
            continue
        last = record.get("uuid") or last
        if isinstance(message, Said):
            if message.origin == "summary":
                messages = []
            count = record.get("continuation", 0)
            continuations = count if type(count) is int else 0
        messages.append(message)
    return Past(tuple(_answered(messages)), continuations, last)


def _answered(messages: list[Message]) -> Iterator[Message]:
    """Every tool call has its result: providers refuse a conversation in which one is missing."""
    for place, message in enumerate(messages):
        yield message
        follower = messages[place + 1] if place + 1 < len(messages) else None
        if isinstance(message, Reply) and message.tool_uses and not isinstance(follower, Results):
            lost = "the session ended before this tool did"
            yield Results(tuple(ToolResult(use.id, lost, is_error=True) for use in message.tool_uses))


@dataclass
class SessionLock:
    """One process at a time writes a session; the lock dies with its owner."""

    path: str
    _fd: int = field(default=-1)

    def take(self) -> None:
        make_private(os.path.dirname(self.path))
        fd = os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(fd, 100).decode("ascii", "replace").strip()
            os.close(fd)
            session = os.path.basename(os.path.dirname(self.path))
            raise SessionBusy(
                f"session {session} is in use by process {owner or 'unknown'}; end that one, or start another session"
            ) from None
        os.ftruncate(fd, 0)
        os.write(fd, str(os.getpid()).encode())
        self._fd = fd

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@dataclass(frozen=True)
class Listed:
    """One earlier session, as `turngate sessions` shows it."""

    session_id: str
    changed: float
    size: int
    first: str  # what the user asked first
    project: str
    path: str


def list_sessions(state: str) -> list[Listed]:
    """Newest first."""
    found = []
    for folder in _folders(state):
        path = os.path.join(folder, CHAT)
        with contextlib.suppress(OSError):
            info = os.stat(path)
            first, project = _first_words(path)
            found.append(Listed(os.path.basename(folder), info.st_mtime, info.st_size, first, project, path))
    return sorted(found, key=lambda listed: -listed.changed)


def _folders(state: str) -> Iterator[str]:
    """Every session's folder, also where the mux dialect writes."""
    for root in (state, os.path.join(os.path.expanduser("~"), ".mux")):
        folder = os.path.join(root, "sessions")
        for name in os.listdir(folder) if os.path.isdir(folder) else ():
            if os.path.isdir(os.path.join(folder, name)):
                yield os.path.join(folder, name)


def _first_words(path: str) -> tuple[str, str]:
    """What was asked first, and in which project."""
    project = ""
    for number, record in enumerate(read_records(path)):
        message = message_of(record)
        project = project or str(record.get("cwd", ""))
        if isinstance(message, Said) and message.origin == "user":
            return " ".join(message.text.split())[:80], project
        if number > 20:
            break
    return "", project


def prune(state: str, days: float) -> list[str]:
    """Removes sessions that nobody wrote to for so long and that nobody holds; says which."""
    removed = []
    for path in list(_folders(state)):
        newest = max(
            (os.path.getmtime(os.path.join(path, each)) for each in os.listdir(path)),
            default=os.path.getmtime(path),
        )
        if time.time() - newest < days * 86400:
            continue
        lock = SessionLock(os.path.join(state, "sessions", os.path.basename(path), "lock"))
        with contextlib.suppress(SessionBusy):
            lock.take()
            shutil.rmtree(path)
            lock.release()
            removed.append(os.path.basename(path))
    return sorted(removed)
