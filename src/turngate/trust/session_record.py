"""The gates of one session of a host, recorded at its first event: one that is changed later blocks the stop.

Imports little: every stop looks for a record.
"""

import json
import os
from contextlib import suppress

from turngate.gates.stored_state import state_path, write_file

VERSION = 1


# A gate as it was approved: its id or "", where it is configured, and its definition as compact JSON.
RecordedGate = tuple[str, str, str]


class SessionRecord:
    def __init__(self, project: str, gates: tuple[RecordedGate, ...]) -> None:
        self.project, self.gates = project, gates


def record_path(state: str, session: str) -> str:
    return state_path(state, session, "", "gates of the session")


def read_record(path: str) -> SessionRecord | None:
    """Return what was recorded, or None: it is the first event of the session, or the file is damaged."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            data = json.load(file)
        gates = tuple((str(key), str(place), str(text)) for key, place, text in data["gates"])
        return SessionRecord(str(data["project"]), gates) if data["version"] == VERSION else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError):
        return None


def forget_record(path: str) -> None:
    with suppress(OSError):  # most often there is none
        os.unlink(path)


def write_record(path: str, record: SessionRecord) -> None:
    write_file(path, json.dumps({"version": VERSION, **vars(record)}))
