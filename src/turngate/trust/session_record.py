"""The gates and limits of one session of a host, recorded at its first event: a gate that is changed later blocks the stop.

Imports little: every stop looks for a record.
"""

import json
import os
from contextlib import suppress

from turngate.gates.stored_state import state_path, write_file

VERSION = 2


# A gate as it was approved: its id or "", where it is configured, and its definition as compact JSON.
RecordedGate = tuple[str, str, str]
# `limit`, `hard_limit` and `child_limit` of the settings: an agent that lowers one would be let go at its next stop.
Limits = tuple[int | None, int | None, int | None]


class SessionRecord:
    def __init__(
        self,
        project: str,
        gates: tuple[RecordedGate, ...],
        limits: Limits,
        started: float = 0.0,
    ) -> None:
        self.project, self.gates = project, gates
        self.limits = limits
        self.started = started  # in seconds since the epoch; 0: not known


def record_path(state: str, session: str) -> str:
    return state_path(state, session, "", "gates of the session")


def read_record(path: str) -> SessionRecord | None:
    """Return what was recorded, or None: it is the first event of the session, or the file is damaged."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            data = json.load(file)
        gates = tuple((str(key), str(place), str(text)) for key, place, text in data["gates"])
        limit, hard, child = (None if each is None else int(each) for each in data["limits"])
        record = SessionRecord(str(data["project"]), gates, (limit, hard, child), float(data["started"]))
        return record if data["version"] == VERSION else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def forget_record(path: str) -> None:
    with suppress(OSError):  # most often there is none
        os.unlink(path)


def write_record(path: str, record: SessionRecord) -> None:
    write_file(path, json.dumps({"version": VERSION, **vars(record)}))


# Projects inside of the project of a session: in a monorepo, their gates count for the files below them

_FOLDER = '"folder": '  # in a file of approvals
_HEADER_CHARS = 16 * 1024


def projects_below(state: str, project: str) -> list[str]:
    """Return the folders below a project of which hooks were approved."""
    folder, found = os.path.join(state, "trust", "projects"), []
    with suppress(OSError):
        for name in os.listdir(folder):
            with suppress(OSError, ValueError), open(os.path.join(folder, name), encoding="utf-8") as file:
                text = file.read(_HEADER_CHARS)
                found.append(str(json.JSONDecoder().raw_decode(text, text.index(_FOLDER) + len(_FOLDER))[0]))
    inside = f"{os.path.realpath(project).rstrip('/')}/"
    return sorted(each for each in found if each.startswith(inside) and os.path.isdir(each))


def has_changed_since(folder: str, started: float) -> bool:
    """Return whether a file or folder below this one was written, added or removed after a time."""
    from turngate.gates.local_tree_state import PRUNED  # noqa: PLC0415 # lazy: few projects have others inside

    for path, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name not in PRUNED]
        for name in (".", *files):
            with suppress(OSError):
                if os.lstat(os.path.join(path, name)).st_ctime > started:
                    return True
    return False
