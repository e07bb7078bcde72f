"""The answers of another machine about its files, each asked for only once."""

import errno
import os
import stat as modes
from collections.abc import Callable, Iterable
from io import BufferedReader
from typing import Any

from turngate.aio.threads import T
from turngate.project.files import Files, FileVersion

# An answer is what a method returned or raised, by the name of the method and the path.
Answers = dict[tuple[str, str], Any]


class Snapshot(Files):
    """Each answer is as it was when the snapshot was taken or, for other files, at the first question."""

    def __init__(self, files: Files, answers: Answers) -> None:
        self._files, self.answers = files, answers
        self.machine, self.home, self.environ = files.machine, files.home, files.environ

    @property
    def live(self) -> Files:
        return self._files

    def stat(self, path: str) -> os.stat_result:
        return self._ask(self._files.stat, path)

    def lstat(self, path: str) -> os.stat_result:
        return self._ask(self._files.lstat, path)

    def readlink(self, path: str) -> str:
        known = self.answers.get(("lstat", path))
        if isinstance(known, os.stat_result) and not modes.S_ISLNK(known.st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return self._ask(self._files.readlink, path)

    def listdir(self, path: str) -> list[str]:
        return list(self._ask(self._files.listdir, path))

    def scan(self, path: str) -> dict[str, os.stat_result]:
        return self._ask(self._files.scan, path)

    def read(self, path: str, max_bytes: int) -> bytes:
        data = self.answers.get(("read", path))
        return self._files.read(path, max_bytes) if data is None else data[:max_bytes]

    def resolve(self, path: str) -> str:
        if ("lstat", os.path.dirname(path)) in self.answers:
            return super().resolve(path)
        return self._ask(self._files.resolve, path)

    def locate(self, path: str) -> str:
        return self._ask(self._files.locate, path)

    def open(self, path: str) -> tuple[BufferedReader, FileVersion]:
        return self._files.open(path)

    def snapshot(self, places: Iterable[str] = ()) -> Files:
        """Return this snapshot, with what is at these places unless it is known already."""
        if missing := [place for place in places if not self._knows(place)]:
            read = self._files.snapshot(missing)
            self.answers = {**(read.answers if isinstance(read, Snapshot) else {}), **self.answers}
        return self

    def _knows(self, place: str) -> bool:
        path = place.removesuffix("/**").removesuffix("/.")
        return ("lstat" if path == place else "scan", path) in self.answers or self._is_missing(path)

    def _ask(self, method: Callable[[str], T], path: str) -> T:
        key = (method.__name__, path)
        if key not in self.answers:
            try:
                if self._is_missing(path):
                    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
                self.answers[key] = method(path)
            except OSError as error:
                self.answers[key] = error
        answer: T = self.answers[key]
        if isinstance(answer, OSError):
            raise answer.with_traceback(None)
        return answer

    def _is_missing(self, path: str) -> bool:
        """Return whether the path, or a folder above it, is known not to exist."""
        while "/" in path.rstrip("/"):
            folder, _, name = path.rstrip("/").rpartition("/")
            names = self.answers.get(("listdir", folder or "/"))
            is_listed = not isinstance(names, list) or _may_name(name, names)
            if isinstance(self.answers.get(("lstat", path)), FileNotFoundError) or not is_listed:
                return True
            path = folder
        return False


def _may_name(name: str, names: list[str]) -> bool:
    """The file system may ignore the case, and compose characters."""
    return not name.isascii() or name in (".", "..") or name.lower() in (each.lower() for each in names)
