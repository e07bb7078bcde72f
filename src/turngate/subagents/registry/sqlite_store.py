"""Runs in a SQLite file of the state folder, which the processes of one machine share; owners hold file locks."""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from turngate.errors import RegistryError
from turngate.state.paths import REGISTRY_FILE
from turngate.state.process_stat import is_alive
from turngate.subagents.registry.database import open_database, owners_with_open_runs
from turngate.subagents.registry.owners import (
    OWNERS_FOLDER,
    OwnerLock,
    lock_path,
    owner_is_gone,
    owner_status,
    process_of,
)
from turngate.subagents.registry.statements import HAS_OPEN_RUNS, rows_to_change
from turngate.subagents.registry.store import OwnerEnd

BUSY_TIMEOUT_S = 10.0  # for another process that writes
BUSY_PAUSE_S = 0.005


class SqliteStore:
    """Implements RunStore."""

    has_lease = False

    def __init__(self, state: str, on_wait: Callable[[str], None] | None = None) -> None:
        self.path = os.path.join(os.path.abspath(state), REGISTRY_FILE)
        self.name = f"the registry {self.path}"
        self._owners = os.path.join(os.path.dirname(self.path), OWNERS_FOLDER)
        self._held: dict[str, OwnerLock] = {}
        self._lock = threading.Lock()
        self._db, self.notice = open_database(self.path, on_wait)  # the fault is a notice for the user

    def close(self) -> None:
        with self._lock:
            self._db.close()
        for lock in self._held.values():
            lock.unlock()

    # Statements

    def execute(self, statement: str, values: Mapping[str, object]) -> Sequence[Mapping[str, Any]]:
        with self._lock:
            try:
                return [dict(row) for row in self._execute(statement, {"now": time.time(), **values})]
            except sqlite3.Error as error:
                raise RegistryError(f"{self.name} cannot be used: {error}") from error

    def _execute(self, statement: str, values: Mapping[str, object]) -> list[sqlite3.Row]:
        """Execute a statement; wait for another process that writes only if there is something to change."""
        end = time.monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                return self._db.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                code = error.sqlite_errorcode & 0xFF  # without the bits of extended codes
                if code != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                query = rows_to_change(statement)
                if query and not self._db.execute(query, values).fetchall():
                    return []
                time.sleep(BUSY_PAUSE_S)  # SQLite does not wait for every kind of lock itself

    def wait_for_change(self, since: int, seconds: float) -> int:  # noqa: ARG002 - of the port
        time.sleep(seconds)
        return int(self.execute("PRAGMA data_version", {})[0]["data_version"])

    # Owners

    def join(self) -> str:
        lock = OwnerLock(self._owners)
        lock.acquire()
        self._held[lock.id] = lock
        return lock.id

    def beat(self, owner: str) -> bool:  # noqa: ARG002 - of the port
        """Return True: the system releases the lock when the process dies, and not before."""
        return True

    def leave(self, owner: str) -> None:
        if lock := self._held.pop(owner, None):
            lock.release()

    @contextlib.contextmanager
    def owner_status(self, owner: str) -> Iterator[OwnerEnd | None]:
        with owner_status(self._owners, owner) as status:
            yield status
            lock = lock_path(self._owners, owner) if status == "died" else None
            if lock and not self.execute(HAS_OPEN_RUNS, {"owner": owner}):
                with contextlib.suppress(OSError):
                    os.unlink(lock)

    def living(self, owners: Collection[str]) -> dict[str, str | None]:
        return {owner: _place(owner) for owner in owners if not owner_is_gone(self._owners, owner)}


def _place(owner: str) -> str | None:
    process = process_of(owner)
    if process is None or process.pid == os.getpid():
        return ""
    return f"process {process.pid}" if is_alive(process) else None


class AbandonedRuns:
    """Runs of dead processes, for a session that has not opened the registry: it looks at the files alone."""

    def __init__(self, state: str) -> None:
        self._state = state
        self._seen: float | None = None
        self._owners: list[str] = []

    def exist(self, project: str, left: Iterable[str]) -> bool:
        """Return whether another process with open runs of the project has died. Chains in `left` do not count."""
        changed = self._last_change()
        if changed != self._seen:
            self._seen, self._owners = changed, owners_with_open_runs(self._state, project, left)
        folder = os.path.join(self._state, OWNERS_FOLDER)
        found = any(owner_is_gone(folder, owner) for owner in self._owners)
        if found:
            self._seen = None
        return found

    def _last_change(self) -> float | None:
        times = []
        for suffix in ("", "-wal"):
            with contextlib.suppress(OSError):
                times.append(os.stat(os.path.join(self._state, REGISTRY_FILE + suffix)).st_mtime)
        return max(times, default=None)
