"""How many commands may run at once: each holds descriptors of ours while it runs, and those are few."""

import asyncio
import resource
from typing import NamedTuple
from weakref import WeakKeyDictionary

EACH = 5  # descriptors of ours: three pipes, a pidfd, and a share of what a start needs
OTHERS = 128  # descriptors for everybody else in this process
LEAST = 4
MOST = 4096


class _Room(NamedTuple):
    waited_for: asyncio.Semaphore
    background: asyncio.Semaphore  # apart: hooks that nobody waits for hold up none that somebody does


_rooms: WeakKeyDictionary[asyncio.AbstractEventLoop, _Room] = WeakKeyDictionary()


def process_slot(*, background: bool = False) -> asyncio.Semaphore:
    """Entered while a command runs; whoever comes when there is no room waits for it, in order."""
    loop = asyncio.get_running_loop()
    room = _rooms.get(loop)
    if room is None:
        most = _most()
        room = _rooms[loop] = _Room(asyncio.Semaphore(most - most // 4), asyncio.Semaphore(max(1, most // 4)))
    return room.background if background else room.waited_for


def _most() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MOST
    return max(LEAST, min(MOST, (soft - OTHERS) // EACH))
