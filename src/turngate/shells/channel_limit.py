"""Limit how many channels of an SSH connection are open at once; the limit may shrink while it is used."""

import asyncio
from collections import deque


class ChannelLimit:
    """Waiters get a channel in order of arrival."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._open = 0
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        while self._open >= self.limit:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.append(waiter)
            try:
                await waiter
            except asyncio.CancelledError:
                if waiter.done() and not waiter.cancelled():  # it was this one's turn
                    self._wake_next()
                raise
        self._open += 1

    def take(self) -> None:
        """Take a channel whatever the limit is."""
        self._open += 1

    def release(self) -> None:
        self._open -= 1
        self._wake_next()

    def shrink(self) -> bool:
        """The server opens no more channels than are open, without the caller's own. Return whether there are others."""
        others = self._open - 1
        self.limit = max(1, others)
        return others > 0

    def _wake_next(self) -> None:
        while self._waiters:
            waiter = self._waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
