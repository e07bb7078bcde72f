"""A real PostgreSQL server in a temporary folder, started as a user without privileges."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg

from tests.support.certificates import make_certificate
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S
from turngate.cli.commands.worker.local_postgres import find_programs
from turngate.state.process_stat import is_alive
from turngate.subagents.registry.owners import process_of
from turngate.subagents.registry.postgres_store import create_schema

# Ends the server when the process of the tests is killed.
WATCH = "import os, signal, sys; sys.stdin.read(); os.kill(int(sys.argv[1]), signal.SIGQUIT)"
PASSWORD = "secret"  # of all logins, over TCP
REGISTRY = "registry"  # the database


def find_postgres() -> Path | None:
    return Path(found) if (found := find_programs()) else None


class PostgresServer:
    """Logins: `owner` of the databases, `alice` and `bob` (sessions), `worker`, and `carol` (both)."""

    def __init__(self, programs: Path) -> None:
        self.programs = programs
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))  # short: the path of a socket is limited
        self.user = "nobody" if os.getuid() == 0 else None
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.certificate = Path(f"{make_certificate(self.folder)}.crt")
        (self.folder / "both.pem").chmod(0o600)
        if self.user:
            account = pwd.getpwnam(self.user)
            for path in (self.folder, *self.folder.iterdir()):
                os.chown(path, account.pw_uid, account.pw_gid)
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self, program: str, *words: str) -> "subprocess.Popen[bytes]":
        command = [str(self.programs / program), *words]
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(command, user=self.user, stdout=log, stderr=log, cwd=self.folder)

    def create(self) -> None:
        data = str(self.folder / "data")
        words = ("-D", data, "-U", "owner", "-A", "trust", "--no-sync", "-E", "UTF8")
        assert self._start("initdb", *words).wait(HANG_TIMEOUT_S) == 0, (self.folder / "log").read_text()
        (self.folder / "data" / "pg_hba.conf").write_text(
            "local all all trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
        )
        self.start()
        with self.connect("postgres") as db:
            db.execute(f"CREATE DATABASE {REGISTRY}")
            create_schema(self.url("owner"))
            for login, roles in LOGINS.items():
                db.execute(f"CREATE ROLE {login} LOGIN PASSWORD '{PASSWORD}' IN ROLE {', '.join(roles)}")

    def start(self) -> None:
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": self.port,
            "unix_socket_directories": self.folder,
            "fsync": "off",
            "max_connections": 200,
            "ssl": "on",
            "ssl_cert_file": self.folder / "both.pem",
            "ssl_key_file": self.folder / "both.pem",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = ("postgres", "-D", str(self.folder / "data"), *words)
        self._process = self._start(*command)
        end = time.monotonic() + HANG_TIMEOUT_S
        while True:
            with suppress(psycopg.OperationalError):
                self.connect("postgres").close()
                break
            if time.monotonic() > end:
                raise RuntimeError((self.folder / "log").read_text())
            if (
                self._process.poll() is not None
            ):  # memory of a killed server is in use until its processes end
                self._process = self._start(*command)
            time.sleep(POLL_INTERVAL_S)
        watch = [sys.executable, "-c", WATCH, str(self._process.pid)]
        self._watch = subprocess.Popen(watch, stdin=subprocess.PIPE)

    def stop(self, *, kill: bool = False) -> None:
        if self._process:
            self._watch.kill()
            self._watch.communicate()
            self._process.kill() if kill else self._process.send_signal(3)  # SIGQUIT: at once
            self._process.wait()
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @contextmanager
    def leases_of_dead_processes_lapse(self) -> Iterator[None]:
        """End leases of processes that are dead at once; those of living ones are as long as always."""
        ended = threading.Event()

        def watch() -> None:
            with self.connect(REGISTRY) as db:
                while not ended.wait(0.1):
                    for (owner,) in db.execute("SELECT id FROM turngate.owners"):
                        process = process_of(owner)
                        if process and not is_alive(process):
                            db.execute(
                                "UPDATE turngate.owners SET seen = '-infinity' WHERE id = %s", (owner,)
                            )

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            ended.set()
            watcher.join()

    def connect(self, database: str) -> "psycopg.Connection[Any]":
        return psycopg.connect(self.url("owner", database), autocommit=True)

    def url(self, login: str = "carol", database: str = REGISTRY) -> str:
        return f"postgresql://{login}@/{database}?host={self.folder}&port={self.port}"

    def clear(self) -> None:
        """Empty the registry, and end the connections of tests before: a new database takes 0.4 s."""
        with self.connect(REGISTRY) as db:
            db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename != 'owner'")
            db.execute("DELETE FROM turngate.runs")
            db.execute("DELETE FROM turngate.owners")


LOGINS = {
    "alice": ["turngate_session"],
    "bob": ["turngate_session"],
    "worker": ["turngate_worker"],
    "carol": ["turngate_session", "turngate_worker"],
}


@contextmanager
def postgres_server(programs: Path) -> Iterator[PostgresServer]:
    server = PostgresServer(programs)
    try:
        server.create()
        yield server
    finally:
        server.remove()
