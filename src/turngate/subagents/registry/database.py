"""Open the registry's SQLite file: check it, upgrade it, and set a damaged one aside."""

import contextlib
import fcntl
import os
import sqlite3
import time
import urllib.parse
from collections.abc import Iterator

from turngate.errors import RegistryError
from turngate.state.files import make_private_dir
from turngate.subagents.registry.schema import COLUMNS, INDEXES, TABLE, column_definition
from turngate.subagents.registry.statements import OWNERS_OF_PROJECT

REGISTRY_FILE = "registry.db"
BUSY_TIMEOUT_S = 10.0
READ_ONLY_BUSY_TIMEOUT_S = 1.0
MAX_CHECKED_BYTES = 64 * 1024 * 1024  # a larger file is not checked when it is opened


def open_database(path: str) -> tuple[sqlite3.Connection, str | None]:
    """Return a connection, and a notice if a damaged file was set aside; the file is never deleted.

    One process at a time does this.
    """
    notice = None
    try:
        with _lock_file(path + ".lock"):
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
    db = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _check(db, path)
        db.execute(TABLE)
        _add_missing_columns(db)
        db.executescript(INDEXES)
    except BaseException:
        db.close()
        raise
    return db


def _check(db: sqlite3.Connection, path: str) -> None:
    if os.path.getsize(path) < MAX_CHECKED_BYTES:
        result = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if result != "ok":
            raise sqlite3.DatabaseError(result)


def _add_missing_columns(db: sqlite3.Connection) -> None:
    """Add the columns that a file of an earlier version lacks."""
    existing = {row["name"] for row in db.execute("PRAGMA table_info(runs)")}
    for name in COLUMNS:
        if name not in existing:
            db.execute(f"ALTER TABLE runs ADD COLUMN {column_definition(name)}")


def _set_aside(path: str, why: str) -> str:
    aside = f"{path}.damaged-{time.time_ns()}"
    for suffix in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + suffix, aside + suffix)
    return f"the registry {path} was damaged ({why}); it was set aside as {aside}"


@contextlib.contextmanager
def _lock_file(path: str) -> Iterator[None]:
    make_private_dir(os.path.dirname(path))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def owners_with_open_runs(state: str, project: str) -> list[str]:
    """Return the owners of a project's open runs, read-only; an unreadable registry has none."""
    uri = f"file:{urllib.parse.quote(os.path.join(state, REGISTRY_FILE))}?mode=ro"
    try:
        with contextlib.closing(sqlite3.connect(uri, uri=True, timeout=READ_ONLY_BUSY_TIMEOUT_S)) as db:
            return [str(owner) for (owner,) in db.execute(OWNERS_OF_PROJECT, {"project": project})]
    except sqlite3.Error:
        return []
