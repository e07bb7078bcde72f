"""Read the files of a project on the machine where it is: this one, or the one of `current_files`.

Settings, approvals, agent types and tools read files with these functions instead of those of `os`. They have the same
names, and raise the same errors. Imports little: the fast path of `turngate fire` needs it.
"""

import os
import stat as modes
from collections.abc import Callable, Mapping
from contextvars import ContextVar


class MachineUnreachable(Exception):
    """The machine where the files are does not answer; the text says why.

    It is not an OSError: those say something about one file, and reading goes on.
    """


class Files:
    """The files of another machine. A path is absolute and has no NUL.

    The methods block, and raise OSError or MachineUnreachable.
    """

    machine: str  # its name: `ssh://me@build`
    home: str  # the home folder there
    environ: Mapping[str, str]  # of a login there

    def stat(self, path: str) -> os.stat_result:
        raise NotImplementedError

    def lstat(self, path: str) -> os.stat_result:
        raise NotImplementedError

    def readlink(self, path: str) -> str:
        raise NotImplementedError

    def listdir(self, path: str) -> list[str]:
        raise NotImplementedError

    def is_executable(self, path: str) -> bool:
        raise NotImplementedError

    def read(self, path: str, max_bytes: int) -> bytes:
        """Return the content of a regular file, through links, but at most `max_bytes`."""
        raise NotImplementedError


# Whose files are read now; None: those of this machine.
current_files: ContextVar[Files | None] = ContextVar("current_files", default=None)


def machine() -> str:
    """Return the name of the machine, or "" for this one."""
    files = current_files.get()
    return "" if files is None else files.machine


def home_folder() -> str:
    files = current_files.get()
    return os.path.expanduser("~") if files is None else files.home


def expand_home(path: str) -> str:
    """Return a path whose `~/` is the home folder on that machine; `~name` is known on this machine only."""
    files = current_files.get()
    if files is None:
        return os.path.expanduser(path)
    return files.home + path[1:] if path == "~" or path.startswith("~/") else path


def environ() -> Mapping[str, str]:
    files = current_files.get()
    return os.environ if files is None else files.environ


def stat(path: str) -> os.stat_result:
    files = current_files.get()
    return os.stat(path) if files is None else files.stat(path)


def lstat(path: str) -> os.stat_result:
    files = current_files.get()
    return os.lstat(path) if files is None else files.lstat(path)


def readlink(path: str) -> str:
    files = current_files.get()
    return os.readlink(path) if files is None else files.readlink(path)


def listdir(path: str) -> list[str]:
    files = current_files.get()
    return os.listdir(path) if files is None else files.listdir(path)


def is_executable(path: str) -> bool:
    files = current_files.get()
    return os.access(path, os.X_OK) if files is None else files.is_executable(path)


def exists(path: str) -> bool:
    return _mode(stat, path) is not None


def lexists(path: str) -> bool:
    return _mode(lstat, path) is not None


def isfile(path: str) -> bool:
    return modes.S_ISREG(_mode(stat, path) or 0)


def isdir(path: str) -> bool:
    return modes.S_ISDIR(_mode(stat, path) or 0)


def islink(path: str) -> bool:
    return modes.S_ISLNK(_mode(lstat, path) or 0)


def _mode(function: Callable[[str], os.stat_result], path: str) -> int | None:
    try:
        return function(path).st_mode
    except (OSError, ValueError):
        return None
