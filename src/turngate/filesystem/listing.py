"""Find files of a project by a pattern, or below a folder, on the machine where the project is."""

import contextlib
import glob
import os
from collections.abc import Iterator
from fnmatch import fnmatchcase

from turngate.filesystem import files

_MAGIC = frozenset("*?[")


def match_files(pattern: str) -> Iterator[str]:
    """Yield the paths that a pattern matches, as `glob.iglob` does."""
    return glob.iglob(pattern) if files.current_files.get() is None else _match(pattern)


def _match(pattern: str) -> Iterator[str]:
    folder, name = os.path.split(pattern)
    for parent in [folder] if _MAGIC.isdisjoint(folder) else _match(folder):
        path = os.path.join(parent, name)
        if not _MAGIC.isdisjoint(name):
            yield from (os.path.join(parent, each) for each in _names(parent) if _has_name(each, name))
        elif files.lexists(path) if name else files.isdir(parent):
            yield path


def _has_name(name: str, pattern: str) -> bool:
    return fnmatchcase(name, pattern) and (name[0] != "." or pattern[0] == ".")


def _names(folder: str) -> list[str]:
    with contextlib.suppress(OSError, ValueError):
        return files.listdir(folder)
    return []


def walk(folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each folder below this one with the names of folders and files, as `os.walk` does."""
    return os.walk(folder) if files.current_files.get() is None else _walk(folder)


def _walk(folder: str) -> Iterator[tuple[str, list[str], list[str]]]:
    names = _names(folder)
    folders = [name for name in names if files.isdir(os.path.join(folder, name))]
    others = [name for name in names if name not in folders]
    yield folder, folders, others
    for name in folders:  # the caller may have left some out
        path = os.path.join(folder, name)
        if not files.islink(path):
            yield from _walk(path)
