"""What a gate remembers between two stops, for one session, agent and gate. Imports little: a cached answer needs it."""

import json
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

try:
    from _blake2 import (
        blake2b,  # that of hashlib, without OpenSSL, which takes as long to load as the rest of this module
    )
except ImportError:
    from hashlib import blake2b

VERSION = 1
# A file that was changed this shortly before could be changed again without a new time.
CLOCK_TICK_NS = 2_000_000_000
# Of a record of the start, what says nothing about another checkout of the repository.
OF_CHECKOUT = ("tree", "left_out", "git", "ignored", "repositories", "status", "operations")
KEPT_S = 30 * 24 * 3600  # the state of a session that had no stop since


def digest(text: str) -> str:
    return hash_bytes(text.encode("utf-8", "surrogatepass"))


def hash_bytes(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def state_path(state: str, session: str, agent: str, gate: str) -> str:
    """Return the file for a gate, given by its definition; ids may have any characters."""
    return os.path.join(state, "gates", digest(f"{session}\0{agent}"), f"{digest(gate)}.json")


def gate_definition(name: str, options: Mapping[str, object], command: object, project: str) -> str:
    """Return a text that is equal for equal gates of one project."""
    parts = {"gate": name, "options": dict(options), "command": command, "project": project}
    return json.dumps(parts, sort_keys=True, separators=(",", ":"))


def inputs_state(project: str, files: Iterable[str], variables: Iterable[str]) -> str | None:
    """Return what is the same only if these files and folders and the values of variables are; None: a file was changed just now."""
    try:
        stats = [_stat_all(os.path.join(project, name)) for name in files]
    except (OSError, ValueError):
        return None
    return digest(f"{stats} {[os.environ.get(name) for name in variables]}")


def _stat_all(path: str) -> list[object]:
    """Return what changes when a file or the names in a folder do. Raises OSError, ValueError."""
    below = [folder for folder, _, _ in os.walk(path)] if os.path.isdir(path) else []
    return [stat_file(each) for each in (path, *below)]


def stat_file(path: str) -> list[int] | None:
    """Return what changes when a file does, or what it is a link to. Raises OSError, and ValueError if that was just now."""
    times = []
    for each in (path, os.path.realpath(path)):
        try:
            found = os.lstat(each)
        except (FileNotFoundError, NotADirectoryError):
            return None
        if time.time_ns() - max(found.st_mtime_ns, found.st_ctime_ns) < CLOCK_TICK_NS:
            raise ValueError("changed just now")
        times += [found.st_mode, found.st_size, found.st_ino, found.st_mtime_ns, found.st_ctime_ns]
    return times


class GateState:
    """The state of one gate: `data` is its own, the rest is about its last result. `None` as path: nothing is kept."""

    def __init__(self, path: str | None, starts: Sequence[str] = (), project: str = "") -> None:
        """`starts`: the files with what was at the start of the agent, and of its session."""
        self.path, self._starts, self._project = path, starts, project
        self.holds = False  # whether the last result is that of this tree and may be reused
        record = _read(path) if path else {}

        def read_dict(name: str) -> dict[str, object] | None:
            return value if isinstance(value := record.get(name), dict) else None

        tree = record.get("tree")
        self.tree: str | None = tree if isinstance(tree, str) else None  # its state at the last result
        self.result: dict[str, object] | None = read_dict("result")
        # The states of the last trees that passed, each with its result; the newest is the last.
        self.passed: dict[str, dict[str, object]] = {
            tree: result for tree, result in (read_dict("passed") or {}).items() if isinstance(result, dict)
        }
        self.activity: object = record.get("activity")  # how much the agent had done by then
        recorded = next(filter(None, map(_read, starts)), {})
        start, is_here = recorded.get("start"), recorded.get("project") == project
        self.start: dict[str, object] | None = None  # what was recorded there
        if isinstance(start, dict):
            self.start = {name: start[name] for name in start if is_here or name not in OF_CHECKOUT}
        # When each task in the background was first seen running.
        self.waits: dict[str, float] = waits if isinstance(waits := record.get("waits"), dict) else {}
        self.data: dict[str, object] = read_dict("data") or {}

    def save(self) -> bool:
        """Write the state, with mode 0600. Return False if it could not be written: then nothing is cached."""
        if self.path is None:
            return False
        names = ("tree", "result", "passed", "activity", "waits", "data")
        record = {"version": VERSION, **{name: getattr(self, name) for name in names}}
        return write_file(self.path, json.dumps(record))

    @property
    def has_start(self) -> bool:
        return self.start is not None and (not self._starts or os.path.exists(self._starts[0]))

    def save_start(self, start: dict[str, object]) -> None:
        self.start = start
        if self._starts:
            record = json.dumps({"version": VERSION, "project": self._project, "start": start})
            write_file(self._starts[0], record)


def _read(path: str) -> dict[str, object]:
    record = read_json(path)
    return record if isinstance(record, dict) and record.get("version") == VERSION else {}


def read_json(path: str) -> object:
    """Return what `write_file` has written as JSON; None if there is nothing yet, or the file is damaged."""
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError, RecursionError):
        return None


def write_file(path: str, content: str | bytes) -> bool:
    """Write a whole file at once: another process reads the old one or the new one."""
    temporary = f"{path}.{os.urandom(8).hex()}"
    try:
        make_folder(os.path.dirname(path))
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with open(fd, "wb") as file:
            file.write(content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)
        return False
    return True


def make_folder(folder: str) -> None:
    """Make the folder of a session. A new session removes the state of old ones."""
    if os.path.isdir(folder):
        return
    from turngate.state.files import make_private_dir  # noqa: PLC0415 # lazy: once in a session

    make_private_dir(folder)
    remove_old_states(os.path.dirname(folder))


def remove_old_states(folder: str) -> None:
    """Remove the state of sessions that had no stop for KEPT_S; each stop changes the time of its folder."""
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                if time.time() - entry.stat(follow_symlinks=False).st_mtime < KEPT_S:
                    continue
                for name in os.listdir(entry.path):
                    os.unlink(os.path.join(entry.path, name))
                os.rmdir(entry.path)
            except OSError:  # another process removes it too
                continue
