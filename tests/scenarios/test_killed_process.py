"""No command of Turngate outlives it: its process is killed, its parent dies, or nothing reads its answer."""

import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import TURNGATE, turngate
from tests.support.left_behind import until
from tests.support.sessions import hang, is_running, survives, wait_for_file_sync
from tests.support.warm_cli import Program

EVENT = {"hook_event_name": "Stop", "session_id": "s-1", "turn_id": "1", "model": "m"}


def event(project: Path, **more: Any) -> str:
    return json.dumps({**EVENT, "cwd": str(project), **more})


@contextmanager
def started(project: Path, *words: str, stdin: str = "") -> Iterator[Program]:
    """Start a command in the project, by default `turngate hook` at a stop."""
    program = Program(words or ["hook"], project, stdin=stdin or event(project))
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def processes_of(project: Path) -> list[int]:
    """Return the processes that have the project in their environment."""
    return [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _belongs(pid, project)]


def _belongs(pid: int, project: Path) -> bool:
    try:
        environ = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return False
    return f"={project}".encode() in environ


# Its process is killed

IN_BACKGROUND = f"sh -c '{hang()}' >/dev/null 2>&1 </dev/null &"
TREES = {
    "a command": hang(),
    "ignores TERM": f"trap '' TERM; {hang()}; {hang()}",
    "a session of its own": f"setsid {IN_BACKGROUND} wait",
    "a daemon": f"(setsid {IN_BACKGROUND}); sleep 3600",
    "without its environment": f"env -i setsid {IN_BACKGROUND} wait",
}


@pytest.mark.req("X-11")
@pytest.mark.parametrize("command", TREES.values(), ids=TREES)
def test_the_whole_tree_of_a_hook_ends_when_turngate_is_killed(project: Path, command: str) -> None:
    write_settings(project, "turngate", stop_hooks(command))
    with started(project) as program:
        pid = wait_for_file_sync(project / "pid")
        program.kill()
        assert not survives(pid)
    until(lambda: not processes_of(project))


@pytest.mark.parametrize(
    "words",
    [
        ["gate", "--", "sh", "check"],
        ["fire", "Stop"],
        ["gates", "run"],
        ["hooks", "test", "Stop"],
        ["doctor", "--prove"],
        ["run", "-p", "go", "--model", "scripted:script.json"],
    ],
    ids=lambda words: words[0],
)
def test_a_gate_ends_when_the_command_that_runs_it_is_killed(
    project: Path, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = (
        f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # with pytest, which a proof needs
    )
    monkeypatch.setenv("PATH", path)
    gate = {
        "type": "gate",
        "command": "pytest --version; sh check",
        "options": {"always": True},
    }  # what it checks is known, so it can be proved
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [gate]}]}})
    pid_file = project.parent / "pid"  # some commands run the gate in a copy of the project
    (project / "check").write_text(hang(str(pid_file)))
    (project / "script.json").write_text(json.dumps({"main": ["done"]}))
    with started(project, *words) as program:
        pid = wait_for_file_sync(pid_file)
        program.kill()
        assert not survives(pid)


@pytest.mark.req("X-11")
def test_killed_at_any_moment_it_leaves_no_process(project: Path) -> None:
    """Also while a hook is being started, when its PID is not known yet, and at its end."""
    write_settings(project, "turngate", stop_hooks("sleep 0.02 & wait", "sleep 3600", "true"))
    chance = random.Random(4)
    for _ in range(12):
        with started(project):
            time.sleep(chance.uniform(0, 0.15))
    until(lambda: not processes_of(project))


def test_a_kill_during_the_grace_time_after_term_leaves_no_process(project: Path) -> None:
    """As of a host that sends TERM and, 100 ms later, KILL."""
    write_settings(project, "turngate", stop_hooks(TREES["ignores TERM"]))
    with started(project) as program:
        pid = wait_for_file_sync(project / "pid")
        program.send_signal(signal.SIGTERM)
        time.sleep(0.1)
        program.kill()
        assert not survives(pid)


def test_what_an_earlier_hook_left_running_stays_when_turngate_is_killed_in_a_later_one(
    project: Path,
) -> None:
    hooks = stop_hooks(IN_BACKGROUND.replace("pid", "left"), hang())
    write_settings(project, "turngate", {**hooks, "turngate": {"order": "sequential"}})
    with started(project) as program:
        left, pid = (wait_for_file_sync(project / name) for name in ("left", "pid"))
        try:
            program.kill()
            assert not survives(pid)
            assert is_running(left)
        finally:
            os.killpg(os.getpgid(int(left)), signal.SIGKILL)


def test_nothing_is_left_after_a_stop_that_ended_by_itself(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    assert turngate("hook", stdin=event(project))[:2] == (0, "")
    until(lambda: not processes_of(project))


FORKS = """
    import asyncio, os, sys, time
    from turngate.ports import HookRunContext
    from turngate.shells.local import run_process

    def run(command):
        argv = ("/bin/sh", "-c", command)
        return run_process(argv, cwd=".", env=os.environ, stdin=b"", live=HookRunContext())

    asyncio.run(run("true"))
    if os.fork() == 0:
        asyncio.run(run(sys.argv[1]))
    else:
        asyncio.run(run(sys.argv[2]))
"""


def test_the_commands_of_a_forked_process_end_with_it_and_not_with_its_parent(project: Path) -> None:
    child_command, parent_command = hang("child"), hang("parent")
    argv = [
        sys.executable,
        "-c",
        textwrap.dedent(FORKS),
        f"echo $PPID > forked; {child_command}",
        parent_command,
    ]
    with subprocess.Popen(argv, cwd=project, env=os.environ) as process:
        child, parent, forked = (wait_for_file_sync(project / name) for name in ("child", "parent", "forked"))
        process.kill()
        assert not survives(parent)
        assert is_running(child)
        os.kill(int(forked), signal.SIGKILL)
        assert not survives(child)


# Nothing waits for the answer


def test_a_hook_ends_with_its_tree_when_nothing_reads_its_answer(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(hang()))
    with started(project) as program:
        pid = wait_for_file_sync(project / "pid")
        program.stdout.close()
        said = (program.wait(), program.stderr.read())
    assert said == (129, "turngate hook: ended by SIGHUP before an answer\n")
    assert not is_running(pid)


@pytest.mark.parametrize("words", [["hook"], ["gate", "--", hang()]], ids=["hook", "gate"])
def test_a_hook_ends_with_its_tree_when_its_parent_dies(project: Path, words: list[str]) -> None:
    """As when a host kills the shell that it runs the hook with; stdout is a file, which is never without a reader."""
    write_settings(project, "turngate", stop_hooks(hang()))
    (project / "event").write_text(event(project))
    with _start_in_shell(project, *words) as shell:
        pid = wait_for_file_sync(project / "pid")
        shell.kill()
    assert not survives(pid)


def _start_in_shell(
    project: Path, *words: str, stdout: Any = subprocess.DEVNULL
) -> "subprocess.Popen[bytes]":
    argv = ["/bin/sh", "-c", '"$@" < event; true', "sh", *TURNGATE, *words]
    return subprocess.Popen(argv, cwd=project, stdout=stdout, stderr=subprocess.DEVNULL)


def test_a_command_of_a_person_ends_only_when_its_parent_and_its_reader_are_gone(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(hang()))
    (project / "event").write_text("")
    read, write = os.pipe()
    with open(read, "rb") as reader, open(write, "wb") as writer:
        with _start_in_shell(project, "fire", "Stop", stdout=writer) as shell:
            pid = wait_for_file_sync(project / "pid")
            shell.kill()
        writer.close()
        time.sleep(2.5)  # it has looked twice
        assert is_running(pid)
        reader.close()
    assert not survives(pid)
