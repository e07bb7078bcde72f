"""SearchCopy: the files of another machine that a search needs, in a private folder here."""

import errno
import os
import re
import secrets
import shutil
import stat
import tempfile
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from turngate.agent.tools import search_process
from turngate.core.conversation.tools import ToolFailed
from turngate.filesystem.described import Described
from turngate.filesystem.files import MachineUnreachable
from turngate.shells.remote_files.files import RemoteFiles
from turngate.shells.remote_files.script_runner import MAX_ARGUMENT_BYTES
from turngate.shells.remote_files.scripts import BLOCK_BYTES

MAX_FILES = 20_000
MAX_BYTES = 64 * 1024 * 1024
BATCH_BYTES = 4 * 1024 * 1024
BATCH_NAME_BYTES = MAX_ARGUMENT_BYTES // 2
STAT_LINE_BYTES = 300  # at most, without the name
MAX_NAMES = 16  # patterns for `find`
MAX_MTIME_NS = 2**63 - 1  # no system takes later ones
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FIND_NAME = re.compile(r"[\w.*-]+", re.ASCII)  # means the same to `find` and to Glob
# An expression that is its own text: every file that it matches has this text.
_TEXT = re.compile(r"(?:\\b|\^)?([\w :/,;@%&=<>!\"'-]+)(?:\\b|\$)?", re.ASCII)


class SearchCopy:
    """The methods block. `close` may be called while another thread still works."""

    def __init__(self, files: RemoteFiles, query: Mapping[str, Any]) -> None:
        self._files, self._query, self._there = files, query, str(query["resolved"])
        self._folder = os.path.realpath(tempfile.mkdtemp(prefix="turngate-"))
        self.root = os.path.join(self._folder, "root")  # a folder, or a file if that is what is searched
        self._found: list[Described] = []
        self._is_glob, self._is_file = query["tool"] == "Glob", False
        self._is_closed = False
        self._lock = threading.Lock()

        glob = query["pattern"] if self._is_glob else query.get("glob")
        self.pattern = glob if self._is_glob or not glob else search_process.any_folder(glob)

    @property
    def names(self) -> list[list[str]]:
        """The parts of each path below the searched folder."""
        return [self._parts(file.path) for file in self._found]

    def list_files(self) -> None:
        """Find what is there. Raises ToolFailed."""
        try:
            self._list_files()
        except NotADirectoryError:
            if self._is_glob:
                raise ToolFailed(f"{self._query['path']} is not a folder") from None
            self._is_file = True
        except FileNotFoundError:
            raise ToolFailed(f"{self._query['path']} does not exist") from None
        except (OSError, MachineUnreachable) as error:
            raise self._failed(error) from None

    def _list_files(self) -> None:
        skipped = (".git",) if self._is_glob else search_process.NOT_SEARCHED
        depth = search_process.MAX_DEPTH
        found, is_deeper = self._files.tree(self._there, skipped, _find_names(self.pattern), depth)
        self._make_folder(self.root)
        if is_deeper:  # the search reports it
            self._make_folder(os.path.join(self.root, f".{secrets.token_hex(8)}", *["d"] * depth))
        self._found = [
            file
            for file in found
            if (file.kind == "f" or self._is_link_to_file(file)) and len(self._parts(file.path)) <= depth + 1
        ]

    def _is_link_to_file(self, file: Described) -> bool:
        """Grep leaves links out."""
        return (
            self._is_glob and file.kind == "l" and file.stat is not None and stat.S_ISREG(file.stat.st_mode)
        )

    def select(self, numbers: Iterable[int]) -> None:
        """Keep only some of the files that were found."""
        self._found = [self._found[number] for number in numbers]

    def fill(self) -> None:
        """Copy the names and times for Glob, and the contents for Grep. Raises ToolFailed."""
        if len(self._found) > MAX_FILES:
            raise self._too_much(f"{len(self._found):,} files")
        try:
            if self._is_file:
                self._copy_file()
            elif self._is_glob:
                for file in self._found:
                    self._put(self._here(file.path), b"", file.stat)
            else:
                self._copy_contents()
        except (OSError, MachineUnreachable) as error:
            raise self._failed(error) from None

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            shutil.rmtree(self._folder, ignore_errors=True)

    def _copy_file(self) -> None:
        data = self._read(self._there, MAX_BYTES + 1) or b""
        if len(data) > MAX_BYTES:
            raise self._too_much(f"more than {MAX_BYTES // 1024 // 1024} MiB")
        self._put(self.root, data)

    def _copy_contents(self) -> None:
        files = [file for file in self._candidates() if file.is_readable]
        size = sum(file.stat.st_size for file in files if file.stat)
        if size > MAX_BYTES:
            raise self._too_much(f"{size / 1024 / 1024:,.0f} MiB to search")
        for batch in _batches(files):
            for path, data in self._fetch(batch):
                self._put(self._here(path), data)

    def _candidates(self) -> list[Described]:
        """Return the files that may have a match: those with the text, if the expression is only a text."""
        text = None if self._query.get("-i") else _TEXT.fullmatch(self._query["pattern"])
        if text is None:
            return self._found
        matching = set(self._files.search(self._there, search_process.NOT_SEARCHED, text[1]))
        return [file for file in self._found if file.path in matching or "\n" in file.path]

    def _fetch(self, files: Sequence[Described]) -> Iterator[tuple[str, bytes]]:
        """Yield the contents of files with one command; those that are not in its answer are read one by one."""
        paths = [file.path for file in files]
        limit = sum(map(_size, files)) + sum(STAT_LINE_BYTES + 2 * _length(path) for path in paths)
        try:
            contents = {found.path: found.data for found in self._files.fetch(paths, limit + STAT_LINE_BYTES)}
        except OSError:  # a file has grown
            contents = {}
        for file in files:
            data = contents.get(file.path)
            if data is None:
                data = self._read(file.path, _size(file) + BATCH_BYTES)
            if data is not None:
                yield file.path, data

    def _read(self, path: str, max_bytes: int) -> bytes | None:
        try:
            return self._files.read_blocks(path, 0, -(-max_bytes // BLOCK_BYTES))[0]
        except OSError:  # removed meanwhile, not readable, or not a regular file
            return None

    def _put(self, path: str, data: bytes, info: os.stat_result | None = None) -> None:
        """Write a file of the copy. One that is there stays: file systems that ignore the case have two names for it."""
        self._make_folder(os.path.dirname(path))
        with self._lock:
            if self._is_closed:
                raise ToolFailed("the search was ended")
            try:
                fd = os.open(path, _NEW_FILE, 0o600)
            except FileExistsError:
                return
            with open(fd, "wb") as file:
                file.write(data)
                file.flush()
                mtime = info.st_mtime_ns if info else 0  # not known without `stat`
                if abs(mtime) <= MAX_MTIME_NS:
                    os.utime(fd, ns=(mtime, mtime))

    def _make_folder(self, path: str) -> None:
        with self._lock:
            if not self._is_closed:
                os.makedirs(path, exist_ok=True)

    def _parts(self, path: str) -> list[str]:
        return path[len(self._there.rstrip("/")) + 1 :].split("/")

    def _here(self, path: str) -> str:
        return os.path.join(self.root, *self._parts(path))

    def _failed(self, error: OSError | MachineUnreachable) -> ToolFailed:
        if isinstance(error, OSError) and error.errno == errno.EFBIG:
            return self._too_much("too many files")
        return ToolFailed(
            f"{self._query['path']} cannot be used: {getattr(error, 'strerror', None) or error}"
        )

    def _too_much(self, what: str) -> ToolFailed:
        program, narrower = ("find", "`path`") if self._is_glob else ("grep", "`path` or `glob`")
        return ToolFailed(
            f"{self._query['path']} has {what}, which is too much for {self._query['tool']} on another machine: "
            f"make it narrower with {narrower}, or use `{program}` in Bash"
        )


def _find_names(pattern: str | None) -> list[str]:
    """Return patterns for `find` that no matching file lacks; [] for all files."""
    names = search_process.last_names(pattern, MAX_NAMES) if pattern else []
    return names if all(_FIND_NAME.fullmatch(name) and name != "**" for name in names) else []


def _batches(files: Sequence[Described]) -> Iterator[list[Described]]:
    """Divide files so that the contents and the names of each batch are limited."""
    batch: list[Described] = []
    size = names = 0
    for file in files:
        size, names = size + _size(file), names + _length(file.path)
        if batch and (size > BATCH_BYTES or names > BATCH_NAME_BYTES):
            yield batch
            batch, size, names = [], _size(file), _length(file.path)
        batch.append(file)
    if batch:
        yield batch


def _size(file: Described) -> int:
    return file.stat.st_size if file.stat else 0


def _length(path: str) -> int:
    return len(path.encode("utf-8", "surrogateescape")) + 1
