"""Output that cannot be written (a full disk, a closed stdout, a reader that has left), and the order of both streams."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.state.journal import Journal

COMMANDS = [
    "check",
    "check --json",
    "schema",
    "sessions",
    "runs",
    "runs --json",
    "log",
    "fire Stop",
    "--version",
    "log --help",
]


def in_shell(project: Path, words: str, redirection: str) -> tuple[int, str]:
    """Return the exit code of the command itself and its stderr."""
    line = f"{sys.executable} -m turngate {words} {redirection}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["/bin/bash", "-c", line],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    return done.returncode, done.stderr


@pytest.fixture
def busy_project(project: Path, state: Path) -> Path:
    journal = Journal(str(state))
    for _ in range(2000):  # more than a pipe holds
        journal.record("s", {"kind": "verdict", "event": "Stop", "verdict": "stop", "prompt": "x" * 80})
    journal.close()
    return project


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize(
    ("redirection", "why"), [("> /dev/full", "No space left on device"), (">&-", "it is closed")]
)
def test_output_that_is_lost_is_reported_and_is_an_error(
    busy_project: Path, words: str, redirection: str, why: str
) -> None:
    said = f"turngate: the output could not be written to stdout ({why})\n"
    assert in_shell(busy_project, words, redirection) == (74, said)


@pytest.mark.parametrize("words", ["schema", "log", "log --follow"])
def test_a_reader_that_leaves_ends_the_command_silently_as_sigpipe_does(
    busy_project: Path, words: str
) -> None:
    assert in_shell(busy_project, words, "| head -1") == (141, "")


def test_a_command_that_fails_keeps_its_code_although_its_output_is_lost(project: Path) -> None:
    write_settings(project, "turngate", {"hooks": {"Stpo": []}})
    said = "turngate: the output could not be written to stdout (No space left on device)\n"
    assert in_shell(project, "check", "> /dev/full") == (1, said)


def test_a_verdict_keeps_its_code_although_its_reader_leaves(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("seq 1 100000 >&2; exit 2"))
    assert in_shell(project, "fire Stop", "| head -1") == (10, "")


def test_warnings_follow_what_was_printed_before_them(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("exit 1", "exit 3"))
    command = [sys.executable, "-m", "turngate", "fire", "Stop", "--trust", "--project", str(project)]
    printed = subprocess.run(
        command,
        env={"HOME": str(project)},  # without PYTHONUNBUFFERED, stdout is written last
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    ).stdout
    first_letters = [line[0] for line in printed.splitlines() if not line.startswith("waiting")]
    assert first_letters == ["S", " ", " ", "!", " ", "!"]
