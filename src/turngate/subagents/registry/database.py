"""The register's file: opened, looked through, brought to this version, and set aside when it is damaged."""

import contextlib
import fcntl
import os
import sqlite3
import time
import urllib.parse
from collections.abc import Iterator

from turngate.errors import RegistryError
from turngate.state.files import make_private_dir
from turngate.subagents.registry.rows import INDEXES, IS_OPEN, NAMES, TABLE, column

FILE = "registry.db"
PATIENCE = 10.0  # seconds that a statement waits for another process
CHECKED = 64 * 1024 * 1024  # bytes up to which a file is looked through when it is opened


def opened(path: str) -> tuple[sqlite3.Connection, str | None]:
    """The file at work, and what was wrong with it.

    A damaged one is set aside, never deleted, and said; one process at a time does that.
    """
    fault = None
    try:
        with _alone(path + ".lock"):
            try:
                return _connected(path), None
            except sqlite3.OperationalError:
                raise  # the place is wrong, not the file
            except sqlite3.DatabaseError as error:
                fault = _set_aside(path, str(error))
            return _connected(path), fault
    except (sqlite3.Error, OSError) as error:
        raise RegistryError(f"the register of runs in {path} can not be opened: {error}") from error


def _connected(path: str) -> sqlite3.Connection:
    # Private, and so are its side files. A file that is there is never opened by hand: to close it would drop the
    # locks that another connection of this process has on it.
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    db = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        db.row_factory = sqlite3.Row
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        _look_through(db, path)
        db.execute(TABLE)
        _add_columns(db)
        db.executescript(INDEXES)
    except BaseException:
        db.close()
        raise
    return db


def _add_columns(db: sqlite3.Connection) -> None:
    """A file of an older version lacks some."""
    there = {row["name"] for row in db.execute("PRAGMA table_info(runs)")}
    for name in NAMES:
        if name not in there:
            db.execute(f"ALTER TABLE runs ADD COLUMN {column(name)}")


def _set_aside(path: str, why: str) -> str:
    aside = f"{path}.damaged-{time.time_ns()}"
    for end in ("", "-wal", "-shm"):
        with contextlib.suppress(FileNotFoundError):
            os.rename(path + end, aside + end)
    return f"the register of runs in {path} was damaged ({why}); it was set aside as {aside}"


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    make_private_dir(os.path.dirname(path))
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _look_through(db: sqlite3.Connection, path: str) -> None:
    if os.path.getsize(path) < CHECKED:
        said = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if said != "ok":
            raise sqlite3.DatabaseError(said)


def owners_with_open_runs(state: str, project: str) -> list[str]:
    """Who has open runs of a project; only looks, and a register that can not be read has none."""
    try:
        path = urllib.parse.quote(os.path.join(state, FILE))
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=1.0)) as db:
            rows = db.execute(
                f"SELECT DISTINCT owner FROM runs WHERE {IS_OPEN} AND CASE WHEN json_valid(launch) "
                "THEN json_extract(launch, '$.project') END = ?",
                (project,),
            )
            return [str(owner) for (owner,) in rows]
    except sqlite3.Error:
        return []
