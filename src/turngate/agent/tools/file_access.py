"""Open, inspect and replace one file for a tool, on the machine where the project is."""

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from turngate.agent.tools.base import FileVersion, ToolContext
from turngate.filesystem.descent import open_parent, open_regular
from turngate.shells.file_scripts import BLOCK_BYTES
from turngate.shells.remote_files import Inspected, RemoteFiles

FIRST_BLOCKS = 4  # that are read of a file on another machine; then as many as were read so far
MAX_BLOCKS = 64  # of one command


class FileState(NamedTuple):
    mode: int
    version: FileVersion
    is_writable: bool


class FileAccess(Protocol):
    """A file that may not exist. Its path has no links, unless one has been put there meanwhile: PathChanged."""

    def open(self) -> tuple[io.BufferedReader, FileVersion]:
        """Open a regular file, without ever waiting for a writer."""
        ...

    def inspect(self) -> FileState:
        """Return the state of the file itself, which may be a link. Raises FileNotFoundError."""
        ...

    def replace(self, data: bytes) -> FileVersion:
        """Replace the file that was inspected in one step. The mode stays, and the owner where the user may set it."""
        ...


@contextlib.contextmanager
def access_file(path: str, context: ToolContext, *, create: bool = False) -> Iterator[FileAccess]:
    """Yield a resolved path. With `create`, missing folders are made at the latest when it is replaced."""
    if context.is_local:
        with open_parent(path, create=create) as (folder, name):
            yield LocalFile(folder, name)
    else:
        yield RemoteFile(remote_files(context), path, make_folders=create)


def remote_files(context: ToolContext) -> RemoteFiles:
    files = context.world and context.world.files
    if not isinstance(files, RemoteFiles):
        raise TypeError(f"the tools need RemoteFiles, not {type(files).__name__}")
    return files


class LocalFile:
    def __init__(self, folder: int, name: str) -> None:
        self._folder, self._name = folder, name
        self._before: os.stat_result | None = None

    def open(self) -> tuple[io.BufferedReader, FileVersion]:
        file = open_regular(self._name, self._folder)
        return file, os.fstat(file.fileno()).st_mtime

    def inspect(self) -> FileState:
        info = self._before = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
        is_writable = os.access(self._name, os.W_OK, dir_fd=self._folder)  # os.replace does not check
        return FileState(info.st_mode, info.st_mtime, is_writable)

    def replace(self, data: bytes) -> FileVersion:
        temporary = f".turngate-{os.urandom(6).hex()}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        fd = os.open(temporary, flags, 0o666, dir_fd=self._folder)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                if self._before is not None:
                    with contextlib.suppress(PermissionError):
                        os.fchown(fd, self._before.st_uid, self._before.st_gid)
                    os.fchmod(fd, stat.S_IMODE(self._before.st_mode))
                file.flush()
                mtime = os.fstat(fd).st_mtime
            os.replace(temporary, self._name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=self._folder)
            raise
        return mtime


class RemoteFile:
    def __init__(self, files: RemoteFiles, path: str, *, make_folders: bool) -> None:
        self._files, self._path, self._make_folders = files, path, make_folders
        self._before: Inspected | None = None

    def open(self) -> tuple[io.BufferedReader, FileVersion]:
        data, version = self._files.read_blocks(self._path, 0, FIRST_BLOCKS)
        return io.BufferedReader(_Blocks(self._files, self._path, data)), version

    def inspect(self) -> FileState:
        found = self._before = self._files.inspect(self._path)
        return FileState(found.stat.st_mode, found.version, found.is_writable)

    def replace(self, data: bytes) -> FileVersion:
        return self._files.replace(self._path, data, self._before, make_folders=self._make_folders)


class _Blocks(io.RawIOBase):
    """A file on another machine, read block by block; `data` is its beginning."""

    def __init__(self, files: RemoteFiles, path: str, data: bytes) -> None:
        self._files, self._path = files, path
        self._unread, self._next = memoryview(data), FIRST_BLOCKS
        self._is_end = len(data) < FIRST_BLOCKS * BLOCK_BYTES

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        if not self._unread and not self._is_end:
            self._read_on()
        count = min(len(buffer), len(self._unread))
        buffer[:count] = self._unread[:count]
        self._unread = self._unread[count:]
        return count

    def _read_on(self) -> None:
        count = min(self._next, MAX_BLOCKS)
        data, _ = self._files.read_blocks(self._path, self._next, count)
        self._unread, self._next = memoryview(data), self._next + count
        self._is_end = len(data) < count * BLOCK_BYTES
