"""Which machine a block of code reads files of, and a snapshot of another one: each file is asked for only once."""

import errno
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from contextvars import ContextVar
from typing import Any, TypeVar

from turngate.filesystem.files import Files, current_files

T = TypeVar("T")
_in_snapshot: ContextVar[Files | None] = ContextVar("in_snapshot", default=None)


@contextmanager
def snapshot(project: str) -> Iterator[None]:
    """Ask about each file of a project only once within the block; on this machine it has no effect.

    The usual places of settings are read at once.
    """
    files = current_files.get()
    if files is None or _in_snapshot.get() is files:
        yield
        return
    copy = files.snapshot(project, Snapshot(files))
    token = _in_snapshot.set(copy)
    try:
        with _reading(copy):
            yield
    finally:
        _in_snapshot.reset(token)


@contextmanager
def snapshot_of(paths: Collection[str]) -> Iterator[None]:
    """Read these files at once at the beginning of the block; on this machine it has no effect."""
    files = current_files.get()
    known = [path for path in paths if "\0" not in path]
    with _reading(files and files.snapshot_of(*known, others=Snapshot(files))):
        yield


@contextmanager
def looked_up(paths: Collection[str]) -> Iterator[None]:
    """Look these paths up at once at the beginning of the block; on this machine it has no effect."""
    files = found = current_files.get()
    known = [path for path in paths if "\0" not in path]
    if files is not None and known:
        with suppress(OSError):  # those who ask for the files report it
            found = files.look_up(*known)
    with _reading(found):
        yield


def this_machine() -> AbstractContextManager[None]:
    """Read files of this machine within the block, also while a project on another one is read."""
    return _reading(None)


@contextmanager
def _reading(files: Files | None) -> Iterator[None]:
    token = current_files.set(files)
    try:
        yield
    finally:
        current_files.reset(token)


class Snapshot(Files):
    """The answers of another machine: as they were at the first question."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self.machine, self.home = files.machine, files.home
        self.environ: Mapping[str, str] = files.environ
        self._answers: dict[tuple[Any, ...], Any] = {}
        self._first: dict[str, str] = {}  # by folder: the first name that was asked for
        self._missing: set[str] = set()

    def stat(self, path: str) -> os.stat_result:
        return self._ask(self._files.stat, path)

    def lstat(self, path: str) -> os.stat_result:
        return self._ask(self._files.lstat, path)

    def readlink(self, path: str) -> str:
        return self._ask(self._files.readlink, path)

    def is_executable(self, path: str) -> bool:
        return not self._is_missing(path) and self._ask(self._files.is_executable, path)

    def listdir(self, path: str) -> list[str]:
        return list(self._ask(self._files.listdir, path))

    def read(self, path: str, max_bytes: int) -> bytes:
        return self._ask(self._files.read, path, max_bytes)

    def _ask(self, method: Callable[..., T], path: str, *others: Any) -> T:
        if "\0" in path:
            raise ValueError("embedded null character")
        key = (method.__name__, path, *others)
        if key not in self._answers:
            self._answers[key] = self._answer(method, path, *others)
        answer: T | OSError = self._answers[key]
        if isinstance(answer, OSError):
            raise answer.with_traceback(None)
        return answer

    def _answer(self, method: Callable[..., T], path: str, *others: Any) -> T | OSError:
        if self._is_missing(path):
            return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        try:
            return method(path, *others)
        except FileNotFoundError as error:
            if method.__name__ in ("lstat", "readlink"):  # the others follow a link
                self._missing.add(path)
            return error
        except OSError as error:
            return error

    def _is_missing(self, path: str) -> bool:
        """Return whether it is known that there is no such path: its folder is missing, or does not list it.

        A folder is listed at the second name that is asked for.
        """
        if path in self._missing:
            return True
        folder, name = os.path.split(path.rstrip("/"))
        if name in ("", ".", ".."):
            return False
        if self._is_known_missing(folder) or (
            self._first.setdefault(folder, name) != name and self._is_not_listed(folder, name)
        ):
            self._missing.add(path)
        return path in self._missing

    def _is_known_missing(self, folder: str) -> bool:
        """Return whether a folder, or one above it, is missing, as far as it is known without another question."""
        if folder == "/" or folder in self._missing:
            return folder != "/"
        parent, name = os.path.split(folder)
        return self._is_known_missing(parent) or (
            ("listdir", parent) in self._answers and self._is_not_listed(parent, name)
        )

    def _is_not_listed(self, folder: str, name: str) -> bool:
        try:
            names = self._ask(self._files.listdir, folder)
        except FileNotFoundError:
            return True
        except OSError:  # its files may be known nevertheless
            return False
        # The file system may ignore the case, and compose characters.
        return name.isascii() and not any(each.lower() == name.lower() for each in names)
