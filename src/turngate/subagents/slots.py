"""Who may run: so many children of one session at once, and the others wait in line.

Who waits for a child of its own must not keep that child from running: only runs as deep, or deeper, take its room.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Mapping

from turngate.core.subagent_run import SubagentRun


class ConcurrencySlots:
    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._busy: dict[str, Counter[int]] = {}  # by session: how many run at each depth
        self._waiting: dict[str, dict[int, deque[asyncio.Future[None]]]] = {}

    def has_room(self, run: SubagentRun) -> bool:
        return self._room(run.parent, run.depth)

    def enter(self, run: SubagentRun) -> None:
        self._enter(run.parent, run.depth)

    async def wait(self, run: SubagentRun) -> None:
        """Returns when there is room, and the room is taken."""
        line = self._waiting.setdefault(run.parent, {}).setdefault(run.depth, deque())
        called: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        line.append(called)
        self._call(run.parent)
        try:
            await called
        except asyncio.CancelledError:
            if not called.cancelled():  # it was called in the same moment
                self.leave(run)
            raise

    def leave(self, run: SubagentRun) -> None:
        busy = self._busy[run.parent]
        busy[run.depth] -= 1
        self._call(run.parent)
        if not busy.total():
            del self._busy[run.parent]

    def _room(self, session: str, depth: int) -> bool:
        busy: Mapping[int, int] = self._busy.get(session, {})
        return sum(count for level, count in busy.items() if level >= depth) < self.at_once

    def _enter(self, session: str, depth: int) -> None:
        self._busy.setdefault(session, Counter())[depth] += 1

    def _call(self, session: str) -> None:
        """Whoever has room now is called, the deepest first: others wait for them."""
        lines = self._waiting.get(session, {})
        for depth in sorted(lines, reverse=True):
            while lines[depth] and self._room(session, depth):
                called = lines[depth].popleft()
                if not called.done():
                    self._enter(session, depth)
                    called.set_result(None)
            if not lines[depth]:
                del lines[depth]
        if not lines:
            self._waiting.pop(session, None)
