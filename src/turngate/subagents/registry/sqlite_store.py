"""Runs in a SQLite file of the state folder, which the processes of one machine share; owners hold file locks."""

import contextlib
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from turngate.errors import RegistryError
from turngate.state.paths import REGISTRY_FILE
from turngate.subagents.registry import owners as locks
from turngate.subagents.registry.database import open_database
from turngate.subagents.registry.statements import render, rows_to_change

BUSY_TIMEOUT_S = 10.0  # for another process that writes
BUSY_PAUSE_S = 0.005
POLL_S = 0.2  # for writes of other processes


class SqliteStore:
    """Implements RunStore."""

    has_lease = False
    # For a full disk, or another process that holds the database.
    retry_pauses: Sequence[float] = (0.05, 0.2, 0.5, 1.0, 2.0)

    def __init__(self, state: str, on_wait: Callable[[str], None] | None = None) -> None:
        self.path = os.path.join(os.path.abspath(state), REGISTRY_FILE)
        self.name = f"the registry {self.path}"
        self._owners = os.path.join(os.path.dirname(self.path), locks.OWNERS_FOLDER)
        self._held: dict[str, int] = {}  # descriptors of the locks of owners
        self._lock = threading.Lock()
        self._db, self.notice = open_database(self.path, on_wait)  # the fault is a notice for the user

    def close(self) -> None:
        with self._lock:
            self._db.close()
        while self._held:
            os.close(self._held.popitem()[1])

    # Statements

    def execute(self, statement: str, values: Mapping[str, object]) -> Sequence[Mapping[str, Any]]:
        with self._lock:
            try:
                return [dict(row) for row in self._execute(statement, {"now": time.time(), **values})]
            except sqlite3.Error as error:
                raise RegistryError(f"{self.name} cannot be used: {error}") from error

    def _execute(self, statement: str, values: Mapping[str, object]) -> list[sqlite3.Row]:
        """Execute a statement; wait for another process that writes only if there is something to change."""
        statement = render(statement, "sqlite")
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
        time.sleep(min(seconds, POLL_S))
        return int(self.execute("PRAGMA data_version", {})[0]["data_version"])

    # Owners

    def join(self, *, slots: int = 0, labels: Sequence[str] = ()) -> str:  # noqa: ARG002 - of the port
        owner = locks.new_owner_id()
        self._held[owner] = locks.hold_lock(self._owners, owner)
        return owner

    def beat(self, owner: str) -> bool:  # noqa: ARG002 - of the port
        """Return True: the system releases the lock when the process dies, and not before."""
        return True

    def leave(self, owner: str) -> None:
        if owner in self._held:
            with contextlib.suppress(OSError):
                os.unlink(os.path.join(self._owners, owner))
            os.close(self._held.pop(owner))

    def living(self, owners: Collection[str]) -> dict[str, str]:
        return {owner: _place(owner) for owner in owners if not locks.is_gone(self._owners, owner)}

    def workers(self) -> Sequence[Mapping[str, Any]]:
        return ()  # they need leases, and a registry that other machines reach


def _place(owner: str) -> str:
    process = locks.process_of(owner)
    return "" if process is None or process.pid == os.getpid() else f"process {process.pid}"
