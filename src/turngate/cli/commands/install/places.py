"""Where the settings of a host are: for the user, and for the project that the current folder is in."""

import os
from collections.abc import Iterator

from turngate._frozen import frozen
from turngate.cli.project import describe_path, find_project
from turngate.core.constants import SCRIPT_FAMILIES
from turngate.doctor.hosts.files import full_path
from turngate.errors import UsageError
from turngate.filesystem.real_path import real_path
from turngate.hosts.host import Host, Level
from turngate.hosts.install.settings_file import read_settings_text
from turngate.hosts.install.settings_text import UnsuitableSettings, hook_lines


@frozen
class Place:
    """One settings file of a host."""

    host: Host
    level: Level
    path: str
    shown: str  # the path for messages
    project: str | None  # the folder of the project that the current folder is in

    def text(self) -> str | None:
        return read_settings_text(self.path)


def find_place(host: Host, level: Level | None) -> Place:
    """Return the settings file of a level: by default the project's, in a project. Raises UsageError."""
    project = enclosing_project()
    if level is None:
        level = "project" if project else "user"
    if level == "project" and project is None:
        project = _current_folder()
        if real_path(project) == _home():
            raise UsageError(
                f"this is your home folder, not a project; change to a project, or use --user for {host.title} everywhere"
            )
    return _place(host, level, project)


def _place(host: Host, level: Level, project: str | None) -> Place:
    file = host.files[level]
    if level == "project":
        return Place(host, level, os.path.join(project or _current_folder(), file), file, project)
    path = full_path(host, file, project or "", os.environ)
    shown = file if path == os.path.expanduser(file) else describe_path(path)
    return Place(host, level, path, shown, project)


def enclosing_project() -> str | None:
    """Return the nearest folder upwards with settings of Turngate, or else the git root, or None; never home."""
    folder = _current_folder()
    families = (*SCRIPT_FAMILIES,)
    found = find_project(folder, families)
    if (
        any(os.path.isdir(os.path.join(found, f".{family}")) for family in families)
        and real_path(found) != _home()
    ):
        return found
    while not os.path.lexists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return None if f"{_home()}/".startswith(f"{real_path(folder).rstrip('/')}/") else folder


def _current_folder() -> str:
    try:
        return os.getcwd()
    except FileNotFoundError:
        raise UsageError("the current folder no longer exists; change to another one") from None


def _home() -> str:
    return real_path(os.path.expanduser("~"))


# Where the line is already


def all_places(host: Host, project: str | None) -> Iterator[Place]:
    yield _place(host, "user", project)
    if project:
        yield _place(host, "project", project)


def has_line(place: Place) -> bool:
    """Return whether the line is there; a file that cannot be read runs no hooks either."""
    try:
        return bool(hook_lines(place.text() or ""))
    except (UnsuitableSettings, UsageError):
        return False
