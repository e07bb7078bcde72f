"""Paths of settings files and script hooks. Imports little: every stop needs it."""

import errno
import os
import stat
import sys

from turngate.core.constants import DIALECT_NAMES, FAMILIES, MANAGED, SCRIPT_FAMILIES, SCRIPTS
from turngate.project.files import LOCAL, Files

# Where an administrator configures Claude Code. No environment variable changes it: a project could set that too.
MANAGED_FOLDERS = ("/etc/claude-code", "/Library/Application Support/ClaudeCode")
MANAGED_FOLDER = MANAGED_FOLDERS[sys.platform == "darwin"]


class SettingsFile:
    """A file that may hold settings or be a script hook: its path, and its name in messages (`~/.claude/…`)."""

    def __init__(self, path: str, display_name: str, level: str, family: str) -> None:
        self.path, self.display_name, self.level, self.family = path, display_name, level, family


def settings_files(
    project: str | None, dialect: str, home: str | None = None, *, files: Files
) -> list[SettingsFile]:
    """Return every file that may hold settings, weakest first. A file that is reached twice counts as the first.

    Managed settings stay managed settings, also where a project links to them. None: only the files of no project.
    """
    home = home or files.home
    managed = _managed_files(files) if "claude" in FAMILIES[dialect] else {}
    found: dict[str, SettingsFile] = {}
    for level, folder, name in (
        ("user", home, "settings.json"),
        ("project", project, "settings.json"),
        ("local", project, "settings.local.json"),
    ):
        if folder is None:
            continue
        for family in FAMILIES[dialect]:
            path = os.path.join(folder, f".{family}", name)
            display_name = f"{'~/' if level == 'user' else ''}.{family}/{name}"
            target = files.realpath(path)
            if target not in managed:
                found.setdefault(target, SettingsFile(path, display_name, level, family))
    return [*found.values(), *managed.values()]


def _managed_files(files: Files) -> dict[str, SettingsFile]:
    """Return `managed-settings.json` and the files of `managed-settings.d` by their real paths, weakest first."""
    tops = MANAGED_FOLDERS if files.machine else (MANAGED_FOLDER,)  # of either system
    top = next(filter(files.isdir, tops), None)
    if top is None:
        return {}
    folder = os.path.join(top, "managed-settings.d")
    try:
        names = sorted(name for name in files.listdir(folder) if name.endswith(".json") and name[0] != ".")
    except OSError:
        names = []
    paths = [os.path.join(top, "managed-settings.json"), *(os.path.join(folder, name) for name in names)]
    return {files.realpath(path): SettingsFile(path, path, MANAGED, "claude") for path in paths}


def unread_files(project: str, dialect: str, files: Files) -> str | None:
    """Return a sentence about the settings of a project that only other dialects read, or None if there are none."""
    for family in sorted({*FAMILIES["turngate"]} - {*FAMILIES[dialect]}, reverse=True):
        for name in ("settings.json", "settings.local.json"):
            if files.isfile(os.path.join(project, f".{family}", name)):
                readers = [reader for reader in DIALECT_NAMES if family in FAMILIES[reader]]
                verb = "dialect reads" if len(readers) == 1 else "dialects read"
                return f"there is .{family}/{name}, which the {' and '.join(readers)} {verb}"
    return None


def script_files(project: str, dialect: str) -> list[tuple[str, SettingsFile]]:
    """Return every path whose executable is a hook by its name alone, with its event."""
    return [
        (
            event,
            SettingsFile(os.path.join(project, f".{family}", name), f".{family}/{name}", "project", family),
        )
        for family in FAMILIES[dialect]
        if family in SCRIPT_FAMILIES
        for event, name in SCRIPTS.items()
    ]


# ~/.claude also holds the transcripts of all projects.
_CLAUDE_FOLDERS = ("agents", "commands", "hooks")
_CLAUDE_FILES = ("settings.json", "settings.local.json")


def settings_snapshot(files: Files, project: str) -> Files:
    """Return the same files; of another machine, the usual places of settings are read at once, and nothing twice."""
    return files.snapshot(settings_places(files, project)) if files.machine else files


def settings_places(files: Files, project: str) -> list[str]:
    """Return the folders and files of settings, and the folders of programs, as `Files.snapshot` takes them."""
    home, project = files.home.rstrip("/"), project.rstrip("/")
    folders = [*MANAGED_FOLDERS, *(f"{home}/.claude/{name}" for name in _CLAUDE_FOLDERS)]
    for family in FAMILIES["turngate"]:
        folders.append(f"{project}/.{family}")
        if family != "claude":
            folders.append(f"{home}/.{family}")
    path = files.environ.get("PATH", "")
    programs = [os.path.normpath(folder) for folder in path.split(":") if folder.startswith("/")]
    parts = project.split("/")
    # One of these may be that of a repository.
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    return [
        *(f"{home}/.claude/{name}" for name in _CLAUDE_FILES),
        *(f"{folder}/**" for folder in folders),
        f"{project}/.",
        *(f"{folder}/.git" for folder in above),
        *programs,
    ]


class NotARegularFile(Exception):
    """Raised for a folder, a device or a pipe in the place of a settings file."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class FileTooLarge(Exception):
    """Raised for a file that is larger than the limit."""


def read_bytes(path: str, max_bytes: int, files: Files = LOCAL) -> bytes:
    """Return the content of a regular file without ever blocking, even for files such as /proc/kmsg.

    Raises OSError, NotARegularFile or FileTooLarge.
    """
    try:
        info = files.stat(path)
    except ValueError:  # it holds a null character or a lone surrogate
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), path) from None
    if stat.S_ISDIR(info.st_mode):
        raise NotARegularFile("is a folder, expected a file", "remove or rename the folder")
    if not stat.S_ISREG(info.st_mode):
        raise NotARegularFile("is not a regular file")
    if info.st_size > max_bytes or len(data := files.read(path, max_bytes + 1)) > max_bytes:
        raise FileTooLarge
    return data


def read_text(path: str, files: Files = LOCAL, max_bytes: int = 1024 * 1024) -> str:
    """Return the content of a regular file, or an empty text if it cannot be read."""
    try:
        return read_bytes(path, max_bytes, files).decode("utf-8", "surrogateescape")
    except (OSError, NotARegularFile, FileTooLarge):
        return ""
