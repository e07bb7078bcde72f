"""Open, create and write files safely: regular files only, private by default, no short writes."""

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator

from turngate.errors import UsageError


def is_same_file(path: str, fd: int) -> bool:
    """Return whether the path still leads to the file that is open as `fd`."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes. A full disk accepts a part without an error; writing the rest raises it."""
    while data:
        data = data[os.write(fd, data) :]


def write_and_rename(fd: int, temporary: str, path: str, data: bytes) -> None:
    """Write all bytes to a new file that is open as `fd`, and let it replace `path` in one step; if that fails, it is removed."""
    try:
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise


def wait_for_lock(fd: int, path: str, seconds: float) -> None:
    """Lock an open file. Raises BlockingIOError if another process holds the lock for so long, another OSError if there are no locks."""
    end = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= end:
                raise BlockingIOError(errno.EAGAIN, "another process holds it", path) from None
            time.sleep(0.01)
        else:
            return


def open_regular_file(path: str, flags: int) -> int:
    """Open a regular file and nothing else: a pipe would block forever, and a device keeps nothing."""
    try:
        fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    except ValueError:  # a NUL character or a lone surrogate
        raise OSError(errno.EINVAL, "it is not a path", path) from None
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a regular file", path)
    return fd


def make_private_dir(folder: str) -> None:
    """Make a folder and its parents with mode 0700; os.makedirs applies the mode only to the last one."""
    missing = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for path in reversed(missing):
        with contextlib.suppress(FileExistsError):
            os.mkdir(path, 0o700)


@contextlib.contextmanager
def os_errors_as_usage_errors(path: str) -> Iterator[None]:
    """Turn an OSError into a UsageError: the user has to repair the state folder or choose another one."""
    try:
        yield
    except OSError as error:
        raise UsageError(
            f"{error.filename or path} cannot be used: {error.strerror}; "
            "repair it, or set TURNGATE_STATE to another folder"
        ) from None
