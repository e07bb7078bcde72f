"""Open the registry's SQLite file: check it, migrate it, and set a damaged one aside."""

import contextlib
import os
import sqlite3
import time
from collections.abc import Callable, Iterator

from turngate.errors import RegistryError
from turngate.state.files import make_private_dir, wait_for_lock
from turngate.state.paths import OTHER_STATE_FOLDER
from turngate.subagents.registry import table as sql
from turngate.subagents.registry.table import SCHEMA_VERSION

LOCK_TIMEOUT_S = 10.0  # for other processes that open the registry
LOCK_NOTICE_S = 1.0  # a longer wait for them is reported
OPEN_TIMEOUT_S = 10.0  # for other processes that write
BUSY_POLL_MS = 50  # that SQLite itself waits for another writer
MAX_CHECKED_BYTES = 64 * 1024 * 1024  # a larger file is not checked when it is opened


def open_database(
    path: str, on_wait: Callable[[str], None] | None = None
) -> tuple[sqlite3.Connection, str | None]:
    """Return a connection, and a notice if a damaged file was set aside; the file is never deleted.

    One process at a time does this. `on_wait` is called with a sentence if another process takes long.
    Raises RegistryError, also for a file that a later version wrote.
    """
    notice = None
    try:
        with _lock_file(path, on_wait):
            try:
                return _connect(path), None
            except sqlite3.OperationalError:
                raise  # the path is wrong, not the content
            except sqlite3.DatabaseError as error:
                notice = _set_aside(path, str(error))
            return _connect(path), notice
    except (sqlite3.Error, OSError) as error:
        raise RegistryError(f"the registry {path} cannot be opened: {error}") from error


def _connect(path: str) -> sqlite3.Connection:
    # Create the file private, so that its side files are private too. An existing file is never opened here: closing
    # it would drop the locks that another connection of this process holds on it.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=OPEN_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        db.row_factory = sqlite3.Row
        _check(db, path)
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _migrate(db)
        db.execute(f"PRAGMA busy_timeout = {BUSY_POLL_MS}")
    except BaseException:
        db.close()
        raise
    return db


def _check(db: sqlite3.Connection, path: str) -> None:
    """Raise DatabaseError for a damaged file, RegistryError for one that this version would misread."""
    is_small = os.path.getsize(path) < MAX_CHECKED_BYTES
    if is_small and (result := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise sqlite3.DatabaseError(result)
    version = _user_version(db)
    if not 0 <= version <= SCHEMA_VERSION:
        raise RegistryError(
            f"the registry {path} has schema version {version}, and this version of Turngate knows {SCHEMA_VERSION}: "
            f"a later version wrote it; update Turngate, {OTHER_STATE_FOLDER}"
        )


def _user_version(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _migrate(db: sqlite3.Connection) -> None:
    """Create the table, or add the columns that a file of an earlier version lacks."""
    db.execute(sql.TABLE)
    existing = {name for _, name, *_ in db.execute("PRAGMA table_info(runs)")}
    for name in sql.COLUMNS:
        if name not in existing:
            db.execute(f"ALTER TABLE runs ADD COLUMN {sql.column_definition(name)}")
    db.executescript(sql.INDEXES + sql.TRIGGER)
    if _user_version(db) != SCHEMA_VERSION:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _set_aside(path: str, why: str) -> str:
    aside = f"{path}.damaged-{time.time_ns()}"
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + suffix, aside + suffix)
    return f"the registry {path} was damaged ({why}); it was set aside as {aside}"


@contextlib.contextmanager
def _lock_file(path: str, on_wait: Callable[[str], None] | None) -> Iterator[None]:
    make_private_dir(os.path.dirname(path))
    lock = path + ".lock"
    fd = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            wait_for_lock(fd, lock, LOCK_NOTICE_S)
        except BlockingIOError:
            if on_wait:
                on_wait(f"waiting for the registry: another process holds {lock}")
            wait_for_lock(fd, lock, LOCK_TIMEOUT_S - LOCK_NOTICE_S)
        yield
    except BlockingIOError:
        raise RegistryError(
            f"the registry {path} cannot be opened: another process has held {lock} for {LOCK_TIMEOUT_S:g} s; "
            f"end that process (`fuser {lock}` prints its PID), {OTHER_STATE_FOLDER}"
        ) from None
    finally:
        os.close(fd)
