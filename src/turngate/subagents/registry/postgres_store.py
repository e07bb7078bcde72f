"""Runs in a PostgreSQL database, which the processes of many machines share; owners hold leases by its clock."""

import contextlib
import json
import select
import socket
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from turngate.core.text import replace_surrogates
from turngate.errors import RegistryError
from turngate.extra_install import install_command
from turngate.subagents.registry import postgres_schema as schema
from turngate.subagents.registry.owners import new_owner_id
from turngate.subagents.registry.statements import render
from turngate.subagents.registry.store import LEASE_S
from turngate.subagents.registry.table import SCHEMA_VERSION

try:
    import psycopg
    from psycopg.conninfo import conninfo_to_dict, make_conninfo
    from psycopg.rows import DictRow, dict_row
except ImportError as missing:
    raise RegistryError(f"a registry on PostgreSQL needs psycopg: {install_command('postgres')}") from missing

POLL_S = 2.0  # for changes that no notification tells of, such as behind a pool of connections
SETTLE_S = 0.02  # changes that follow each other so closely are noticed together
OWNER_RETENTION_S = 3600.0
INIT = "`turngate registry init` creates it and its roles, with the URL of the owner of the database"
# Lost connections are noticed within the time for which an owner holds its lease.
DEFAULTS = {"connect_timeout": 5, "keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3}
DEFAULTS |= {"tcp_user_timeout": 10_000}

# The last: a column was added after the statement was prepared.
LOST = (psycopg.OperationalError, psycopg.InterfaceError, psycopg.errors.FeatureNotSupported)
_LIVES = "seen > now() - make_interval(secs => $lease_s)"
Connection = psycopg.Connection[DictRow]


def connect(url: str) -> Connection:
    given = conninfo_to_dict(url)
    url = make_conninfo(url, **{name: value for name, value in DEFAULTS.items() if name not in given})
    return Connection.connect(url, autocommit=True, row_factory=dict_row)


def name_of(url: str) -> str:
    """Return the URL without the password and options."""
    try:
        given = conninfo_to_dict(url)
    except psycopg.Error as error:
        raise RegistryError("the URL of the registry is not one of postgresql://USER@HOST/NAME") from error
    user, host, name = (given.get(key) or "" for key in ("user", "host", "dbname"))
    return f"postgresql://{user}{'@' * bool(user)}{host}/{name}"


def create_schema(url: str) -> list[str]:
    """Create or update the schema, the roles and their rights, all or nothing; return what was done, a line each."""
    name, done = f"the registry {name_of(url)}", list[str]()
    try:
        with connect(url) as db, db.transaction():
            for role, may in schema.ROLES.items():
                found = db.execute("SELECT FROM pg_roles WHERE rolname = %(role)s", {"role": role}).fetchone()
                if found is None:
                    db.execute(f"CREATE ROLE {role} NOLOGIN")
                done.append(f"role {role} {'created' if found is None else 'exists'}: {may}")
            for statements in (schema.TABLES, schema.TRIGGERS, schema.RIGHTS):
                db.execute(statements)
            _check_version(db, name)
            done.append(f"schema turngate, version {SCHEMA_VERSION}: created or updated")
            if db.execute("SELECT WHERE current_setting('synchronous_commit') = 'off'").fetchall():
                done.append(schema.NOT_DURABLE)
    except psycopg.Error as error:
        raise RegistryError(f"{name} cannot be created: {_reason(error)}") from error
    return done


def _check_version(db: Connection, name: str) -> None:
    try:
        [row] = db.execute("SELECT version, pg_backend_pid() FROM turngate.schema_version").fetchall()
    except psycopg.ProgrammingError as error:
        raise RegistryError(f"{name} has no schema that this login may use: {INIT}") from error
    if row["version"] > SCHEMA_VERSION:
        raise RegistryError(
            f"{name} has schema version {row['version']}, and this version of Turngate knows {SCHEMA_VERSION}: "
            "a later version wrote it; update Turngate"
        )
    # At once, but not behind a pool, which may not pass on what is prepared.
    db.prepare_threshold = 0 if row["pg_backend_pid"] == db.info.backend_pid else None


def _reason(error: psycopg.Error) -> str:
    """Return what the server says, without the statement; or what psycopg says."""
    return " ".join((error.diag.message_primary or str(error)).split())


class PostgresStore:
    """Implements RunStore."""

    has_lease = True
    # Together shorter than a lease: a server that restarts, or that another one replaces.
    retry_pauses: Sequence[float] = (0.05, 0.2, 0.5, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0)

    def __init__(self, url: str) -> None:
        self.name = f"the registry {name_of(url)}"
        self.notice: str | None = None
        self._url = url
        self._lock = threading.Lock()
        self._db: Connection | None = None
        self._listening = threading.Lock()
        self._listener: Connection | None = None
        self._closed = False
        self._changes = 0
        [row] = self.execute(
            f"SELECT {schema.LOGIN.format('session_user')} AS own", {}
        )  # reports what is wrong
        self._channels = {schema.CHANGES, schema.WAITING, row["own"]}
        self._closing, self._on_close = socket.socketpair()  # to end `_pause`

    def close(self) -> None:
        self._closed = True
        self._closing.close()
        with self._lock, self._listening:
            for each in (self._db, self._listener, self._on_close):
                if each is not None:
                    each.close()

    # Statements

    def execute(self, statement: str, values: Mapping[str, object]) -> Sequence[Mapping[str, Any]]:
        """Execute a statement, again if the connection was lost: a second try of a transition changes nothing."""
        # PostgreSQL cannot store NUL, nor halves of surrogate pairs.
        texts = {name: value for name, value in values.items() if isinstance(value, str)}
        clean = {name: replace_surrogates(text).replace("\0", "\ufffd") for name, text in texts.items()}
        with self._lock:
            try:
                if self._db is not None:
                    with contextlib.suppress(*LOST):
                        return self._execute(statement, {**values, **clean})
                    self._db.close()
                return self._execute(statement, {**values, **clean})
            except psycopg.Error as error:
                raise RegistryError(f"{self.name} cannot be used: {_reason(error)}") from error

    def _execute(self, statement: str, values: Mapping[str, object]) -> list[DictRow]:
        if self._closed:
            raise RegistryError(f"{self.name} is closed")
        if self._db is None or self._db.closed:
            self._db = self._connect()
        values = {"lease_s": LEASE_S, "host": socket.gethostname(), **values}
        *first, last = render(statement, "postgresql").split("; ")
        with self._db.pipeline() if first else contextlib.nullcontext():  # one transaction, sent at once
            for each in first:
                self._db.execute(each, values)
            cursor = self._db.execute(last, values)
        return [] if cursor.rownumber is None else cursor.fetchall()

    def _connect(self) -> Connection:
        db = connect(self._url)
        try:
            _check_version(db, self.name)
        except BaseException:
            db.close()
            raise
        return db

    # Changes

    def wait_for_change(self, since: int, seconds: float) -> int:
        """Wait on a connection of its own: one that listens holds back the transitions of others."""
        end = time.monotonic() + seconds
        time.sleep(min(seconds, SETTLE_S))
        with self._listening:
            while True:
                polled, left = self._changes + int(time.monotonic() / POLL_S), end - time.monotonic()
                if polled != since or left <= 0 or self._closed:
                    return polled
                self._listen(min(left, POLL_S))

    def _listen(self, seconds: float) -> None:
        try:
            if self._listener is None:
                self._listener = connect(self._url)
                for each in self._channels:
                    self._listener.execute(f"LISTEN {each}")
                self._changes += 1  # what came before is not known
                return
            self._pause(seconds, self._listener)
            own = self._db.info.backend_pid if self._db is not None else None
            self._changes += any(each.pid != own for each in self._listener.notifies(timeout=0))
        except psycopg.Error:
            if self._listener is not None:
                self._listener.close()
                self._listener = None
            self._pause(seconds)  # `POLL_S` remains

    def _pause(self, seconds: float, *sources: Connection) -> None:
        """Wait until a connection has something to read, or the store is closed."""
        poll = select.poll()
        for each in (self._on_close.fileno(), *(source.fileno() for source in sources)):
            poll.register(each, select.POLLIN)
        poll.poll(seconds * 1000)

    # Owners

    def join(self, *, slots: int = 0, labels: Sequence[str] = ()) -> str:
        self._channels -= set() if slots else {schema.WAITING}
        owner, labels_text = new_owner_id(), json.dumps(list(labels))
        values = {"owner": owner, "version": version("turngate"), "slots": slots, "labels": labels_text}
        self.execute(schema.JOIN, {**values, "retention": OWNER_RETENTION_S})
        return owner

    def beat(self, owner: str) -> bool:
        """Renew the lease. One that has lapsed stays so: its runs may belong to others."""
        renew = f"UPDATE turngate.owners SET seen = now() WHERE id = $owner AND {_LIVES} RETURNING id"
        return bool(self.execute(renew, {"owner": owner}))

    def leave(self, owner: str) -> None:
        self.execute("DELETE FROM turngate.owners WHERE id = $owner RETURNING id", {"owner": owner})

    def living(self, owners: Collection[str]) -> dict[str, str]:
        found = f"SELECT id, host FROM turngate.owners WHERE id = ANY($owners) AND {_LIVES}"
        rows = self.execute(found, {"owners": list(owners)})
        return {row["id"]: f"process {row['id'].split('-')[1]} on {row['host']}" for row in rows}

    def workers(self) -> Sequence[Mapping[str, Any]]:
        beat = "extract(epoch FROM now() - seen)::float8 AS beat"
        columns = f"id, host, version, slots, labels, {beat}"
        found = f"SELECT {columns} FROM turngate.owners WHERE slots > 0 AND {_LIVES} ORDER BY joined, id"
        return self.execute(found, {})
