"""Starts `turngate` as a new process."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.sessions import kill_leftovers
from tests.support.timeouts import HANG_TIMEOUT_S

TURNGATE = [sys.executable, "-m", "turngate"]


def turngate(*words: str, stdin: str = "") -> tuple[int, str, str]:
    """Run the command and return its exit code, stdout and stderr."""
    done = subprocess.run(
        [*TURNGATE, *words], input=stdin, capture_output=True, text=True, check=False, timeout=HANG_TIMEOUT_S
    )
    return done.returncode, done.stdout, done.stderr


@contextmanager
def start_turngate(*words: str, own_session: bool = False) -> Iterator[subprocess.Popen[str]]:
    """Start the command; kill it at the end if it still runs."""
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
def start_in_project(project: Path, *words: str) -> Iterator[subprocess.Popen[str]]:
    """Start the command in a project; kill it and its hooks at the end."""
    try:
        with start_turngate(*words, "--project", str(project)) as process:
            yield process
    finally:
        kill_leftovers(project)
