"""Finds the files of a hook whose content is not the recorded one."""

import os
from collections.abc import Mapping

from turngate.filesystem.content import content_id, has_id
from turngate.filesystem.files import exists, listdir, machine
from turngate.filesystem.real_path import is_inside, real_path

Files = Mapping[str, str | None]  # path: id of its content; None: there is no such file


class ChangedFiles:
    """Compares the files of many hooks: each file, and the names in each folder, once."""

    def __init__(self) -> None:
        self._is_same: dict[tuple[str, str], bool] = {}
        self._names: dict[str, frozenset[str] | None] = {}

    def first(self, files: Files) -> str | None:
        """Return the path of the first file that is not as recorded."""
        for path, recorded in files.items():
            if recorded is None:
                if self._may_exist(path) and content_id(path) is not None:
                    return path
            elif not self._has_id(path, recorded):
                return path
        return None

    def _has_id(self, path: str, recorded: str) -> bool:
        if (path, recorded) not in self._is_same:
            self._is_same[path, recorded] = has_id(path, recorded)
        return self._is_same[path, recorded]

    def _may_exist(self, path: str) -> bool:
        """Return False if the folder has no such name; file systems may ignore the case, and compose characters."""
        folder, name = os.path.split(path)
        names = self._listing(folder)
        return names is None or not name.isascii() or name.lower() in names

    def _listing(self, folder: str) -> frozenset[str] | None:
        """Return the names in a folder, or None if it cannot be listed: its files can be opened nevertheless.

        A folder of another machine is not listed: that would take longer than it saves.
        """
        if machine():
            return None
        if folder not in self._names:
            try:
                self._names[folder] = frozenset(name.lower() for name in listdir(folder))
            except (FileNotFoundError, NotADirectoryError):
                self._names[folder] = frozenset()
            except (OSError, ValueError):
                self._names[folder] = None
        return self._names[folder]


def describe_change(files: Files, project: str, changed: ChangedFiles | None = None) -> str | None:
    """Return what has changed, as the beginning of a sentence, or None."""
    path = (changed or ChangedFiles()).first(files)
    if path is None:
        return None
    project = real_path(project)
    name = os.path.relpath(path, project) if is_inside(path, project) else path
    if (files[path] or "").startswith("names:"):
        return f"the list of files {name} was changed"
    if files[path] is None:
        return f"{name}, which it would run or include, was added"
    return f"{name} was {'changed' if exists(path) else 'removed'}"
