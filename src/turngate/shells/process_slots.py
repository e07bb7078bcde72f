"""Limit how many commands run at once, because each one holds file descriptors of this process."""

import asyncio
import resource
from typing import NamedTuple
from weakref import WeakKeyDictionary

FDS_PER_PROCESS = 5  # three pipes, a pidfd, and a share of what starting a process needs
RESERVED_FDS = 128  # for everything else in this process
MIN_SLOTS = 4
MAX_SLOTS = 4096


class _Slots(NamedTuple):
    foreground: asyncio.Semaphore
    background: asyncio.Semaphore  # a separate pool, so background hooks never delay foreground hooks


_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, _Slots] = WeakKeyDictionary()


def process_slot(*, background: bool = False) -> asyncio.Semaphore:
    """Return the semaphore to hold while a command runs; waiters get a slot in order of arrival."""
    loop = asyncio.get_running_loop()
    slots = _slots.get(loop)
    if slots is None:
        total = _slot_count()
        foreground, spare = asyncio.Semaphore(total - total // 4), asyncio.Semaphore(max(1, total // 4))
        slots = _slots[loop] = _Slots(foreground, spare)
    return slots.background if background else slots.foreground


def _slot_count() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_SLOTS
    return max(MIN_SLOTS, min(MAX_SLOTS, (soft - RESERVED_FDS) // FDS_PER_PROCESS))
