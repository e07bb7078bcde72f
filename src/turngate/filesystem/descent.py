"""Open files below a folder although another process replaces folders by links at the same time.

A path is resolved and checked first. Then the system could follow a link that was not there when it was checked. So
each folder of the resolved path is opened relative to the one above it, and a link is an error.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterable, Iterator
from io import BufferedReader

# With O_PATH, a folder that may not be listed can be passed through.
_FOLDER = os.O_DIRECTORY | getattr(os, "O_PATH", os.O_RDONLY)


class PathChanged(OSError):
    """Raised for a link in a path that had no links when it was resolved."""

    def __init__(self, path: str) -> None:
        super().__init__(errno.ELOOP, "a part of the path has just been replaced by a link; try again", path)


@contextlib.contextmanager
def open_parent(path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
    """Open the folder of a resolved path; yield its descriptor, as `dir_fd`, and the name of the file in it.

    With `create`, missing folders are made. Raises PathChanged.
    """
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
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return open(fd, "rb")
    os.close(fd)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), name)
    raise OSError(errno.EINVAL, "it is not a regular file", name)


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
