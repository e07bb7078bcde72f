"""Open, inspect and replace one file of another machine for a tool."""

import io

from turngate.agent.tools.file_access import FileState
from turngate.agent.tools.tool import FileVersion, ToolContext
from turngate.shells.remote_files.files import Inspected, RemoteFiles
from turngate.shells.remote_files.scripts import BLOCK_BYTES

FIRST_BLOCKS = 4  # that are read of a file; each further command reads as many blocks as have been read
MAX_BLOCKS = 64  # of one command


def remote_files(context: ToolContext) -> RemoteFiles:
    files = context.world and context.world.files
    if not isinstance(files, RemoteFiles):
        raise TypeError(f"the tools need RemoteFiles, not {type(files).__name__}")
    return files


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
