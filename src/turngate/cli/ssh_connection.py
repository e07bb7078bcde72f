"""The machine of `--ssh`, for a command that has no event loop of its own."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from turngate.cli.progress import show_if_slow
from turngate.errors import UsageError
from turngate.filesystem.files import MachineUnreachable
from turngate.ports import World
from turngate.ssh_workspace import parse_ssh_location


@contextmanager
def connected(location: str) -> Iterator[World]:
    """Connect to another machine; the connection has a thread. Raises UsageError."""
    place = parse_ssh_location(location)
    with asyncio.Runner() as runner, _loop_thread(runner.get_loop()) as loop:
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


@contextmanager
def _loop_thread(loop: asyncio.AbstractEventLoop) -> Iterator[asyncio.AbstractEventLoop]:
    thread = threading.Thread(target=loop.run_forever, name="ssh", daemon=True)
    thread.start()
    try:
        yield loop
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
