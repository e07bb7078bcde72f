"""The record of runs and verdicts: append-only JSON lines under the state folder, and never in anybody's way."""

import atexit
import contextlib
import hashlib
import json
import os
import queue
import re
import threading
import time
from collections.abc import Mapping
from typing import Any

JOURNAL = "journal.jsonl"
OLDER = "journal.1.jsonl"
FILE_MOST = 4 * 1024 * 1024  # bytes; a fuller journal becomes the older one, and the older one goes
TEXTS_MOST = 50  # whole texts kept per session,
TEXTS_BYTES = 64 * 1024 * 1024  # and how large they may be together


def state_folder(environ: Mapping[str, str] = os.environ) -> str:
    """`$TURNGATE_STATE`, else the XDG state folder."""
    if environ.get("TURNGATE_STATE"):
        return os.path.abspath(environ["TURNGATE_STATE"])
    base = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(base):  # the XDG rule: a relative path is ignored
        base = os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(base, "turngate")


_SAFE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}")


def session_folder(state: str, session: str) -> str:
    """A session's folder; an id that is no plain name gets one made from its hash."""
    if not _SAFE_NAME.fullmatch(session):
        session = "id-" + hashlib.sha256(session.encode("utf-8", "replace")).hexdigest()[:24]
    return os.path.join(state, "sessions", session)


class Journal:
    """Lines are written by a thread of its own; what can not be written is said in `fault`."""

    def __init__(self, state: str) -> None:
        self._state = os.path.abspath(state)
        self._lines: queue.SimpleQueue[tuple[str, Mapping[str, Any]] | None] = queue.SimpleQueue()
        self._writer: threading.Thread | None = None
        self.fault: str | None = None  # the first thing that went wrong, for people

    def record(self, session: str, entry: Mapping[str, Any]) -> None:
        self._lines.put((session, {"time": time.time(), "session_id": session, **entry}))
        if self._writer is None:
            writer = threading.Thread(target=self._write_all, daemon=True, name="turngate-journal")
            try:
                writer.start()
            except RuntimeError:  # no thread is to be had: it is written here and now
                self._lines.put(None)
                self._write_all()
                return
            self._writer = writer
            atexit.register(self.close)

    def keep(self, session: str, text: str) -> str | None:
        folder = os.path.join(session_folder(self._state, session), "texts")
        data = text.encode("utf-8", "replace")
        path = os.path.join(folder, hashlib.sha256(data).hexdigest()[:16] + ".txt")
        try:
            make_private(folder)
            _forget_oldest(folder, len(data))
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
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

    def _write_all(self) -> None:
        while (item := self._lines.get()) is not None:
            session, entry = item
            try:
                self._append(session_folder(self._state, session), _line(entry))
            except OSError as error:
                self._failed(error)

    def _append(self, folder: str, line: bytes) -> None:
        make_private(folder)
        path = os.path.join(folder, JOURNAL)
        with contextlib.suppress(FileNotFoundError):
            if os.stat(path).st_size + len(line) > FILE_MOST:
                os.replace(path, os.path.join(folder, OLDER))
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(fd, line)  # one write: lines of several processes never mix
        finally:
            os.close(fd)

    def _failed(self, error: OSError) -> None:
        if self.fault is None:
            where = error.filename or self._state
            self.fault = f"the journal could not be written ({where}: {error.strerror}); set TURNGATE_STATE to another folder"


def _line(entry: Mapping[str, Any]) -> bytes:
    return (json.dumps(entry, ensure_ascii=False, separators=(",", ":"), default=repr) + "\n").encode(
        "utf-8", "replace"
    )


def make_private(folder: str) -> None:
    """makedirs gives its mode to the last folder alone."""
    if not os.path.isdir(folder):
        make_private(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)


def _forget_oldest(folder: str, coming: int) -> None:
    """Makes room for one more text, by number and by size."""
    paths = sorted((os.path.join(folder, name) for name in os.listdir(folder)), key=os.path.getmtime)
    sizes = [os.path.getsize(path) for path in paths]
    while paths and (len(paths) >= TEXTS_MOST or sum(sizes) + coming > TEXTS_BYTES):
        os.unlink(paths.pop(0))
        sizes.pop(0)
