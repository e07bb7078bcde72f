"""The progress line, on a stderr that is not a terminal and on one that is."""

import asyncio
import io
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.cli import turngate
from tests.support.servers.ssh import HOST, SshServer
from tests.support.terminal import CTRL_C, Terminal
from turngate.cli.console import progress
from turngate.cli.console.progress import CLEAR_LINE, ProgressLine


class Stderr(io.StringIO):
    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


def show(
    monkeypatch: pytest.MonkeyPatch, waits: Sequence[Sequence[str]], *, is_terminal: bool, **options: object
) -> str:
    """Return what is printed if these hooks are running at each update; the last update cancels the line."""
    stderr = Stderr(is_terminal=is_terminal)
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "UPDATE_INTERVAL_S", 0)
    updates = iter(waits)

    async def run() -> None:
        def waiting_for() -> Sequence[str]:
            try:
                return next(updates)
            except StopIteration:
                raise asyncio.CancelledError from None

        line = ProgressLine(waiting_for, **options)  # type: ignore[arg-type]
        await asyncio.wait({asyncio.create_task(line.run())})

    asyncio.run(run())
    return stderr.getvalue()


def test_each_wait_is_printed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = [[], ["a", "b"], ["b"], [], ["c"], ["c"]]
    printed = show(monkeypatch, waits, is_terminal=False, idle="working")
    assert printed == "waiting for a, b …\nwaiting for c …\n"


def test_a_long_wait_is_repeated_where_that_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = show(monkeypatch, [["a"]] * 7, is_terminal=False, repeat_s=3)
    assert printed == "waiting for a …\n" * 3


def test_at_a_terminal_one_line_is_rewritten_and_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = show(monkeypatch, [[], ["a"], ["a"]], is_terminal=True, idle="working", hint=" · hint")
    assert [line for line in printed.split(CLEAR_LINE) if line] == [
        "working … 1 s · hint",
        "waiting for a … 1 s · hint",
        "waiting for a … 2 s · hint",
    ]
    assert printed.endswith(CLEAR_LINE)


# Commands that take long

WAIT = """
import os, time
import {module} as module

def wait(*args, real=module.{function}, **options):
    while not os.path.exists({released!r}):
        time.sleep(0.02)
    return real(*args, **options)

module.{function} = wait
"""


def hold(slow: str, folder: Path) -> Path:
    """Write a module that lets this function wait for a file; return the path of the file."""
    module, _, function = slow.rpartition(".")
    released = folder / "released"
    text = WAIT.format(module=module, function=function, released=str(released))
    (folder / "sitecustomize.py").write_text(text)
    return released


@pytest.mark.parametrize(
    ("words", "slow", "shown"),
    [
        ("check", "turngate.settings.load.load_layers", "checking the settings … 1 s"),
        ("sessions", "turngate.agent.session_store.list_sessions", "reading the sessions … 1 s"),
        ("log", "turngate.state.paths.state_folder", "searching the journals … 1 s"),
        ("runs", "turngate.state.paths.state_folder", "reading the registry … 1 s"),
        ("run -p hi --model scripted:none", "turngate.models.resolve.open_model", "loading the model … 1 s"),
    ],
)
def test_a_command_that_takes_more_than_a_second_says_what_it_does(
    project: Path, tmp_path: Path, words: str, slow: str, shown: str
) -> None:
    released = hold(slow, tmp_path)
    with Terminal(*words.split(), cwd=project, env={"PYTHONPATH": str(tmp_path)}) as terminal:
        terminal.expect(shown)
        released.touch()
        terminal.end()
        terminal.expect("\n")
        assert terminal.raw.rpartition(shown[:9].encode())[2].count(CLEAR_LINE.encode()) == 1


@pytest.mark.parametrize(
    ("words", "slow", "shown", "afterwards"),
    [
        (
            "hooks",
            "turngate.trust.review.review_project",
            f"reading the settings on {HOST} … 1 s",
            "no hooks",
        ),
        (
            "hooks",
            "turngate.cli.review.entries.read_entries",
            f"reading the settings on {HOST} … 1 s",
            "no hooks",
        ),
        (
            "run -p hi --model scripted:script.json",
            "turngate.trust.load.load_settings",
            f"reading the settings on {HOST} … 1 s",
            "Done.",
        ),
        (
            "run --model scripted:script.json",
            "turngate.trust.load.load_settings",
            f"reading the settings on {HOST} … 1 s",
            "/help shows the commands and keys",
        ),
        (
            "run --model scripted:script.json",
            "turngate.agent.tools.tool.resolve_folders",
            f"opening the session on {HOST} · ",
            "/help shows the commands and keys",
        ),
    ],
)
def test_what_is_slow_on_another_machine_is_named_with_the_machine(
    server: SshServer, tmp_path: Path, words: str, slow: str, shown: str, afterwards: str
) -> None:
    (tmp_path / "script.json").write_text('{"main": ["Done."]}')
    released = hold(slow, tmp_path)
    command = (*words.split(), "--ssh", f"{HOST}:{server.path_there(server.home)}")
    with Terminal(*command, cwd=tmp_path, env={"PYTHONPATH": str(tmp_path)}) as terminal:
        terminal.expect(shown)
        released.touch()
        terminal.expect(afterwards)


@pytest.mark.parametrize("words", ["hooks", "run", "run -p hi"])
def test_a_command_that_connects_says_so(words: str, project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        name = f"127.0.0.1:{silent.getsockname()[1]}"
        with Terminal(*words.split(), "--ssh", f"ssh://{name}/srv", cwd=project) as terminal:
            terminal.expect(f"connecting to {name} … 1 s")
            terminal.type(CTRL_C)
            assert terminal.end() == 130


def test_in_a_pipe_no_progress_of_a_command_is_printed(project: Path) -> None:
    assert turngate("check", "--project", str(project))[2] == ""
