"""Runs the turns of a session, one at a time: each as a task that can be interrupted, and finished however it ends.

Notify the plugins of a turn's end.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turngate.agent.event_sink import EventSink
from turngate.agent.turn.loop import ContinuationLoop
from turngate.aio.cancellation import current_task_cancelled, finish_despite_cancel
from turngate.core.conversation.inbox import Inbox, InboxEntry
from turngate.core.conversation.messages import Message, Usage
from turngate.core.events.plugin_events import StopPayload
from turngate.core.events.session_events import Notice, TurnEnd, TurnResult, blocked_subagents_json
from turngate.core.verdict.loop_guard import EndTurn
from turngate.errors import UsageError
from turngate.plugins.handlers import Plugins


class PluginNotifier:
    """Notifies the plugins of a turn's end, as a task of its own that can be cancelled."""

    def __init__(self, plugins: Plugins) -> None:
        self._plugins = plugins
        self._task: asyncio.Task[list[str]] | None = None

    def cancel(self) -> bool:
        """Return False if no handler is running."""
        return self._task is not None and self._task.cancel()

    async def notify(
        self, result: TurnResult, messages: Sequence[Message], elapsed: float, *, notify_stop: bool
    ) -> Sequence[str]:
        """Notify the plugins once, at the end of a turn. Return what went wrong in their handlers."""
        self._task = asyncio.create_task(self._notify(result, messages, elapsed, notify_stop=notify_stop))
        try:
            return await self._task
        except asyncio.CancelledError:
            if current_task_cancelled():
                raise
            return ["the plugins were interrupted while they were notified of the turn's end"]
        finally:
            self._task = None

    async def _notify(
        self, result: TurnResult, messages: Sequence[Message], elapsed: float, *, notify_stop: bool
    ) -> list[str]:
        await self._plugins.notify("conversation", tuple(messages))
        if notify_stop:
            await self._plugins.notify("stop", _stop_payload(result, elapsed))
        return self._plugins.take_errors()


def _stop_payload(result: TurnResult, elapsed: float) -> StopPayload:
    counts = result.success  # document 001: `result.success ? result.data.usage : Usage.empty()`
    return StopPayload(
        session_id=result.session_id,
        result=result,
        usage=result.usage if counts else Usage(),
        turns_count=result.model_requests if counts else 0,
        tool_calls_count=result.tool_calls if counts else 0,
        duration=elapsed if counts else 0,
        model=result.model.replace(":", "/", 1),
        continuations=result.continuations,
        ended_by=result.ended_by,
        partial_usage=result.usage,
        elapsed=elapsed,
    )


class TurnRunner:
    """`record` adds a line to the session's journal; a subagent's turns have none, its supervisor records its stop."""

    def __init__(
        self,
        events: EventSink,
        inbox: Inbox,
        plugins: Plugins,
        record: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.last_result: TurnResult | None = None
        self._events, self._inbox = events, inbox
        self._record = record or (lambda _: None)
        self._notifier = PluginNotifier(plugins)
        self._task: asyncio.Task[EndTurn] | None = None
        self._over: asyncio.Future[None] | None = None  # done once the turn is finished

    @property
    def in_loop(self) -> bool:
        """True while the loop of a turn runs, False while its end is written and the plugins are notified."""
        return self._task is not None

    async def run(self, loop: ContinuationLoop, entry: InboxEntry, *, notify_stop: bool) -> TurnResult:
        if self._events.turn is not None:
            raise UsageError("this session is in the middle of a turn; `queue` adds a message to it")
        self._events.begin_turn(loop.context.turn)
        self._over = over = asyncio.get_running_loop().create_future()
        try:
            return await self._run(loop, entry, notify_stop=notify_stop)
        finally:
            over.set_result(None)

    async def _run(self, loop: ContinuationLoop, entry: InboxEntry, *, notify_stop: bool) -> TurnResult:
        self._task = asyncio.create_task(loop.run(entry))
        cancelled = None
        try:
            end = await self._task
        except asyncio.CancelledError as error:
            end = EndTurn("interrupt")
            cancelled = error if current_task_cancelled() else None  # the caller itself is cancelled
        except BaseException:  # a bug, or a listener's error: finish the turn before raising
            self._task = None
            await finish_despite_cancel(self._finish(loop, EndTurn("error"), notify_stop=notify_stop))
            raise
        finally:
            self._task = None
        result = await finish_despite_cancel(self._finish(loop, end, notify_stop=notify_stop))
        if cancelled is not None:
            raise cancelled
        return result

    async def _finish(self, loop: ContinuationLoop, end: EndTurn, *, notify_stop: bool) -> TurnResult:
        await loop.end_subagents(end.ended_by == "interrupt")
        turn, conversation = loop.context.turn, loop.context.conversation
        try:
            self._inbox.drop_continuations()
            self._write_end(loop, end)
            result = self.last_result = turn.result(
                end,
                session_id=conversation.session_id,
                transcript_path=conversation.path,
                model=loop.context.model.name,
                question=conversation.question,
                checkpoint=conversation.checkpoint,
            )
            self._record_end(result, end)
            for error in await self._notifier.notify(
                result, conversation.messages, turn.elapsed, notify_stop=notify_stop
            ):
                self._record({"kind": "notice", "event": "Stop", "text": error})
                self._events.emit(Notice(error))
        finally:
            self._events.turn = None
        self._events.emit(TurnEnd(result))
        return result

    def _record_end(self, result: TurnResult, end: EndTurn) -> None:
        blocked = blocked_subagents_json(result)
        if result.hook_runs or blocked:  # without hooks there is nothing to look up in the journal
            fields = {"ended_by": end.ended_by, "continuations": result.continuations}
            reason = end.notice or end.stop_reason
            more = {"blocked_subagents": blocked} if blocked else {}
            self._record({"kind": "turn_end", **fields, "reason": reason, **more})

    def _write_end(self, loop: ContinuationLoop, end: EndTurn) -> None:
        conversation = loop.context.conversation
        if conversation.is_open:
            try:
                conversation.end_turn(end.ended_by, end.notice or end.stop_reason)
            except OSError as error:  # the turn ends without its record
                self._events.notice(f"the end of the turn could not be written to the transcript: {error}")

    def interrupt(self) -> None:
        """Cancel the turn, whatever it is doing; nothing of it runs afterwards."""
        if self._task is not None and self._task.cancel():
            self._inbox.drop_continuations()
        if self._notifier.cancel():
            self._inbox.drop_continuations()

    async def stop(self) -> None:
        """Interrupt the turn and wait until it is finished."""
        while self._over is not None and not self._over.done():
            self.interrupt()
            await asyncio.wait({self._over})
