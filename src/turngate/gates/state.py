"""What a gate remembers between two stops, for one session, agent and gate. Imports little: a cached answer needs it."""

import hashlib
import json
import os
from _collections_abc import Mapping  # `collections.abc` loads all of `collections`

VERSION = 1


def state_path(state: str, session: str, agent: str, gate: str) -> str:
    """Return the file for a gate, given by its definition; ids may have any characters."""
    folder = hashlib.sha256(f"{session}\0{agent}".encode("utf-8", "surrogatepass")).hexdigest()[:32]
    name = hashlib.sha256(gate.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return os.path.join(state, "gates", folder, f"{name}.json")


def gate_definition(name: str, options: Mapping[str, object], command: object, project: str) -> str:
    """Return a text that is equal for equal gates of one project."""
    parts = {"gate": name, "options": dict(options), "command": command, "project": project}
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))


class GateState:
    """The state of one gate: `data` is its own, the rest is about its last result. `None` as path: nothing is kept."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        record = _read(path) if path else {}
        fingerprint, result = record.get("fingerprint"), record.get("result")
        # Of the tree at the last result.
        self.fingerprint: str | None = fingerprint if isinstance(fingerprint, str) else None
        self.result: dict[str, object] | None = result if isinstance(result, dict) else None
        self.activity: object = record.get("activity")  # how much the agent had done by then
        start = record.get("start")
        self.start: dict[str, object] | None = start if isinstance(start, dict) else None  # at SessionStart
        waits = record.get("waits")
        # When each task in the background was first seen running.
        self.waits: dict[str, float] = waits if isinstance(waits, dict) else {}
        data = record.get("data")
        self.data: dict[str, object] = data if isinstance(data, dict) else {}

    def save(self) -> bool:
        """Write the state, with mode 0600. Return False if it could not be written: then nothing is cached."""
        if self.path is None:
            return False
        record = {
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "result": self.result,
            "activity": self.activity,
            "start": self.start,
            "waits": self.waits,
            "data": self.data,
        }
        return _write(self.path, json.dumps(record))


def _read(path: str) -> dict[str, object]:
    try:
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) and record.get("version") == VERSION else {}


def _write(path: str, text: str) -> bool:
    """Write a whole file at once: another process reads the old one or the new one."""
    folder = os.path.dirname(path)
    temporary = f"{path}.{os.getpid()}"
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        return False
    return True
