"""Sessions on disk: lock one, list them, prune old ones."""

import contextlib
import errno
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from turngate.core.messages import UserMessage
from turngate.errors import SessionBusy, UsageError
from turngate.state.files import is_same_file, make_private_dir, open_regular_file, os_errors_as_usage_errors
from turngate.state.paths import TRANSCRIPT_FILE
from turngate.transcript.reader import message_of, read_records

TRIES = 20  # at a lock whose folder is being removed


@dataclass
class SessionLock:
    """One process at a time writes a session; the lock dies with its owner."""

    path: str
    _fd: int = field(default=-1)

    def acquire(self) -> None:
        with os_errors_as_usage_errors(self.path):
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
        path = os.path.join(folder, TRANSCRIPT_FILE)
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
    lock.acquire()
    try:
        shutil.rmtree(folder)
    finally:
        lock.release()
