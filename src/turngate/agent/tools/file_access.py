"""Open, inspect and replace one file for a tool, on the machine where the project is."""

import contextlib
import io
import os
import stat
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from turngate.agent.tools.tool import FileVersion, ToolContext
from turngate.filesystem.descent import open_parent, open_regular


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
        from turngate.agent.tools.remote_file import RemoteFile, remote_files  # noqa: PLC0415 - few projects need it

        yield RemoteFile(remote_files(context), path, make_folders=create)


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
