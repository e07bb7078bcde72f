"""Read and replace the settings file of a host: never half written, never one that another process has just changed."""

import contextlib
import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator

from turngate.errors import UsageError
from turngate.filesystem.real_path import real_path
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.state.files import write_and_rename

MAX_BYTES = 8 * 1024 * 1024
LOCK_TIMEOUT_S = 10.0
UNCHANGED = "nothing was changed"


class ChangedMeanwhile(UsageError):
    """Another process has changed the file after it was read."""


def read_settings_text(path: str) -> str | None:
    """Return the text of a file, with its line ends and byte order mark, or None if there is none. Raises UsageError."""
    try:
        return read_bytes(path, MAX_BYTES).decode()
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise _unusable(path, "is a link to a file that does not exist") from None
        return None
    except FileTooLarge:
        raise _unusable(path, f"is larger than {MAX_BYTES // 1024 // 1024} MiB") from None
    except NotARegularFile as error:
        raise _unusable(path, str(error)) from None
    except UnicodeDecodeError as error:
        raise _unusable(path, f"is not UTF-8 (byte {error.start})") from None
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from None


def _unusable(path: str, why: str) -> UsageError:
    return UsageError(f"{path} {why}; {UNCHANGED}")


def check_owner(path: str) -> None:
    """Raise UsageError for a file that is another user's, or that its owner has protected."""
    if not os.path.exists(path):
        return
    if os.stat(path).st_uid != os.geteuid():
        raise _unusable(path, "belongs to another user")
    if not os.access(path, os.W_OK):
        raise _unusable(path, "is not writable")


def replace_settings_text(
    path: str, before: str | None, after: str | None, *, prepare: Callable[[], None] = lambda: None
) -> None:
    """Replace the text of a file, or create (`before` is None) or remove it (`after` is None).

    A link stays, and its target is replaced. `prepare` is called when it is certain that this process writes.
    Raises OSError, or ChangedMeanwhile if the text is not `before`.
    """
    target = real_path(path)
    with _locked(os.path.dirname(target)):
        if read_settings_text(path) != before:
            raise ChangedMeanwhile(
                f"{path} has changed after it was read; {UNCHANGED}, run the command again"
            )
        prepare()
        if after is None:
            os.unlink(target)
        else:
            _replace(target, after.encode())


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    """Hold a lock on the folder itself: it leaves no file behind, and is the same one for every state folder."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        end = time.monotonic() + LOCK_TIMEOUT_S
        while not _try_lock(fd):
            if time.monotonic() > end:
                raise OSError(errno.EAGAIN, "another process is changing it", folder)
            time.sleep(0.02)
        yield
    finally:
        os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def _replace(path: str, data: bytes) -> None:
    """Write a new file beside the old one, then rename it. One that a killed process has left is overwritten."""
    temporary = os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.turngate-new")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    _copy_mode(path, fd)
    write_and_rename(fd, temporary, path, data)


def _copy_mode(path: str, fd: int) -> None:
    with contextlib.suppress(FileNotFoundError):
        info = os.stat(path)
        with contextlib.suppress(OSError):  # a group that this user is not in
            os.fchown(fd, -1, info.st_gid)
        os.fchmod(fd, info.st_mode & 0o7777)


# Folders


def make_folders(path: str) -> list[str]:
    """Make the missing folders of a file, and return them, the outermost first. Raises OSError, and then makes none."""
    missing: list[str] = []
    folder = os.path.dirname(path)
    while not os.path.lexists(folder):
        missing.insert(0, folder)
        folder = os.path.dirname(folder)
    made: list[str] = []
    try:
        for folder in missing:
            with contextlib.suppress(FileExistsError):  # another process was faster
                os.mkdir(folder)
                made.append(folder)
    except OSError:
        remove_folders(made)
        raise
    return made


def remove_folders(folders: list[str]) -> None:
    """Remove folders that are empty, the innermost first."""
    for folder in reversed(folders):
        with contextlib.suppress(OSError):
            os.rmdir(folder)
