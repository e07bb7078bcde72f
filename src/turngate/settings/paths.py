"""Paths of settings files and script hooks. Imports little: the fast path of `turngate fire` needs it."""

import os
import stat

from turngate.core.constants import FAMILIES, SCRIPT_FAMILIES, SCRIPTS


class SettingsFile:
    """A file that may hold settings or be a script hook: its path, and its name in messages (`~/.claude/…`)."""

    def __init__(self, path: str, display_name: str, level: str, family: str) -> None:
        self.path, self.display_name, self.level, self.family = path, display_name, level, family


def settings_files(project: str, dialect: str, home: str | None = None) -> list[SettingsFile]:
    """Return every file that may hold settings, weakest first. A file that is reached twice counts as the first."""
    home = home or os.path.expanduser("~")
    files: dict[str, SettingsFile] = {}
    for level, folder, name in (
        ("user", home, "settings.json"),
        ("project", project, "settings.json"),
        ("local", project, "settings.local.json"),
    ):
        for family in FAMILIES[dialect]:
            path = os.path.join(folder, f".{family}", name)
            display_name = f"{'~/' if level == 'user' else ''}.{family}/{name}"
            files.setdefault(os.path.realpath(path), SettingsFile(path, display_name, level, family))
    return list(files.values())


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


class NotARegularFile(Exception):
    """Raised for a folder, a device or a pipe in the place of a settings file."""

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class FileTooLarge(Exception):
    """Raised for a file that is larger than the limit."""


def read_bytes(path: str, max_bytes: int) -> bytes:
    """Return the content of a regular file without ever blocking, even for files such as /proc/kmsg."""
    _check(os.stat(path), max_bytes)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check(os.fstat(fd), max_bytes)
        data = bytearray()
        while chunk := os.read(fd, 1024 * 1024):
            data += chunk
            if len(data) > max_bytes:
                raise FileTooLarge
        return bytes(data)
    finally:
        os.close(fd)


def _check(info: os.stat_result, max_bytes: int) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise NotARegularFile("is a folder, expected a file", "remove or rename the folder")
    if not stat.S_ISREG(info.st_mode):
        raise NotARegularFile("is not a regular file")
    if info.st_size > max_bytes:
        raise FileTooLarge
