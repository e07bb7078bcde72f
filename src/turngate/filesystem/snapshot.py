"""Which machine a block of code reads files of, and a snapshot of another one: each file is asked for only once."""

import errno
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar

from turngate.filesystem.described import DEPTH, Content, Described, DescribedFiles
from turngate.filesystem.files import Files, current_files

MAX_LOOK_UPS = 4  # commands for links that lead to links

T = TypeVar("T")


@contextmanager
def snapshot(paths: Callable[[], Collection[str]]) -> Iterator[None]:
    """Ask about each file only once within the block, and read those that `paths` returns at once at its beginning.

    On this machine, and within another snapshot, it has no effect.
    """
    files = current_files.get()
    if files is None or isinstance(files, Snapshot):
        yield
    else:
        with _reading(take_snapshot(files, paths())):
            yield


@contextmanager
def looked_up(paths: Collection[str]) -> Iterator[None]:
    """Look these paths up at once at the beginning of the block; on this machine it has no effect."""
    files = current_files.get()
    if files is not None:
        with suppress(OSError):  # each file is asked for
            files = look_up(files, paths)
    with _reading(files):
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


def take_snapshot(files: Files, paths: Iterable[str]) -> "Snapshot":
    """Return the same files with the contents of some of them, and what is known of the folders above them."""
    try:
        return Snapshot(files, _describe(files, with_parents(paths), contents=True))
    except OSError:  # too much, or not what was expected: each file is asked for
        return Snapshot(files)


def look_up(files: Files, paths: Iterable[str]) -> "Snapshot":
    """Return the same files with what is known of some paths, of the folders above them, and of those that links lead to.

    Raises OSError.
    """
    found: dict[str, Described | Content] = {}
    wanted = list(paths)
    for _ in range(MAX_LOOK_UPS):
        missing = [path for path in with_parents(wanted) if path not in found]
        if not missing:
            break
        found.update((file.path, file) for file in _describe(files, missing))
        wanted = [behind for path in wanted if (behind := _behind_link(path, found))]
    return Snapshot(files, found.values())


def _describe(files: Files, paths: Sequence[str], *, contents: bool = False) -> Iterable[Described | Content]:
    return files.describe(paths, contents=contents) if isinstance(files, DescribedFiles) and paths else ()


def with_parents(paths: Iterable[str]) -> list[str]:
    """Return the paths and all folders above them; those with a NUL are left out."""
    found: dict[str, None] = {}
    for path in paths:
        if "\0" not in path:
            names = [name for name in path.split("/") if name not in ("", ".")]
            found.update(dict.fromkeys("/" + "/".join(names[:n]) for n in range(1, len(names) + 1)))
            found[path] = None
    return list(found)


def _behind_link(path: str, found: Mapping[str, Described | Content]) -> str:
    """Return where a path leads if one of its folders, or itself, is a link, as far as that is known; else ""."""
    for part in with_parents([path]):
        link = found.get(part)
        if isinstance(link, Described) and link.target:
            target = os.path.join(os.path.dirname(part), link.target)
            return os.path.normpath(target + path[len(part) :])
    return ""


class Snapshot(Files):
    """The answers of another machine: as they were when it was taken or, for other files, at the first question."""

    def __init__(self, files: Files, found: Iterable[Described | Content] = ()) -> None:
        self._files = files
        self.machine, self.home, self.environ = files.machine, files.home, files.environ
        self._described: dict[str, Described] = {}
        self._contents: dict[str, bytes] = {}
        for file in found:
            if isinstance(file, Content):
                self._contents[file.path] = file.data
            else:
                self._described[file.path] = file
        self._names = _listings(self._described)
        self._answers: dict[tuple[Any, ...], Any] = {}
        self._first: dict[str, str] = {}  # by folder: the first name that was asked for
        self._missing: set[str] = set()

    def stat(self, path: str) -> os.stat_result:
        known = self._known(path)
        info = known and (known.followed if known.kind == "l" else known.stat)
        return info or self._ask(self._files.stat, path)

    def lstat(self, path: str) -> os.stat_result:
        known = self._known(path)
        return (known and known.stat) or self._ask(self._files.lstat, path)

    def readlink(self, path: str) -> str:
        known = self._known(path)
        if known and known.kind != "l":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return (known and known.target) or self._ask(self._files.readlink, path)

    def listdir(self, path: str) -> list[str]:
        self._known(path)
        if path not in self._names:
            self._names[path] = self._ask(self._files.listdir, path)
        return list(self._names[path])

    def is_executable(self, path: str) -> bool:
        try:
            known = self._known(path)
        except FileNotFoundError:
            return False
        return known.is_executable if known else self._ask(self._files.is_executable, path)

    def read(self, path: str, max_bytes: int) -> bytes:
        self._known(path)
        data = self._contents.get(path)
        return self._ask(self._files.read, path, max_bytes) if data is None else data[:max_bytes]

    def _ask(self, method: Callable[..., T], path: str, *others: Any) -> T:
        key = (method.__name__, path, *others)
        if key not in self._answers:
            try:
                self._answers[key] = method(path, *others)
            except OSError as error:
                self._answers[key] = error
                if isinstance(error, FileNotFoundError) and method.__name__ in ("lstat", "readlink"):
                    self._missing.add(path)  # the others follow a link
        answer: T | OSError = self._answers[key]
        if isinstance(answer, OSError):
            raise answer.with_traceback(None)
        return answer

    def _known(self, path: str) -> Described | None:
        """Return what is known of a path, None if that is nothing. Raises FileNotFoundError, or ValueError for a NUL."""
        if "\0" in path:
            raise ValueError("embedded null character")
        known = self._described.get(path)
        if known is not None and known.kind != "-":
            return known
        if self._is_missing(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return None

    def _is_missing(self, path: str) -> bool:
        """Return whether there is certainly no such path. A folder is listed at the second name that is asked for."""
        if self._is_known_missing(path):
            self._missing.add(path)
            return True
        folder, name = os.path.split(path.rstrip("/"))
        if name in ("", ".", "..") or self._first.setdefault(folder, name) == name or folder in self._names:
            return False
        try:
            self._names[folder] = self._ask(self._files.listdir, folder)
        except FileNotFoundError:
            return True
        except OSError:  # its files may be known nevertheless
            return False
        return self._is_not_listed(folder, name)

    def _is_known_missing(self, path: str) -> bool:
        """Return whether it, or a folder above it, is known to be missing, without another question."""
        while path not in ("", "/"):
            known = self._described.get(path)
            folder, _, name = path.rpartition("/")
            if path in self._missing or (known is None and self._is_not_listed(folder, name)):
                return True
            if known is not None and known.kind != "-":
                return False
            if known is not None and (not folder or self._is_folder(folder)):
                return True
            path = folder
        return False

    def _is_folder(self, path: str) -> bool:
        known = self._described.get(path)
        return known is not None and known.is_folder

    def _is_not_listed(self, folder: str, name: str) -> bool:
        """The file system may ignore the case, and compose characters."""
        names = self._names.get(folder or "/")
        if names is None or name in ("", ".", "..") or not name.isascii():
            return False
        return not any(each.lower() == name.lower() for each in names)


def _listings(described: Mapping[str, Described]) -> dict[str, list[str]]:
    """Return the names in each folder that was listed."""
    depths = {
        path.removesuffix("/.").removesuffix("/."): 1 if path.endswith("/./.") else DEPTH
        for path, file in described.items()
        if path.endswith("/.") and file.is_listable
    }
    names = {root: list[str]() for root in depths}
    for path, file in described.items():
        parent, _, name = path.rpartition("/")
        if parent in names and file.kind != "-" and name != ".":
            names[parent].append(name)
            root = max((root for root in depths if path.startswith(f"{root}/")), key=len)
            if file.is_listable and path[len(root) :].count("/") < depths[root]:
                names.setdefault(path, [])
    return names
