"""Open, inspect and replace files although another process replaces folders by links at the same time.

A path is resolved and checked first. Then the system could follow a link that was not there when it was checked. So
each folder of the resolved path is opened relative to the one above it, and a link is an error.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from io import BufferedReader

from turngate.project.files import FileState, FileVersion, check_regular

# With O_PATH, a folder that may not be listed can be passed through.
_FOLDER = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)


class PathChanged(OSError):
    """Raised for a link in a path that had no links when it was resolved."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "a part of the path has just been replaced by a link; try again", path)


@contextlib.contextmanager
def open_parent(path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder of a resolved path, or make it; yield its descriptor and the name of the file in it. Raises PathChanged."""
    *folders, name = path.strip("/").split("/")
    fd = open_folder(folders, create=create)
    try:
        yield fd, name or "."
    finally:
        os.close(fd)


def open_folder(names: Iterable[str], start: int | None = None, *, create: bool = False) -> int:
    """Descend from the folder that is open as `start`, or from the root of the file system. Raises PathChanged."""
    fd = os.open("/" if start is None else ".", _FOLDER, dir_fd=start)
    for name in names:
        try:
            inner = _open_inner(fd, name, create=create)
        finally:
            os.close(fd)
        fd = inner
    return fd


def _open_inner(fd: int, name: str, *, create: bool) -> int:
    try:
        return _open(name, _FOLDER, fd)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, dir_fd=fd)
    return _open(name, _FOLDER, fd)


def open_regular(name: str, dir_fd: int) -> BufferedReader:
    """Open a regular file, never a link, pipe, device or folder, and never wait for a writer. Raises PathChanged."""
    fd = _open(name, os.O_RDONLY | os.O_NONBLOCK, dir_fd)
    try:
        check_regular(os.fstat(fd), name)
    except OSError:
        os.close(fd)
        raise
    return open(fd, "rb")


def _open(name: str, flags: int, dir_fd: int) -> int:
    try:
        return os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=dir_fd)
    except OSError as error:
        # For a link in the place of a folder, Linux reports that it is not a folder.
        if error.errno == errno.ELOOP or (error.errno == errno.ENOTDIR and _is_link(name, dir_fd)):
            raise PathChanged(name) from None
        raise


def _is_link(name: str, dir_fd: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=dir_fd, follow_symlinks=False).st_mode)
    except OSError:
        return False


def open_file(path: str) -> tuple[BufferedReader, FileVersion]:
    """Open a regular file, without ever waiting for a writer. Raises PathChanged."""
    with open_parent(path) as (folder, name):
        file = open_regular(name, folder)
    return file, os.fstat(file.fileno()).st_mtime


def inspect_file(path: str) -> FileState:
    """Raises FileNotFoundError or PathChanged."""
    with open_parent(path) as (folder, name):
        info = os.stat(name, dir_fd=folder, follow_symlinks=False)
        is_writable = os.access(name, os.W_OK, dir_fd=folder)  # os.replace does not check
    return FileState(info, info.st_mtime, is_writable=is_writable)


def replace_file(path: str, data: bytes, before: FileState | None, *, make_folders: bool) -> FileVersion:
    """Replace a file in one step. The mode stays, and the owner where the user may set it. Raises PathChanged."""
    temporary = f".turngate-{os.urandom(6).hex()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with open_parent(path, create=make_folders) as (folder, name):
        fd = os.open(temporary, flags, 0o666, dir_fd=folder)
        try:
            with open(fd, "wb") as file:
                file.write(data)
                if before is not None:
                    with contextlib.suppress(PermissionError):
                        os.fchown(fd, before.stat.st_uid, before.stat.st_gid)
                    os.fchmod(fd, stat.S_IMODE(before.stat.st_mode))
                file.flush()
                mtime = os.fstat(fd).st_mtime
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
    return mtime
