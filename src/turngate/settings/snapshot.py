"""Read the usual places of settings on another machine at once."""

import os

from turngate.core.constants import FAMILIES
from turngate.project.files import Files
from turngate.settings.paths import MANAGED_FOLDERS

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
    return [
        *(f"{home}/.claude/{name}" for name in _CLAUDE_FILES),
        *(f"{folder}/**" for folder in folders),
        f"{project}/.",
        *programs,
    ]
