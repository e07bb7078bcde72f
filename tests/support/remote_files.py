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
from turngate.core.answers.reports import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.ports import RemoteMachine, World
from turngate.shells.remote_files.files import RemoteFiles
from turngate.shells.ssh.shell import SshShell

T = TypeVar("T")


class CommandCounter:
    """Counts the commands over SSH that read or write files, from now on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        run = SshShell.run

        async def counted(shell: SshShell, hook: CommandHook, **options: Any) -> Exited:
            self.count += hook.args is not None and hook.args[2:3] == ("sh",)
            return await run(shell, hook, **options)

        monkeypatch.setattr(SshShell, "run", counted)


@contextmanager
def connected_files(**environ: str) -> Iterator[RemoteFiles]:
    """Yield the files of the test server. `environ` is added to that of a login there."""
    with event_loop_in_thread() as loop:
        made = asyncio.run_coroutine_threadsafe(_connect(environ), loop).result()
        try:
            yield made[0]
        finally:
            asyncio.run_coroutine_threadsafe(made[1].close(), loop).result()


async def _connect(environ: dict[str, str]) -> tuple[RemoteFiles, SshShell]:
    shell = SshShell(HOST)
    login = {**await shell.environment(), **environ}
    return RemoteFiles(shell, asyncio.get_running_loop(), home=login["HOME"], environ=login), shell


def remote_context(
    machine: Machine, project: Path | str, environ: Mapping[str, str] | None = None, **fields: Any
) -> ToolContext:
    """Return what the tools get for a project on the machine of the test server."""
    environ, loop = environ or machine.environ, machine.run(_running_loop())
    files = RemoteFiles(machine.shell, loop, home=environ["HOME"], environ=environ)
    world = World(machine.shell, str(project), environ=environ, remote=RemoteMachine(files))
    context = ToolContext(str(project), dict(environ), world=world, **fields)
    machine.run(context.prepare())
    return context


async def _running_loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


def run_where(context: ToolContext, scenario: Coroutine[Any, Any, T]) -> T:
    """Run a scenario in the event loop of the machine where the project of these tools is."""
    if context.world is None or not isinstance(context.world.files, RemoteFiles):
        return asyncio.run(scenario)
    return context.world.files.scripts.loop.run_until_complete(scenario)
