"""The hooks of one agent: fires its events, keeps what hooks print, and notifies plugins of a turn's end."""

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

from turngate.agent.conversation import Conversation
from turngate.agent.event_sink import EventSink
from turngate.agent.resources import AgentConfig, SessionResources
from turngate.agent.turn import TurnHalted
from turngate.aio.cancellation import current_task_cancelled
from turngate.core.effects import added_context
from turngate.core.events import Event, SessionStart
from turngate.core.hooks import label
from turngate.core.messages import Message, Usage
from turngate.core.reports import Exited
from turngate.core.session_events import TurnResult
from turngate.core.verdict import HookRun, Stop, Verdict, notices, warnings
from turngate.engine import ask_hooks
from turngate.plugins.handlers import Plugins, StopPayload

Source = Literal["startup", "resume", "clear", "compact"]
MAX_KEPT_OUTPUT_CHARS = 10_000  # of what one hook printed, in the transcript
# The supervisor of a subagent fires the events about its start and its stop.
SUBAGENT_EVENTS = ("PreToolUse", "PermissionRequest", "PostToolUse", "PreCompact", "StopFailure")


class SessionHooks:
    def __init__(
        self, resources: SessionResources, config: AgentConfig, conversation: Conversation, events: EventSink
    ) -> None:
        self.enabled = config.hooks_enabled
        self.start_context: list[str] = []  # what SessionStart hooks add to the system prompt
        self._settings, self._world = resources.settings, resources.world
        self._permissions, self._role = config.permissions, config.role
        self._conversation, self._events = conversation, events
        self._halted: TurnHalted | None = None  # by a SessionStart hook

    def event_fields(self) -> dict[str, Any]:
        """Return the fields that every event has."""
        role = self._role
        return {
            "session_id": self._conversation.session_id,
            "transcript_path": role.parent_transcript if role else self._conversation.path,
            "cwd": self._world.project,
            "permission_mode": self._permissions.mode,
            **({"agent_id": role.agent_id, "agent_type": role.agent_type.name} if role else {}),
        }

    async def fire(self, event: Event) -> Verdict:
        """Run the hooks of one event and keep what they print in the transcript."""
        verdict = await self.ask_hooks(event)
        for run in verdict.runs:
            self._keep_output(run)
        return verdict

    async def ask_hooks(self, event: Event) -> Verdict:
        """Run the hooks of one event; their notices and warnings reach the user whatever they decide."""
        if not self.enabled or (self._role and event.name not in SUBAGENT_EVENTS):
            return Stop()
        verdict = await ask_hooks(event, self._settings, self._world)
        turn = self._events.turn
        if turn is not None:
            turn.hook_runs += verdict.runs
        for text in notices(verdict.runs):
            self._events.notice(text)
        for text in warnings(verdict.runs, self._settings.dialect):
            if turn is None or text not in turn.notices:  # once per turn, however often the hook runs
                self._events.notice(text)
        return verdict

    def _keep_output(self, run: HookRun) -> None:
        """Write a hook's stdout to the transcript, unless the hook asks to suppress it."""
        if isinstance(run.report, Exited) and run.report.stdout.strip() and not run.decision.quiet:
            record = {"type": "hook_output", "event": run.rule.event, "hook": label(run.rule.hook)}
            stdout = run.report.stdout[:MAX_KEPT_OUTPUT_CHARS]
            try:
                self._conversation.transcript.write_record({**record, "stdout": stdout})
            except OSError as error:
                self._events.notice(
                    f"the output of hook {record['hook']} could not be written to the transcript: {error}"
                )

    async def fire_session_start(self, source: Source, model: str) -> None:
        verdict = await self.fire(SessionStart(**self.event_fields(), source=source, model=model))
        added = added_context(verdict.runs, plain=True)
        earlier = self.start_context if source == "compact" else []  # the context of the start still holds
        self.start_context = [*earlier, added] if added and added not in earlier else list(earlier)
        if isinstance(verdict, Stop) and verdict.halted:
            self._halted = TurnHalted(verdict.stop_reason)

    def raise_if_halted(self) -> None:
        """End the turn if a SessionStart hook answered `continue: false`."""
        halted, self._halted = self._halted, None
        if halted is not None:
            raise halted


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
    counts = result.outcome not in ("error", "interrupted")
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
