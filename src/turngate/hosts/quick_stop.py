"""Remembers that all gates of a stop have passed, for the next stop with the same files and the same settings.

Imports little: most stops end here. Nothing that a hook runs is run then, so nothing needs to be approved again.
"""

import os

from turngate.gates.quick_answer import (
    quick_path,
    read_quick_answer,
    shows_all_changes,
    stat_signature,
    tree_signature,
    write_quick_answer,
)
from turngate.settings.paths import script_files, settings_files
from turngate.state.paths import state_folder


def quick_stop_path(
    state: str, session: str, agent: str, event: str, known: dict[str, object], project: str
) -> str:
    """Return the file for a stop of this agent."""
    words = ["turngate hook", event, str(known.get("agent_type", "")), os.environ.get("TURNGATE_TRUST", "")]
    return quick_path(state, session, agent, words, [project])


def holds(path: str, project: str) -> bool:
    """Return whether every gate has passed for the files and the settings as they are now."""
    if not os.path.exists(path):
        return False
    answer = read_quick_answer(path)
    return answer is not None and answer == settings_signature(project)


def signatures(project: str) -> tuple[str, str] | None:
    """Return what the files and the settings are now, for `keep`; None if that cannot be found out so quickly."""
    tree, settings = tree_signature(project), settings_signature(project)
    return (tree, settings) if tree and settings and shows_all_changes(project) else None


def keep(path: str, found: tuple[str, str], project: str) -> None:
    """Remember that every gate has passed for what `signatures` has returned before they ran."""
    write_quick_answer(path, *found, project)


def settings_signature(project: str) -> str | None:
    """Return a text that is the same only if the settings, the script hooks and the approvals are."""
    files = [file.path for file in settings_files(project, "host")]
    files += [file.path for _, file in script_files(project, "host")]
    trust = os.path.join(state_folder(), "trust")
    try:
        return repr([_stat(path) for path in (*files, trust, os.path.join(trust, "projects"))])
    except (OSError, ValueError):
        return None


def _stat(path: str) -> tuple[int, ...] | None:
    try:
        return (*stat_signature(path), *stat_signature(os.path.realpath(path)))
    except (FileNotFoundError, NotADirectoryError):
        return None
