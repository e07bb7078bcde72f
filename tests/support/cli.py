"""`turngate` as a process of its own, started afresh."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.sessions import end_leftovers

TURNGATE = [sys.executable, "-m", "turngate"]
PATIENCE = 40.0  # seconds; only against a test that hangs


def turngate(*words: str, stdin: str = "", timeout: float = PATIENCE) -> tuple[int, str, str]:
    done = subprocess.run(
        [*TURNGATE, *words], input=stdin, capture_output=True, text=True, check=False, timeout=timeout
    )
    return done.returncode, done.stdout, done.stderr


@contextmanager
def started(*words: str, own_session: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Killed at the end if it still runs."""
    process = subprocess.Popen(
        [*TURNGATE, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=own_session,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def working(project: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """The same in a project, and with it ends what it left behind there."""
    try:
        with started(*words, "--project", str(project)) as process:
            yield process
    finally:
        end_leftovers(project)
