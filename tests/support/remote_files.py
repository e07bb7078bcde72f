"""The files of another machine for a test: an event loop in a thread of its own, as a session has it."""

import asyncio
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.support.machines import Machine
from tests.support.servers.ssh import HOST
from turngate.agent.tools import ToolContext
from turngate.aio.threads import event_loop_in_thread
from turngate.ports import RemoteMachine, World
from turngate.shells.ssh.files import SshFiles
from turngate.shells.ssh.shell import SshShell

T = TypeVar("T")


class QuestionCounter:
    """Counts the questions about files over SSH, from now on: each is one or more round trips."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        answer = SshFiles._answer

        async def counted(files: SshFiles, *args: Any, **options: Any) -> Any:
            self.count += 1
            return await answer(files, *args, **options)

        monkeypatch.setattr(SshFiles, "_answer", counted)


@contextmanager
def connected_files(**environ: str) -> Iterator[SshFiles]:
    """Yield the files of the test server. `environ` is added to that of a login there."""
    with event_loop_in_thread() as loop:
        made = asyncio.run_coroutine_threadsafe(_connect(environ), loop).result()
        try:
            yield made[0]
        finally:
            asyncio.run_coroutine_threadsafe(made[1].close(), loop).result()


async def _connect(environ: dict[str, str]) -> tuple[SshFiles, SshShell]:
    shell = SshShell(HOST)
    login = {**await shell.environment(), **environ}
    machine = f"ssh://{HOST}"
    loop = asyncio.get_running_loop()
    return SshFiles(shell, loop, home=login["HOME"], environ=login, machine=machine), shell


def remote_context(
    machine: Machine, project: Path | str, environ: Mapping[str, str] | None = None, **fields: Any
) -> ToolContext:
    """Return what the tools get for a project on the machine of the test server."""
    environ, loop = environ or machine.environ, machine.run(_running_loop())
    assert isinstance(machine.shell, SshShell)
    files = SshFiles(machine.shell, loop, home=environ["HOME"], environ=environ, machine=f"ssh://{HOST}")
    world = World(machine.shell, str(project), environ=environ, remote=RemoteMachine(files))
    context = ToolContext(str(project), dict(environ), world=world, **fields)
    machine.run(context.prepare())
    return context


async def _running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def run_where(context: ToolContext, scenario: Coroutine[Any, Any, T]) -> T:
    """Run a scenario in the event loop of the machine where the project of these tools is."""
    if context.world is None or not isinstance(context.world.files, SshFiles):
        return asyncio.run(scenario)
    return context.world.files.loop.run_until_complete(scenario)
