"""Where the events of a session go: to its listener, and into the turn that is running."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from typing import Any

from turngate.agent.turn_state import TurnState
from turngate.core.events.stream_events import (
    HookFinished,
    HookStarted,
    MissedGates,
    Notice,
    SessionEvent,
    SubagentFinished,
    merge_missed,
)
from turngate.core.hooks.kinds import label
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.hints import with_location
from turngate.core.verdict.hook_run import HookRun, outcome, run_message
from turngate.ports import World


class EventSink:
    """`on_missed` gets each gate that was missed; what is missed between two turns counts for the next one."""

    def __init__(self, listener: Callable[[SessionEvent], None] | None, location: str = "") -> None:
        """`location` is that of a project on another machine; what the user is told to do is about it."""
        self.listener, self._location = listener, location
        self.on_missed: Callable[[MissedGates], None] = lambda _: None
        self.turn: TurnState | None = None
        self._missed_before = MissedGates()  # the next turn

    def begin_turn(self, turn: TurnState) -> None:
        self.turn = turn
        turn.add_missed(self._missed_before)
        self.forget_missed()

    def forget_missed(self) -> None:
        self._missed_before = MissedGates()

    def emit(self, event: SessionEvent) -> None:
        if self.listener:
            self.listener(event)

    def notice(self, text: str, hint: str | None = None) -> None:
        if self.turn:
            self.turn.notices.append(text)
        self.emit(Notice(text, hint and with_location(hint, self._location)))

    def watch_hook(self, settings: Settings, world: World, rule: Rule, run: HookRun | None) -> None:
        """`World.watch`: called without a run when a hook starts, and with it when the hook has finished."""
        name = label(rule.hook)
        if run is None:
            self.emit(
                HookStarted(rule.event, name, settings.timeout_of(rule), partial(world.last_line, name))
            )
        else:
            self.emit(HookFinished(rule.event, name, outcome(run), run.seconds, run_message(run)))

    def add_missed(self, missed: MissedGates) -> None:
        self.on_missed(missed)  # first: a crash must not forget it
        self.restore_missed(missed)

    def restore_missed(self, missed: MissedGates) -> None:
        """Add gates that this turn has missed, or the one that an earlier process did not finish."""
        if self.turn is not None:
            self.turn.add_missed(missed)
        else:
            self._missed_before = merge_missed((self._missed_before, missed))

    def add_subagent(self, finished: SubagentFinished) -> None:
        if finished.is_blocked or finished.unenforced:
            self.add_missed(MissedGates(subagents=(finished,)))
        elif self.turn is not None:
            self.turn.add_subagent(finished)

    def forward_from_subagent(self, event: SessionEvent) -> None:
        """Pass on the notices of a subagent's own session; its gates that were not enforced are in its row."""
        if isinstance(event, Notice):
            self.notice(event.text, event.hint)

    async def stream(self, work: Callable[[], Coroutine[Any, Any, object]]) -> AsyncIterator[SessionEvent]:
        """Yield the events that occur while `work` runs, instead of passing them to the listener."""
        events: asyncio.Queue[SessionEvent | None] = asyncio.Queue()
        listener, self.listener = self.listener, events.put_nowait
        task = asyncio.create_task(work())
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            await task  # raises what went wrong
        finally:
            self.listener = listener
            task.cancel()
            await asyncio.wait({task})
