"""Limit how many channels of an SSH connection are open at once; the limit follows what the server allows."""

import asyncio
from collections import deque

GROW_AFTER = 50  # channels that were opened since the limit last changed


class ChannelLimit:
    """Waiters get a channel in order of arrival."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._maximum = limit
        self._open = 0
        self._opened = 0  # since the limit last changed
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._pass_on()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # it was this one's turn
                self.release()
            raise

    def take(self) -> None:
        """Take a channel whatever the limit is."""
        self._open += 1

    def release(self) -> None:
        self._open -= 1
        self._pass_on()

    def opened(self) -> None:
        """The server has opened a channel. After many, try one more again."""
        self._opened += 1
        if self._opened >= GROW_AFTER and self.limit < self._maximum:
            self.set_limit(self.limit + 1)

    def shrink(self) -> bool:
        """The server opens no more channels than are open, without the caller's own. Return whether there are others."""
        others = self._open - 1
        self.set_limit(min(self.limit, max(1, others)))
        return others > 0

    def reset(self) -> None:
        """Another connection has channels of its own."""
        self.set_limit(self._maximum)

    def set_limit(self, limit: int) -> None:
        self.limit, self._opened = limit, 0
        self._pass_on()

    def _pass_on(self) -> None:
        """Give the channels that are free to the first waiters."""
        while self._waiters and self._open < self.limit:
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._open += 1
                waiter.set_result(None)
