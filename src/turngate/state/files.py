"""Open, create and write files safely: regular files only, private by default, no short writes."""

import contextlib
import errno
import os
import stat


def is_same_file(path: str, fd: int) -> bool:
    """Does the path still lead to the file that we have opened?"""
    try:
        return os.path.samestat(os.stat(path), os.fstat(fd))
    except FileNotFoundError:
        return False


def write_all(fd: int, data: bytes) -> None:
    """A full disk takes a part and says nothing; it says so when it is given the rest."""
    while data:
        data = data[os.write(fd, data) :]


def open_regular_file(path: str, flags: int) -> int:
    """Opens a plain file, and nothing else: a pipe would hold us up for ever, a device keeps nothing."""
    fd = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY, 0o600)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is no plain file", path)
    return fd


def make_private_dir(folder: str) -> None:
    """makedirs gives its mode to the last folder alone."""
    if not os.path.isdir(folder):
        make_private_dir(os.path.dirname(folder))
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
