"""Sessions on disk: lock one, list them, prune old ones."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass

from turngate._frozen_dataclass import frozen
from turngate.errors import SessionBusy, UsageError
from turngate.state.files import make_private_dir, open_regular_file, os_errors_as_usage_errors
from turngate.state.paths import TRANSCRIPT_FILE
from turngate.transcript.reader import title_and_project


@dataclass
class SessionLock:
    """Lets one process at a time write a session; the kernel releases it when that process dies."""

    path: str
    _fd: int = -1

    def acquire(self) -> None:
        with os_errors_as_usage_errors(self.path):
            make_private_dir(os.path.dirname(self.path))
            fd = open_regular_file(self.path, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(fd, 100).decode("ascii", "replace").strip() or "unknown"
                os.close(fd)
                busy = f"session {os.path.basename(os.path.dirname(self.path))} is in use by process {owner}"
                raise SessionBusy(f"{busy}; end that process, or start another session") from None
            self._fd = fd
            os.ftruncate(fd, 0)
            os.write(fd, str(os.getpid()).encode())

    def release(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


@frozen
class SessionSummary:
    session_id: str
    changed: float
    size: int
    first: str  # the start of the user's first message
    project: str
    path: str


def list_sessions(state: str) -> list[SessionSummary]:
    sessions = []
    for folder in _folders(state):
        path = os.path.join(folder, TRANSCRIPT_FILE)
        with contextlib.suppress(OSError):
            name, info, title = os.path.basename(folder), os.stat(path), title_and_project(path)
            sessions.append(SessionSummary(name, info.st_mtime, info.st_size, *title, path))
    return sorted(sessions, key=lambda session: -session.changed)


def _folders(state: str) -> Iterator[str]:
    """Yield the folder of every session, including those of the mux dialect."""
    for root in (state, os.path.join(os.path.expanduser("~"), ".mux")):
        folder = os.path.join(root, "sessions")
        with contextlib.suppress(OSError):  # it does not exist, or is not readable
            names = os.listdir(folder)
            yield from (path for name in names if os.path.isdir(path := os.path.join(folder, name)))


def prune_sessions(state: str, days: float) -> list[str]:
    """Remove sessions that no process uses and that did not change for `days` days. Return their ids."""
    removed = []
    for path in list(_folders(state)):
        with contextlib.suppress(OSError, UsageError):  # it is in use, or was removed meanwhile
            inside = [os.path.join(path, name) for name in os.listdir(path)]
            if time.time() - max(map(os.path.getmtime, inside or [path])) < days * 86400:
                continue
            lock = SessionLock(os.path.join(state, "sessions", os.path.basename(path), "lock"))
            lock.acquire()
            try:
                shutil.rmtree(path)
            finally:
                lock.release()
            removed.append(os.path.basename(path))
    return sorted(removed)
