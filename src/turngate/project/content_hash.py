"""What a file holds, as a short text that can be stored and compared."""

import hashlib
import os
import stat
from itertools import islice

from turngate.project.files import Files
from turngate.project.safe_paths import is_inside

MAX_HASHED_BYTES = 1024 * 1024  # a larger file is a program, and is first compared by its size and its times
MAX_LARGE_BYTES = 64 * 1024 * 1024  # of which the content is compared if the times differ
MAX_NAMES = 10_000
# What the system installs is compared by its path alone: an update does not change what a hook is.
SYSTEM_FOLDERS = ("/bin", "/sbin", "/lib", "/lib64", "/usr", "/opt", "/nix/store", "/System", "/Library")


def file_id(files: Files, path: str, project: str | None = None) -> str | None:
    """Return an id of a file: of its content or, if the system has installed it, of its path without links."""
    is_installed = is_system_file(files, path, project) and files.isfile(path)
    return f"path:{files.realpath(path)}" if is_installed else content_id(files, path)


def has_id(files: Files, path: str, recorded: str) -> bool:
    """Return whether a file still has this id."""
    if recorded.startswith("path:"):
        return f"path:{files.realpath(path)}" == recorded and files.isfile(path)
    if recorded.startswith("stat:") and _has_stat_id(files, path, recorded):
        return True
    current = names_id(files, path) if recorded.startswith("names:") else content_id(files, path)
    return current == recorded or (current is not None and _is_same_large_file(current, recorded))


def content_id(files: Files, path: str) -> str | None:
    """Return an id of the content of a file, through links; None if there is no regular file."""
    if files.machine:
        return _content_id_there(files, path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return _id_of_unreadable(files, path)
    try:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            return None
        if info.st_size > MAX_HASHED_BYTES:
            return f"{_stat_id(info)}{_large_digest(fd, info.st_size)}"
        return f"sha256:{hashlib.sha256(_read(fd)).hexdigest()}"
    except OSError:
        return _id_of_unreadable(files, path)
    finally:
        os.close(fd)


def _content_id_there(files: Files, path: str) -> str | None:
    """Return the id of a file of another machine, whose times do not show that it was written."""
    try:
        data = files.read(path, MAX_LARGE_BYTES + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError):
        return _id_of_unreadable(files, path)
    if len(data) > MAX_LARGE_BYTES:
        return _id_of_unreadable(files, path)
    digest = hashlib.sha256(data).hexdigest()
    return f"sha256:{digest}" if len(data) <= MAX_HASHED_BYTES else f"stat:{len(data)}:-:-:-:{digest}"


def names_id(files: Files, pattern: str) -> str:
    """Return an id of the names of the files that a pattern matches."""
    names = "\0".join(sorted(islice(files.match(pattern), MAX_NAMES)))
    return f"names:{hashlib.sha256(os.fsencode(names)).hexdigest()}"


def is_list_of_names(recorded: str) -> bool:
    """Return whether an id is that of `names_id`."""
    return recorded.startswith("names:")


def is_system_file(files: Files, path: str, project: str | None = None) -> bool:
    """A project may be in a folder of the system: /usr/src/app, /opt/app. `project` has no links."""
    real = files.realpath(path)
    if project is not None and is_inside(real, project):
        return False
    return any(is_inside(real, folder) for folder in SYSTEM_FOLDERS)


def _read(fd: int) -> bytes:
    """Return at most MAX_HASHED_BYTES + 1: a file that grows meanwhile has no end."""
    data = bytearray()
    while len(data) <= MAX_HASHED_BYTES and (chunk := os.read(fd, MAX_HASHED_BYTES)):
        data += chunk
    return bytes(data)


def _stat_id(info: os.stat_result) -> str:
    """The change time cannot be set by a program, so a file that was written has another id."""
    return f"stat:{info.st_size}:{info.st_mtime_ns}:{info.st_ctime_ns}:{info.st_ino}"


def _large_digest(fd: int, size: int) -> str:
    """Return the end of a large file's id: with it, the same content that was written again is the same file."""
    if size > MAX_LARGE_BYTES:
        return ""
    digest, left = hashlib.sha256(), size
    while left > 0 and (chunk := os.read(fd, min(left, MAX_HASHED_BYTES))):
        digest.update(chunk)
        left -= len(chunk)
    return f":{digest.hexdigest()}"


def _has_stat_id(files: Files, path: str, recorded: str) -> bool:
    """Return whether a large file was not written since it was recorded, without reading it."""
    try:
        current = _stat_id(files.stat(path))
    except (OSError, ValueError):
        return False
    return recorded == current or recorded.startswith(f"{current}:")


def _is_same_large_file(current: str, recorded: str) -> bool:
    """Compare the digests of two ids `stat:SIZE:MTIME:CTIME:INODE:DIGEST`."""
    one, other = current.split(":"), recorded.split(":")
    return one[0] == other[0] == "stat" and len(one) == len(other) == 6 and one[5] == other[5]


def _id_of_unreadable(files: Files, path: str) -> str | None:
    """Return the id of a program that may be run but not read, or that is too large."""
    try:
        info = files.stat(path)
    except (OSError, ValueError):
        return None
    return _stat_id(info) if stat.S_ISREG(info.st_mode) else None
