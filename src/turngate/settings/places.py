"""Where settings lie; imports next to nothing, so that a stop without hooks costs next to nothing."""

import os

from turngate.core.names import FAMILIES, SCRIPT_FAMILIES, SCRIPTS


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
