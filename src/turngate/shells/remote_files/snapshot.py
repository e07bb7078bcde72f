"""FilesSnapshot: what one command has read of another machine, for one load of settings. All else is asked there."""

import errno
import os
from collections.abc import Iterable

from turngate.filesystem.files import Files
from turngate.shells.remote_files.scripts import Content, Described

FAMILIES = (".turngate", ".mux", ".claude")
# ~/.claude also holds the transcripts of all projects.
HOME_FOLDERS = (".turngate", ".mux", ".claude/agents", ".claude/commands", ".claude/hooks")
HOME_FILES = (".claude/settings.json", ".claude/settings.local.json", ".claude/CLAUDE.md")
PROJECT_FILES = ("CLAUDE.md", "AGENTS.md", "CLAUDE.local.md")
MANAGED_FOLDERS = ("/etc/claude-code", "/Library/Application Support/ClaudeCode")  # of either system
DEPTH = 3  # of what is described below a folder


def settings_paths(project: str, home: str) -> list[str]:
    """Return the usual places of settings.

    A folder of which the content is meant ends with `/.`, one of which the names are meant with `/./.`.
    """
    folders = [f"{project}/{name}" for name in FAMILIES]
    folders += [*(f"{home}/{name}" for name in HOME_FOLDERS), *MANAGED_FOLDERS]
    files = [f"{project}/{name}" for name in PROJECT_FILES] + [f"{home}/{name}" for name in HOME_FILES]
    return [*with_parents((*files, *folders)), *(f"{folder}/." for folder in folders), f"{project}/./."]


def with_parents(paths: Iterable[str]) -> list[str]:
    """Return the paths and all folders above them."""
    found: dict[str, None] = {}
    for path in paths:
        names = path.strip("/").split("/")
        found.update(dict.fromkeys("/" + "/".join(names[:n]) for n in range(1, len(names) + 1)))
    return list(found)


class FilesSnapshot(Files):
    """The cache is never renewed: use it for one load."""

    def __init__(self, files: Files, found: Iterable[Described | Content]) -> None:
        self.home, self.environ, self.files = files.home, files.environ, files
        self.machine = files.machine
        self._described: dict[str, Described] = {}
        self._contents: dict[str, bytes] = {}
        for file in found:
            if isinstance(file, Content):
                self._contents[file.path] = file.data
            else:
                self._described[file.path] = file
        self._names = self._listings()

    def _listings(self) -> dict[str, list[str]]:
        """Return the names in each folder that was listed."""
        depths = {
            path.removesuffix("/.").removesuffix("/."): 1 if path.endswith("/./.") else DEPTH
            for path, file in self._described.items()
            if path.endswith("/.") and _is_listable(file)
        }
        names = {root: list[str]() for root in depths}
        for path, file in self._described.items():
            parent, _, name = path.rpartition("/")
            if parent in names and file.kind != "-" and name != ".":
                names[parent].append(name)
                root = max((root for root in depths if path.startswith(f"{root}/")), key=len)
                if _is_listable(file) and path[len(root) :].count("/") < depths[root]:
                    names.setdefault(path, [])
        return names

    def lstat(self, path: str) -> os.stat_result:
        known = self._known(path)
        return known.stat if known and known.stat else self.files.lstat(path)

    def stat(self, path: str) -> os.stat_result:
        known = self._known(path)
        info = known and (known.followed if known.kind == "l" else known.stat)
        return info or self.files.stat(path)

    def readlink(self, path: str) -> str:
        known = self._known(path)
        if known is None or (known.kind == "l" and not known.target):
            return self.files.readlink(path)
        if known.kind != "l":
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path)
        return known.target

    def listdir(self, path: str) -> list[str]:
        self._known(path)
        return list(self._names[path]) if path in self._names else self.files.listdir(path)

    def is_executable(self, path: str) -> bool:
        try:
            known = self._known(path)
        except FileNotFoundError:
            return False
        return known.is_executable if known else self.files.is_executable(path)

    def read(self, path: str, max_bytes: int) -> bytes:
        self._known(path)
        data = self._contents.get(path)
        return self.files.read(path, max_bytes) if data is None else data[:max_bytes]

    def snapshot(self, project: str, others: Files | None = None) -> Files:
        return self.files.snapshot(project, others)

    def snapshot_of(self, *paths: str, others: Files | None = None) -> Files:
        return self.files.snapshot_of(*paths, others=others)

    def look_up(self, *paths: str) -> Files:
        return self.files.look_up(*paths)

    def _known(self, path: str) -> Described | None:
        """Return what is known of a path, None if that is nothing. Raises FileNotFoundError."""
        known = self._described.get(path)
        if known is not None and known.kind != "-":
            return known
        if self._is_missing(path):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return None

    def _is_missing(self, path: str) -> bool:
        """Return whether there is certainly no such file: it, or a folder above it, is missing."""
        while path:
            known = self._described.get(path)
            parent, _, name = path.rpartition("/")
            if known is None:
                if self._is_not_listed(parent, name):
                    return True
            elif known.kind != "-":
                return False
            elif not parent or ((above := self._described.get(parent)) and _is_folder(above)):
                return True
            path = parent
        return False

    def _is_not_listed(self, folder: str, name: str) -> bool:
        """The file system may ignore the case, and compose characters."""
        if folder not in self._names or name in ("", ".", "..") or not name.isascii():
            return False
        return not any(each.lower() == name.lower() for each in self._names[folder])


def _is_folder(file: Described) -> bool:
    """Return whether names below it can be looked up."""
    info = file.followed if file.kind == "l" else file.stat
    return info is not None and file.is_executable and (info.st_mode & 0o170000) == 0o040000


def _is_listable(file: Described) -> bool:
    return file.kind == "d" and file.is_readable and file.is_executable
