"""The machine of `--ssh`, for a command that has no event loop of its own."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from turngate.aio.threads import event_loop_in_thread
from turngate.cli.progress import show_if_slow
from turngate.errors import UsageError
from turngate.filesystem.files import MachineUnreachable
from turngate.ports import World
from turngate.shells.ssh.workspace import parse_ssh_location


@contextmanager
def connected(location: str) -> Iterator[World]:
    """Connect to another machine; the connection has a thread. Raises UsageError."""
    place = parse_ssh_location(location)
    with event_loop_in_thread() as loop:
        opening = World.ssh(place.host, place.path, user=place.user, port=place.port)
        with show_if_slow(f"connecting to {place.host}"):
            world = asyncio.run_coroutine_threadsafe(opening, loop).result()
        try:
            with reporting_silence(location):
                yield world
        finally:
            asyncio.run_coroutine_threadsafe(world.disconnect(), loop).result()


@contextmanager
def reporting_silence(location: str) -> Iterator[None]:
    """Raise UsageError when the machine stops answering while its files are read."""
    try:
        yield
    except MachineUnreachable as error:
        raise UsageError(f"--ssh {location}: {error}; check the connection, and try again") from None
