"""Notify the plugins of a turn's end."""

import asyncio
from collections.abc import Sequence

from turngate.aio.cancellation import current_task_cancelled
from turngate.core.conversation.messages import Message, Usage
from turngate.core.events.plugin_events import StopPayload
from turngate.core.events.session_events import TurnResult
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
