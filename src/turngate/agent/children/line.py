"""Who may run: so many children of one parent at once, and the others wait in line."""

import asyncio
from collections import Counter, deque

Family = tuple[str, str]  # the session, and the child of it, that a run belongs to


class Line:
    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._busy: Counter[Family] = Counter()
        self._waiting: dict[Family, deque[asyncio.Future[None]]] = {}

    def has_room(self, family: Family) -> bool:
        return self._busy[family] < self.at_once

    def enter(self, family: Family) -> None:
        self._busy[family] += 1

    async def wait(self, family: Family) -> None:
        """Returns when there is room, and the room is taken."""
        if self.has_room(family) and family not in self._waiting:
            self.enter(family)
            return
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(family, deque()).append(called)
        try:
            await called
        except asyncio.CancelledError:
            if not called.cancelled():  # it was called in the same moment
                self.leave(family)
            raise

    def leave(self, family: Family) -> None:
        self._busy[family] -= 1
        line = self._waiting.get(family, deque())
        while line and self.has_room(family):
            called = line.popleft()
            if not called.done():
                self.enter(family)
                called.set_result(None)
        if not line:
            self._waiting.pop(family, None)
        if not self._busy[family]:
            del self._busy[family]
