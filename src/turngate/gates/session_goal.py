"""The goals of sessions: each is a file, from `turngate goal` until it is met or cleared. Imports little: every stop looks for one.

A stop only renames or removes such a file, so neither a killed process nor a stop at the same moment brings a goal back
that is gone. How often a goal has blocked is in the journal.
"""

import json
import os
import time
from collections.abc import Sequence
from contextlib import suppress

from turngate.gates.stored_state import digest, write_file
from turngate.project.checkouts import find_top
from turngate.project.files import LOCAL
from turngate.state.paths import session_folder

GOAL_SOURCE = "goal"  # of the rule of a goal, which no settings file has
NOT_MET = "The user's goal for this session is not met: "
MAX_BYTES = 4 * 1024 * 1024  # of a file
NEXT_S = 24 * 3600  # that a goal waits for the next session
_NEXT = "next+"  # in place of a session, which is never named like this


class Goal:
    """A goal as it is stored. `since` identifies it; `text` is empty if its file cannot be read."""

    def __init__(self, path: str, stored: dict[str, object]) -> None:
        self.path, self.text, self.project = path, str(stored["text"]), str(stored["project"])
        self.since = float(str(stored["since"]))
        self.proof = (
            None if stored["proof"] is None else str(stored["proof"])
        )  # a command; None: a judge decides
        self.definition: object = stored.get("definition")  # what defined the command, if that is known
        name, _, self.status = os.path.basename(path).rpartition(".")  # active or paused
        self.session = None if name.startswith(_NEXT) else name  # None: the next one that starts or stops


def read_goals(state: str, since: float | None = None) -> list[Goal]:
    """Return all goals, or the one that was set at this time, the oldest first."""
    folder = _folder(state)
    with suppress(OSError):
        goals = [_read(os.path.join(folder, name)) for name in os.listdir(folder)]
        found = [each for each in goals if since in (None, each.since) and os.path.lexists(each.path)]
        return sorted(found, key=lambda goal: goal.since)
    return []


def goal_at(state: str, session: str, projects: Sequence[str], event: str) -> Goal | None:
    """Return the goal that is asked at an event; a session without one takes over that which waits for it."""
    if not session or event not in ("SessionStart", "Stop"):
        return None
    folder = _folder(state)
    try:
        names = os.listdir(folder)
    except OSError:  # most often there is none
        return None
    own = os.path.join(folder, f"{_key(session)}.active")
    if not {os.path.basename(own), f"{_key(session)}.paused"} & {*names}:
        tops = [find_top(os.path.realpath(each), LOCAL) for each in projects if os.path.isabs(each)]
        for place in (*projects, *tops):
            waiting = os.path.join(folder, f"{_key_of_next(place)}.active")
            with suppress(OSError):
                if time.time() - os.stat(waiting).st_mtime < NEXT_S:
                    os.rename(waiting, own)  # of several sessions, one succeeds
                    break
                os.unlink(waiting)
    goal = _read(own) if event == "Stop" else None
    with suppress(OSError):
        os.stat(own)  # it may have been cleared just now
        os.utime(folder)  # what is used is not removed: see `remove_old_states`
        return goal
    return None


def set_goal(
    state: str, project: str, session: str | None, text: str, proof: str | None, definition: object = None
) -> Goal | None:
    """Store a goal in place of the one that the session, or None for the next one, has. Return None if that fails."""
    name = os.path.join(_folder(state), _key_of_next(project) if session is None else _key(session))
    stored = {
        "text": text,
        "proof": proof,
        "project": project,
        "since": time.time(),
        "definition": definition,
    }
    if not write_file(f"{name}.active", json.dumps(stored)):
        return None
    with suppress(OSError):
        os.unlink(f"{name}.paused")
    return Goal(f"{name}.active", stored)


def change_goal(state: str, since: float, status: str | None) -> bool:
    """Make a goal active or paused, or remove it, also if a session has just taken it over. Return False if it is gone."""
    for goal in read_goals(state, since):
        with suppress(OSError):
            if status is None:
                os.unlink(goal.path)
            else:
                os.rename(goal.path, f"{goal.path.removesuffix(goal.status)}{status}")
            return True
    return False


def remove_goal_of(state: str, session: str) -> None:
    for goal in read_goals(state):
        if goal.session == _key(session):
            change_goal(state, goal.since, None)


def _folder(state: str) -> str:
    return os.path.join(state, "gates", "goals")


def _key(session: str) -> str:
    return os.path.basename(session_folder("", session))


def _key_of_next(project: str) -> str:
    return _NEXT + digest(os.path.realpath(project) if os.path.isabs(project) else project)


def _read(path: str) -> Goal:
    from turngate.state.files import open_regular_file  # noqa: PLC0415 # lazy: most stops have no goal

    try:
        with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
            return Goal(path, json.loads(file.read(MAX_BYTES)))
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return Goal(path, {"text": "", "proof": None, "project": "", "since": 0.0})
