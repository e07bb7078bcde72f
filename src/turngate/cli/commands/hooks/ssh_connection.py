"""The machine of `--ssh`, for a command that has no event loop of its own."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from turngate.aio.threads import event_loop_in_thread
from turngate.cli.console.progress import show_if_slow
from turngate.ports import World
from turngate.shells.ssh.workspace import parse_ssh_location


@contextmanager
def connected(location: str) -> Iterator[World]:
    """Connect to another machine; the connection has a thread. Raises UsageError."""
    place = parse_ssh_location(location)
    with event_loop_in_thread() as loop:
        opening = World.ssh(place.host, place.path, user=place.user, port=place.port)
        with show_if_slow(f"connecting to {place.name}"):
            world = asyncio.run_coroutine_threadsafe(opening, loop).result()
        try:
            yield world
        finally:
            asyncio.run_coroutine_threadsafe(world.disconnect(), loop).result()
