"""Paths without links, of a project or of this machine. Imports little: the fast path of `turngate fire` needs it."""

import errno
import os
from collections.abc import Callable

from turngate.filesystem import files

MAX_LINKS = 40  # as many as Linux follows
_NOT_A_LINK = (errno.EINVAL, errno.ENOENT, errno.ENOTDIR)


def resolve(path: str, readlink: Callable[[str], str] = files.readlink) -> str:
    """Return the absolute path without links; its end need not exist. Raises only OSError.

    The path is one of the project's machine; with `os.readlink`, of this one.

    Unlike `os.path.realpath`, it neither calls itself for each link nor follows more links than the system. It raises
    an error for a link that cannot be read, such as /proc/1/exe, and for a path that no file can have.
    """
    if "\0" in path:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
    absolute = path if path.startswith("/") else f"{os.getcwd()}/{path}"
    links, names, resolved = 0, absolute.split("/")[::-1], ""
    while names:
        name = names.pop()
        if name == "..":
            resolved = resolved.rpartition("/")[0]
        elif name not in ("", "."):
            target = _link_target(f"{resolved}/{name}", readlink)
            if target is None:
                resolved = f"{resolved}/{name}"
                continue
            links += 1
            if links > MAX_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
            resolved = "" if target.startswith("/") else resolved
            names += target.split("/")[::-1]
    return resolved or "/"


def _link_target(path: str, readlink: Callable[[str], str]) -> str | None:
    """Return what a link holds, or None if the path is not a link."""
    try:
        return readlink(path)
    except ValueError:  # it holds a lone surrogate; a link of another machine may lead to a null character
        raise OSError(errno.EILSEQ, os.strerror(errno.EILSEQ), path) from None
    except OSError as error:
        if error.errno in _NOT_A_LINK:
            return None
        raise


def real_path(path: str) -> str:
    """Return the absolute path without links, to compare it with others. A path that cannot be resolved stays as it is."""
    try:
        return resolve(path)
    except OSError:
        return path


def real_local_path(path: str) -> str:
    """Return the same for a path of this machine, also where the project is on another one."""
    try:
        return resolve(path, os.readlink)
    except OSError:
        return path


def locate(path: str) -> str:
    """Return the absolute path without links, with a slash at the end if it is a folder; `~/` is the home folder."""
    real = real_path(files.expand_home(path))
    return f"{real.rstrip('/')}/" if files.isdir(real) else real


def is_inside(path: str, folder: str) -> bool:
    """Return whether a resolved path is a resolved folder or below it."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
