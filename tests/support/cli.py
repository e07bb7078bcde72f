"""Starts `turngate` as a process of its own."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.sessions import kill_leftovers
from tests.support.warm_cli import Program

TURNGATE = [sys.executable, "-m", "turngate"]  # a new Python process


# A slow machine prints it anywhere.
PROGRESS = re.compile(r"^waiting for .* …\n", re.MULTILINE)


def turngate(*words: str, stdin: str = "") -> tuple[int, str, str]:
    """Run the command and return its exit code, stdout, and stderr without lines of progress."""
    code, out, err = turngate_with_progress(*words, stdin=stdin)
    return code, out, PROGRESS.sub("", err)


def turngate_with_progress(*words: str, stdin: str = "") -> tuple[int, str, str]:
    program = Program(words, stdin=stdin)
    out, err = program.communicate()
    return program.wait(), out, err


@contextmanager
def start_turngate(*words: str, own_session: bool = False) -> Iterator[Program]:
    """Start the command; kill it at the end if it still runs."""
    process = Program(words, start_new_session=own_session)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def start_in_project(project: Path, *words: str) -> Iterator[Program]:
    """Start the command in a project; kill it and its hooks at the end."""
    try:
        with start_turngate(*words, "--project", str(project)) as process:
            yield process
    finally:
        kill_leftovers(project)
