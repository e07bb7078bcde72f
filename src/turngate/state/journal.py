"""The journal: one JSON line per hook run and verdict, written by a background thread."""

import atexit
import fcntl
import hashlib
import json
import os
import queue
import threading
import time
from collections.abc import Mapping
from typing import Any

from turngate.state.files import is_same_file, make_private_dir, open_regular_file, write_all
from turngate.state.paths import session_folder

JOURNAL = "journal.jsonl"


OLDER = "journal.1.jsonl"


FILE_MOST = 4 * 1024 * 1024  # bytes; a fuller journal becomes the older one, and the older one goes


TEXTS_MOST = 50  # whole texts kept per session,


TEXTS_BYTES = 64 * 1024 * 1024  # and how large they may be together


PATIENCE = 1.0  # seconds for another process that writes to the same journal


class Journal:
    """Lines are written by a thread of its own; what can not be written is said in `fault`."""

    def __init__(self, state: str) -> None:
        self._state = os.path.abspath(state)
        self._lines: _Lines = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self.fault: str | None = None  # the first thing that went wrong, for people

    def record(self, session: str, entry: Mapping[str, Any]) -> None:
        line = {"time": time.time(), "session_id": session, **entry}
        if self._writer is not None or self._start():
            self._lines.put((session, line))
        else:  # no thread is to be had: it is written here and now
            self._write(session, line)

    def keep(self, session: str, text: str) -> str | None:
        folder = os.path.join(session_folder(self._state, session), "texts")
        data = text.encode("utf-8", "replace")
        path = os.path.join(folder, hashlib.sha256(data).hexdigest()[:16] + ".txt")
        try:
            make_private_dir(folder)
            _forget_oldest(folder, len(data))
            with open(open_regular_file(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(data)
        except OSError as error:
            self._failed(error)
            return None
        return path

    def close(self) -> None:
        """Waits until every line is written; the journal may be used again afterwards."""
        writer, self._writer = self._writer, None
        if writer:
            atexit.unregister(self.close)
            self._lines.put(None)
            writer.join(timeout=2.0)

    def _start(self) -> bool:
        """Each writer has a queue of its own: one that is slow to end takes nothing from the next."""
        self._lines = queue.SimpleQueue()
        writer = threading.Thread(
            target=self._write_all, args=(self._lines,), daemon=True, name="turngate-journal"
        )
        try:
            writer.start()
        except RuntimeError:
            return False
        self._writer = writer
        atexit.register(self.close)
        return True

    def _write_all(self, lines: "_Lines") -> None:
        while (item := lines.get()) is not None:
            self._write(*item)

    def _write(self, session: str, entry: Mapping[str, Any]) -> None:
        try:
            _append(session_folder(self._state, session), _line(entry))
        except (OSError, TypeError, ValueError, RecursionError) as error:  # one line is lost, not the rest
            self._failed(error)

    def _failed(self, error: Exception) -> None:
        if self.fault is None:
            where = getattr(error, "filename", None) or self._state
            why = getattr(error, "strerror", None) or error
            self.fault = (
                f"the journal could not be written ({where}: {why}); set TURNGATE_STATE to another folder"
            )


_Lines = queue.SimpleQueue[tuple[str, Mapping[str, Any]] | None]


def _append(folder: str, line: bytes) -> None:
    make_private_dir(folder)
    path = os.path.join(folder, JOURNAL)
    while True:
        fd = open_regular_file(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            alone = _lock(fd)
            if not is_same_file(path, fd):
                continue  # another process has put it aside meanwhile
            size = os.fstat(fd).st_size
            if alone and size and size + len(line) > FILE_MOST:
                os.replace(path, os.path.join(folder, OLDER))
                continue
            if size and os.pread(fd, 1, size - 1) != b"\n":
                line = b"\n" + line  # half a line of a process that was killed, or of a full disk
            write_all(fd, line)
            return
        finally:
            os.close(fd)


def _lock(fd: int) -> bool:
    """Whoever is stopped while it writes holds up nobody: then we write without being alone."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.005)
        except OSError:  # a file system without locks
            return False
        else:
            return True
    return False


def _line(entry: Mapping[str, Any]) -> bytes:
    return (json.dumps(entry, ensure_ascii=False, separators=(",", ":"), default=repr) + "\n").encode(
        "utf-8", "replace"
    )


def _forget_oldest(folder: str, coming: int) -> None:
    """Makes room for one more text, by number and by size."""
    paths = sorted((os.path.join(folder, name) for name in os.listdir(folder)), key=os.path.getmtime)
    sizes = [os.path.getsize(path) for path in paths]
    while paths and (len(paths) >= TEXTS_MOST or sum(sizes) + coming > TEXTS_BYTES):
        os.unlink(paths.pop(0))
        sizes.pop(0)
