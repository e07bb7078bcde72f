"""What subagents may use: their limits, the options of a session for them, and the slots in which they run."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.settings import Settings
from turngate.subagents.git_files import SlotFolder


@frozen(kw_only=True)
class SubagentLimits:
    at_once: int = 8  # subagents of one session that run at once, counted at one depth and below
    on_machine: int = 32  # the same for all processes that share the state folder
    depth: int = 3  # levels of subagents below the main agent
    seconds: float = 3600.0  # for one run
    recoveries: int = 3  # times that another process adopts a run whose owner died
    rapid: int = 2  # of these, how many in quick succession
    announce_tries: int = 5
    announce_expiry: float = 2700.0  # seconds after the run's end
    announce_call: float = 120.0  # seconds for one call of the announcer
    settle: float = 5.0  # seconds to open the session for a new prompt
    wait: float = 1800.0  # seconds that a parent waits for background subagents before it may stop


def limits_from(settings: Settings) -> SubagentLimits:
    at_once, depth, seconds = settings.children_at_once, settings.children_depth, settings.child_seconds
    given: dict[str, Any] = {"at_once": at_once, "depth": depth, "seconds": seconds}
    return SubagentLimits(**{name: value for name, value in given.items() if value is not None})


@frozen(kw_only=True)
class SubagentOptions:
    """How a session runs its subagents; `announcer` and `on_step` are for tests and benchmarks."""

    limits: SubagentLimits | None = None  # None: the limits of the settings
    announcer: Callable[[SubagentRun], Awaitable[None]] | None = None  # called with every result
    on_step: Callable[[str, SubagentRun], None] = lambda *_: None  # called at every step of every run
    any_gates: bool = False  # continue runs of dead processes also if they live under other gates
    runs: str = "here"  # or "workers" or "git", unless the agent type says where its subagents run
    slots: int = 0  # of a worker, which runs what sessions elsewhere have started, if it needs no other
    labels: tuple[str, ...] = ()
    folder: SlotFolder | None = None  # of a worker for a project in git


class ConcurrencySlots:
    """How many subagents of one session run at once; the others wait in the order they came.

    A run competes only with runs at its depth or deeper, so a parent waiting for its subagent cannot starve it.
    """

    def __init__(self, at_once: int) -> None:
        self.at_once = at_once
        self._busy: Counter[tuple[str, int]] = Counter()  # how many runs hold a slot, by session and depth
        self._waiting: list[tuple[str, int, asyncio.Future[None]]] = []  # with session and depth

    def has_room(self, session: str, depth: int) -> bool:
        busy = (count for (owner, level), count in self._busy.items() if owner == session and level >= depth)
        return sum(busy) < self.at_once

    def enter(self, session: str, depth: int) -> None:
        self._busy[session, depth] += 1

    async def wait(self, run: SubagentRun) -> None:
        """Wait for a slot and take it."""
        granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((run.parent, run.depth, granted))
        self._grant()
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():  # granted in the same loop iteration
                self.leave(run)
            raise

    def leave(self, run: SubagentRun) -> None:
        self._busy -= Counter({(run.parent, run.depth): 1})
        self._grant()

    def _grant(self) -> None:
        """Give free slots to waiting runs, the deepest first, because shallower runs wait for those."""
        for session, depth, granted in sorted(self._waiting, key=lambda waiting: -waiting[1]):
            if not granted.done() and self.has_room(session, depth):
                self.enter(session, depth)
                granted.set_result(None)
        self._waiting = [waiting for waiting in self._waiting if not waiting[2].done()]
