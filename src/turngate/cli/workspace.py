"""The workspace of a command: its project on this machine, or with `--ssh` on another one."""

import argparse
import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from turngate.aio.threads import T, event_loop_in_thread, finish_despite_cancel
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.signals import run_to_end
from turngate.cli.project import plugin_folders
from turngate.core.dialect import ALL_DIALECTS
from turngate.core.settings import Settings
from turngate.ports import World
from turngate.settings.load import load_extra, report_unreachable
from turngate.shells.local import LocalShell
from turngate.trust.load import load_settings


class OpenWorkspace(NamedTuple):
    world: World
    loop: asyncio.AbstractEventLoop | None = None  # of the connection to another machine, in a thread

    def run(self, work: Coroutine[Any, Any, T], then: str) -> T:
        """Return the result of `work`. Raises EndedBySignal, whose message ends with `then`."""
        return run_to_end(work if self.loop is None else _run_in(self.loop, work), then)


@contextmanager
def open_workspace(options: argparse.Namespace, project: str | None) -> Iterator[OpenWorkspace]:
    """Yield where the project of a command is: a folder of this machine, or None for `--ssh`. Raises UsageError."""
    if project is not None:
        yield OpenWorkspace(World(LocalShell(), project))
        return
    if options.settings is not None:
        # Its mistakes are found without a connection.
        load_extra(options.settings, ALL_DIALECTS[options.dialect])
    with event_loop_in_thread() as loop:
        world = asyncio.run_coroutine_threadsafe(connect(options.ssh), loop).result()
        try:
            with report_unreachable(world.files):
                yield OpenWorkspace(world, loop)
        finally:
            asyncio.run_coroutine_threadsafe(world.disconnect(), loop).result()


async def connect(location: str) -> World:
    """Connect to the machine of `--ssh`. Raises UsageError."""
    from turngate.shells.ssh.workspace import parse_ssh_location  # noqa: PLC0415 # lazy: few projects need it

    place = parse_ssh_location(location)
    with show_if_slow(f"connecting to {place.name}"):
        return await World.ssh(place.host, place.path, user=place.user, port=place.port)


def load_given_settings(options: argparse.Namespace, world: World) -> Settings:
    return load_settings(world.project, trust=options.trust, **settings_options(options, world))


def settings_options(options: argparse.Namespace, world: World) -> dict[str, Any]:
    """Return the options of a command that decide which settings are read, as keyword arguments."""
    return {
        "dialect": options.dialect,
        "plugin_dirs": plugin_folders(options.plugin_dir, world.files),
        "extra": options.settings,
        "files": world.files,
    }


async def _run_in(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in another event loop. When cancelled, cancel it there and wait for its end."""

    async def start() -> "asyncio.Task[T]":
        return asyncio.create_task(work)

    task = await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(start(), loop))
    end = asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.wait({task}), loop))
    try:
        await asyncio.shield(end)
    except asyncio.CancelledError:
        loop.call_soon_threadsafe(task.cancel)
        await finish_despite_cancel(end)
        raise
    return task.result()
