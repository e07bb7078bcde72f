"""Commands over any shell: local, or of another machine."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.support.builders import settings, stop_event
from turngate.core.answers.report_types import Exited
from turngate.core.dialect import TURNGATE, Dialect
from turngate.core.hooks.kinds import CommandHook, Hook
from turngate.core.verdict.verdict import Verdict
from turngate.engine import ask_hooks
from turngate.ports import HookRunContext, Shell, World
from turngate.shells.ssh.shell import SshShell

MakeShell = Callable[[], Shell]
PATH = "/usr/local/bin:/usr/bin:/bin"


@asynccontextmanager
async def opened(make_shell: MakeShell) -> AsyncIterator[Shell]:
    shell = make_shell()
    try:
        yield shell
    finally:
        if isinstance(shell, SshShell):
            await shell.close()


def run(
    make_shell: MakeShell,
    command: str,
    /,
    *,
    cwd: Path | str = "/",
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    **fields: Any,
) -> Exited:
    """Run one command to its end."""

    async def scenario() -> Exited:
        async with opened(make_shell) as shell:
            return await start(shell, command, cwd=cwd, stdin=stdin, env=env, **fields)

    return asyncio.run(scenario())


def start(
    shell: Shell,
    command: str,
    /,
    *,
    cwd: Path | str = "/",
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    live: HookRunContext | None = None,
    **fields: Any,
) -> Awaitable[Exited]:
    complete = {"PATH": PATH, **(env or {})}
    return shell.run(
        CommandHook(command, **fields), cwd=str(cwd), env=complete, stdin=stdin, live=live or HookRunContext()
    )


async def ask_over(
    shell: Shell, project: Path, *hooks: Hook | str, dialect: Dialect = TURNGATE, **fields: Any
) -> Verdict:
    """Run these hooks for one Stop, over a shell, with the environment of the machine where they run."""
    environ = await shell.environment() if isinstance(shell, SshShell) else dict(os.environ)
    world = World(shell, str(project), environ=environ)
    event = stop_event(cwd=str(project), **fields)
    return await ask_hooks(event, settings(*hooks, dialect=dialect), world)


def ask_with(make_shell: MakeShell, project: Path, *hooks: Hook | str, **fields: Any) -> Verdict:
    async def scenario() -> Verdict:
        async with opened(make_shell) as shell:
            return await ask_over(shell, project, *hooks, **fields)

    return asyncio.run(scenario())
