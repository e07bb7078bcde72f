"""One gate is never checked twice at once in one project: the second stop waits, and takes the result of the first."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import TURNGATE
from tests.support.gates import answer_of_process
from tests.support.left_behind import until
from tests.support.sessions import hang, lines, wait_for_file_sync
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import Program

# Notes each run, and whether another one runs at the same time; ends when it is allowed to.
CHECK = """\
mkdir ../busy || echo twice >> ../runs
echo run >> ../runs
until [ -e ../go ]; do sleep 0.02; done
rmdir ../busy
echo 'one test fails'
exit 1
"""
BLOCK = {"decision": "block", "reason": "`sh check`: exit code 1\none test fails"}


def event(project: Path, session: str) -> str:
    return json.dumps({"hook_event_name": "Stop", "session_id": session, "cwd": str(project)})


@contextmanager
def stop(project: Path, session: str, *words: str, script: str = "check") -> Iterator[Program]:
    """Start the gate at a stop of a session."""
    program = Program(["gate", *words, "--", "sh", script], project, stdin=event(project, session))
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def answer(program: Program) -> Any:
    return json.loads(program.communicate()[0])


def wait_for_lock(program: Program, state: Path) -> None:
    """Wait until a process has opened the lock, which another one has."""

    def opened() -> bool:
        links = (os.readlink(path) for path in Path(f"/proc/{program.pid}/fd").iterdir() if path.is_symlink())
        return any(link.startswith(f"{state}/locks/") for link in links)

    until(opened)


@pytest.fixture
def check(project: Path) -> Path:
    path = project / "check"
    path.write_text(CHECK)
    return path


def start_sessions(project: Path) -> None:
    for session in ("a", "b"):
        fields = json.loads(event(project, session))
        answer_of_process(("--", "sh", "check"), {**fields, "hook_event_name": "SessionStart"})
    (project / "changed").touch()


@pytest.mark.parametrize(("code", "has_start"), [(0, False), (0, True), (1, False)])
def test_a_second_stop_waits_for_the_first_and_takes_its_result(
    project: Path, state: Path, check: Path, code: int, has_start: bool
) -> None:
    check.write_text(CHECK.replace("exit 1", f"exit {code}"))
    if has_start:
        start_sessions(project)
    with stop(project, "a") as first:
        wait_for_file_sync(project / "../runs")
        with stop(project, "b") as second:
            wait_for_lock(second, state)
            (project / "../go").touch()
            assert [answer(first), answer(second)] == [BLOCK if code else {}] * 2
    assert lines(project / "../runs") == ["run"]


@pytest.mark.parametrize("has_start", [False, True], ids=["changed", "depends on the session"])
def test_a_second_stop_checks_after_the_first_where_its_result_is_not_that_of_the_first(
    project: Path, state: Path, check: Path, has_start: bool
) -> None:
    if has_start:
        start_sessions(project)
    with stop(project, "a") as first:
        wait_for_file_sync(project / "../runs")
        with stop(project, "b") as second:
            wait_for_lock(second, state)
            if not has_start:
                (project / "changed").touch()
            (project / "../go").touch()
            assert [answer(each)["decision"] for each in (first, second)] == ["block", "block"]
    assert lines(project / "../runs") == ["run", "run"]


def test_the_variables_of_an_agent_program_do_not_keep_two_sessions_from_sharing_a_result(
    project: Path, state: Path, check: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLAUDE_PID", "a")
    with stop(project, "a") as first:
        wait_for_file_sync(project / "../runs")
        monkeypatch.setenv("CLAUDE_PID", "b")
        with stop(project, "b") as second:
            wait_for_lock(second, state)
            (project / "../go").touch()
            assert [answer(first), answer(second)] == [BLOCK] * 2
    assert lines(project / "../runs") == ["run"]


def test_a_result_is_not_shared_with_a_session_that_has_another_environment(
    project: Path, state: Path, check: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check.write_text(CHECK.replace("exit 1", "test $LEVEL = 1"))
    monkeypatch.setenv("LEVEL", "1")
    with stop(project, "a") as first:
        wait_for_file_sync(project / "../runs")
        monkeypatch.setenv("LEVEL", "2")
        with stop(project, "b") as second:
            wait_for_lock(second, state)
            (project / "../go").touch()
            assert [answer(first), answer(second)] == [{}, BLOCK]


def test_a_pass_is_not_shared_with_a_session_that_began_before_the_check_was_changed(
    project: Path, state: Path, check: Path
) -> None:
    check.write_text(CHECK.replace("exit 1", "exit 0"))
    words = ("--", "sh", "./check")
    for session, script in (("a", "exit 0\n"), ("b", check.read_text())):
        (project / "check").write_text(script)
        answer_of_process(words, {**json.loads(event(project, session)), "hook_event_name": "SessionStart"})
    (project / "changed").touch()
    with stop(project, "b", script="./check") as second:
        wait_for_file_sync(project / "../runs")
        with stop(project, "a", script="./check") as first:
            wait_for_lock(first, state)
            (project / "../go").touch()
            assert answer(second) == {}
            assert answer(first)["reason"].startswith(
                "The check `sh ./check` itself was changed in this session:"
            )


def test_a_stop_waits_no_longer_for_one_that_was_killed(project: Path, state: Path, check: Path) -> None:
    check.write_text(f"echo run >> ../runs; [ -e ../killed ] || {{ {hang()}; }}")
    with stop(project, "a") as first:
        wait_for_file_sync(project / "../runs")
        with stop(project, "b") as second:
            wait_for_lock(second, state)
            (project / "../killed").touch()
            first.kill()
            assert answer(second) == {}
    assert lines(project / "../runs") == ["run", "run"]


def test_the_wait_counts_in_the_time_limit_and_is_said(project: Path, check: Path) -> None:
    with stop(project, "a") as first:
        wait_for_file_sync(project / "../runs")
        with stop(project, "b", "--timeout", "0.5", "--strict") as second:
            said = answer(second)["reason"]
        (project / "../go").touch()
        answer(first)
    start, _, end = said.partition(" waited ")
    assert (start, end.partition(" s ")[2]) == (
        'gate "command" could not run: its time was up after it',
        "for the same gate, which another agent checked in this project",
    )


def test_a_gate_whose_command_checks_the_same_gate_does_not_wait_for_itself(
    project: Path, check: Path
) -> None:
    nested = " ".join([*TURNGATE, "gate", "--", "sh", "check"])
    check.write_text(f"[ -e ../nested ] || {{ touch ../nested; {nested} < ../event; }}")
    (project / "../event").write_text(event(project, "a"))
    words = [*TURNGATE, "gate", "--timeout", str(HANG_TIMEOUT_S), "--", "sh", "check"]
    with (project / "../event").open() as stdin:
        done = subprocess.run(
            words,
            cwd=project,
            stdin=stdin,
            capture_output=True,
            text=True,
            timeout=HANG_TIMEOUT_S / 2,
            check=True,
        )
    assert (json.loads(done.stdout), (project / "../nested").exists()) == ({}, True)
