"""The journal: one JSON line per hook run, verdict, end of a turn and warning, written by a background thread."""

import atexit
import hashlib
import json
import os
import queue
import threading
import time
from collections.abc import Mapping
from typing import Any

from turngate.state.files import is_same_file, make_private_dir, open_regular_file, wait_for_lock, write_all
from turngate.state.paths import session_folder

JOURNAL_FILE = "journal.jsonl"
OLDER_JOURNAL_FILE = "journal.1.jsonl"
MAX_JOURNAL_BYTES = 4 * 1024 * 1024  # a larger journal becomes the older one, which is replaced
MAX_TEXTS = 50  # texts kept per session
MAX_TEXTS_BYTES = 64 * 1024 * 1024  # of all texts of one session
LOCK_TIMEOUT_S = 1.0
CLOSE_TIMEOUT_S = 2.0


class Journal:
    """The Store in the state folder. A thread writes the lines; what cannot be written sets `fault`.

    Each line names the project, because several projects can use one session, such as that of `turngate fire`.
    """

    def __init__(self, state: str, project: str = "") -> None:
        self._state = os.path.abspath(state)
        self._project = {"project": project} if project else {}
        self._lines: _Lines = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self.fault: str | None = None  # the first error, as a message for the user

    def record(self, session: str, entry: Mapping[str, Any]) -> None:
        """Append one line to the journal of a session, with the time."""
        line = {"time": time.time(), "session_id": session, **self._project, **entry}
        if self._writer is None:
            self._start()
        self._lines.put((session, line))

    def keep(self, session: str, text: str) -> str | None:
        """Write a long text to a file of its own; return its path, or None if it could not be written."""
        folder = os.path.join(session_folder(self._state, session), "texts")
        data = text.encode("utf-8", "replace")
        path = os.path.join(folder, hashlib.sha256(data).hexdigest()[:16] + ".txt")
        try:
            make_private_dir(folder)
            _delete_oldest(folder, len(data))
            with open(open_regular_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(data)
        except OSError as error:
            self._record_error(error)
            return None
        return path

    def close(self) -> None:
        """Wait until every line is written. The journal may be used again afterward."""
        writer, self._writer = self._writer, None
        if writer:
            atexit.unregister(self.close)
            self._lines.put(None)
            writer.join(timeout=CLOSE_TIMEOUT_S)

    def _start(self) -> None:
        """Start a writer with a queue of its own, so that one that is slow to end takes nothing from the next."""
        self._lines = queue.SimpleQueue()
        args, name = (self._lines,), "turngate-journal"
        self._writer = threading.Thread(target=self._write_lines, args=args, daemon=True, name=name)
        self._writer.start()
        atexit.register(self.close)

    def _write_lines(self, lines: "_Lines") -> None:
        while (item := lines.get()) is not None:
            session, entry = item
            try:
                line = json.dumps(entry, ensure_ascii=False, separators=(",", ":"), default=repr)
                _append(session_folder(self._state, session), f"{line}\n".encode("utf-8", "replace"))
            except (OSError, TypeError, ValueError, RecursionError) as error:  # only this line is lost
                self._record_error(error)

    def _record_error(self, error: Exception) -> None:
        if self.fault is None:
            where = getattr(error, "filename", None) or self._state
            why = getattr(error, "strerror", None) or error
            what = f"the journal could not be written ({where}: {why})"
            self.fault = f"{what}; set TURNGATE_STATE to another folder"


_Lines = queue.SimpleQueue[tuple[str, Mapping[str, Any]] | None]


def _append(folder: str, line: bytes) -> None:
    make_private_dir(folder)
    path = os.path.join(folder, JOURNAL_FILE)
    while True:
        fd = open_regular_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            locked = _lock(fd, path)
            if not is_same_file(path, fd):
                continue  # another process has rotated it meanwhile
            size = os.fstat(fd).st_size
            if locked and size and size + len(line) > MAX_JOURNAL_BYTES:
                os.replace(path, os.path.join(folder, OLDER_JOURNAL_FILE))
                continue
            if size and os.pread(fd, 1, size - 1) != b"\n":
                line = b"\n" + line  # half a line, left by a killed process or a full disk
            write_all(fd, line)
            return
        finally:
            os.close(fd)


def _lock(fd: int, path: str) -> bool:
    """Return False if there is no lock to be had: a suspended writer must not block us."""
    try:
        wait_for_lock(fd, path, LOCK_TIMEOUT_S)
    except OSError:
        return False
    return True


def _delete_oldest(folder: str, needed_bytes: int) -> None:
    """Make room for one more text, by number and by size."""
    paths = sorted((os.path.join(folder, name) for name in os.listdir(folder)), key=os.path.getmtime)
    sizes = [os.path.getsize(path) for path in paths]
    while paths and (len(paths) >= MAX_TEXTS or sum(sizes) + needed_bytes > MAX_TEXTS_BYTES):
        os.unlink(paths.pop(0))
        sizes.pop(0)
