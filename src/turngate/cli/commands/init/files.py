"""The files that `turngate init` reads and writes. It creates and appends; it never replaces anything."""

import contextlib
import errno
import os
import shutil
import stat

from turngate.cli.git_ignore import NOT_IGNORED, check_ignore
from turngate.errors import UsageError
from turngate.filesystem.real_path import real_path
from turngate.state.files import write_all

FOLDER = ".turngate"
SETTINGS = f"{FOLDER}/settings.json"
LOCAL_SETTINGS = f"{FOLDER}/settings.local.json"
_APPEND = os.O_RDWR | os.O_CREAT | os.O_APPEND


def check_place(project: str) -> None:
    """Raise UsageError if the settings of this project would be those of another place, or of the user."""
    if real_path(project) == real_path(os.path.expanduser("~")):
        raise UsageError(
            f"this is your home folder, and ~/{SETTINGS} holds your own settings for all projects; "
            "change to a project, or name one with --project"
        )
    folder = os.path.join(project, FOLDER)
    if os.path.islink(folder):
        raise UsageError(
            f"{FOLDER} is a link to {os.readlink(folder)}, and what is written there may not be this project's; "
            f"replace the link by a folder, or write {SETTINGS} yourself"
        )
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise UsageError(f"{FOLDER} is a file, expected a folder; rename it")


def settings_exist(project: str) -> bool:
    return os.path.lexists(os.path.join(project, SETTINGS))


def write_settings(project: str, text: str) -> None:
    """Create the settings file, and leave nothing behind if that fails. Raises OSError, also if there is one."""
    folder = os.path.join(project, FOLDER)
    is_new = not os.path.isdir(folder)
    if is_new:
        os.mkdir(folder)
    try:
        _create(os.path.join(project, SETTINGS), text.encode())
    except BaseException:
        if is_new:
            with contextlib.suppress(OSError):
                os.rmdir(folder)
        raise


def _create(path: str, data: bytes) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        write_all(fd, data)
        os.fsync(fd)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(fd)


def ignore_is_missing(project: str) -> bool:
    """Whether git would commit the local settings of this project."""
    git = shutil.which("git")
    return git is not None and check_ignore(git, project, LOCAL_SETTINGS) == NOT_IGNORED


def add_to_gitignore(project: str) -> None:
    """Append the local settings to `.gitignore`. Raises OSError, also for one that is not a file of its own."""
    path = os.path.join(project, ".gitignore")
    fd = os.open(path, _APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        last = os.pread(fd, 1, info.st_size - 1) if info.st_size else b"\n"
        write_all(fd, (b"" if last == b"\n" else b"\n") + f"{LOCAL_SETTINGS}\n".encode())
    finally:
        os.close(fd)
