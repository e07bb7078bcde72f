"""Where settings lie; imports next to nothing, so that a stop without hooks costs next to nothing."""

import os
import stat

from turngate.core.constants import FAMILIES, SCRIPT_FAMILIES, SCRIPTS


class Place:
    """One file, as the machine and as people know it (`~/.claude/settings.json`)."""

    def __init__(self, path: str, shown: str, level: str, family: str) -> None:
        self.path, self.shown, self.level, self.family = path, shown, level, family


def settings_places(project: str, dialect: str, home: str | None = None) -> list[Place]:
    """Every file that may hold settings, weakest first; a file that is two of them counts as the first."""
    home = home or os.path.expanduser("~")
    found: dict[str, Place] = {}
    for level, folder, name in (
        ("user", home, "settings.json"),
        ("project", project, "settings.json"),
        ("local", project, "settings.local.json"),
    ):
        for family in FAMILIES[dialect]:
            path = os.path.join(folder, f".{family}", name)
            shown = f"{'~/' if level == 'user' else ''}.{family}/{name}"
            found.setdefault(os.path.realpath(path), Place(path, shown, level, family))
    return list(found.values())


def script_places(project: str, dialect: str) -> list[tuple[str, Place]]:
    """Every executable that is a hook by its name alone, with its event."""
    return [
        (event, Place(os.path.join(project, f".{family}", name), f".{family}/{name}", "project", family))
        for family in FAMILIES[dialect]
        if family in SCRIPT_FAMILIES
        for event, name in SCRIPTS.items()
    ]


class NotARegularFile(Exception):
    """A folder, a device, a pipe: nothing that settings could be read from."""

    def __init__(self, said: str, hint: str | None = None) -> None:
        super().__init__(said)
        self.hint = hint


class TooLarge(Exception):
    """Larger than what was asked for."""


def read_bytes(path: str, most: int) -> bytes:
    """A regular file, read without ever waiting: some that call themselves regular never end (/proc/kmsg)."""
    _check(os.stat(path), most)
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        _check(os.fstat(fd), most)
        data = bytearray()
        while chunk := os.read(fd, 1024 * 1024):
            data += chunk
            if len(data) > most:
                raise TooLarge
        return bytes(data)
    finally:
        os.close(fd)


def _check(info: os.stat_result, most: int) -> None:
    if stat.S_ISDIR(info.st_mode):
        raise NotARegularFile("is a folder, expected a file", "remove the folder, or move it out of the way")
    if not stat.S_ISREG(info.st_mode):
        raise NotARegularFile("is no regular file")
    if info.st_size > most:
        raise TooLarge
