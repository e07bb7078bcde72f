"""The session of one subagent as its lifecycle uses it: made on demand, given prompts, run for one turn at a time."""

import asyncio
from collections.abc import Callable
from typing import Literal

from turngate.aio.threads import run_in_thread
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.messages import Reply, UserMessage
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.events.session_events import TurnResult
from turngate.core.verdict.hook_run import HookOutput
from turngate.core.verdict.tool_effects import added_context
from turngate.subagents.host import SubagentHost, SubagentSession
from turngate.subagents.lifecycle_events import notify_start, started_event
from turngate.subagents.limits import SubagentLimits


class RunSession:
    def __init__(
        self, host: SubagentHost, limits: SubagentLimits, trace: Callable[[str, SubagentRun], None]
    ) -> None:
        self._host = host
        self._limits = limits
        self._trace = trace
        self._session: SubagentSession | None = None
        self._unenforced: list[HookOutput] = []

    async def attempt(self, run: SubagentRun) -> tuple[Literal["ok", "error", "timeout"], str]:
        """Run one turn. Return its outcome and the error, whatever the session raises."""
        seconds = self._limits.seconds
        try:
            async with asyncio.timeout(seconds) as timer:
                session = self._ensure_session(run)
                session.last_result = None
                error = await self._run_turn(session, run)
        except Exception as failure:  # noqa: BLE001 - the failure is this run's outcome
            if isinstance(failure, TimeoutError) and timer.expired():
                return "timeout", f"it took longer than {seconds:g} s"
            return "error", str(failure) or type(failure).__name__
        return ("error", error) if error else ("ok", "")

    async def _run_turn(self, session: SubagentSession, run: SubagentRun) -> str:
        """Run one turn and return its error, or an empty string."""
        await session.open()
        await self._deliver_prompt(session, run)
        messages = session.conversation.messages
        last = messages[-1] if messages else None
        if isinstance(last, Reply) and not last.tool_uses:
            return ""  # the turn was complete when its process died
        try:
            result = await session.run_turn(_inbox_entry(run.prompt, run.id, by_hook=run.by_hook))
        finally:
            self._unenforced += session.last_result.unenforced if session.last_result else ()
        return (result.stop_reason or "it failed") if result.outcome == "error" else ""

    async def _deliver_prompt(self, session: SubagentSession, run: SubagentRun) -> None:
        """Add the prompt to the conversation; fire SubagentStart before the first prompt of a chain."""
        conversation = session.conversation
        if run.id == run.chain and not conversation.has_delivered(run.id):
            self._host.emit(started_event(run), run)
            verdict = await notify_start(self._host, run)
            self._unenforced += verdict.unenforced
            if context := added_context(verdict.runs, plain=False):
                conversation.append(UserMessage(context, "context"))
        conversation.append_once(_inbox_entry(run.prompt, run.id, by_hook=run.by_hook))

    async def deliver_next_prompt(self, run: SubagentRun) -> None:
        """Put the prompt of the run that replaces `run` into the conversation, on disk."""
        self._trace("aborted", run)  # the previous step was cancelled, or had ended by itself
        async with asyncio.timeout(self._limits.settle):
            session = self._ensure_session(run)
            await session.open()
        session.inbox.clear()
        self._trace("cleared", run)
        await self._deliver_prompt(session, run)
        await run_in_thread(session.conversation.sync)
        self._trace("synced", run)
        session.conversation.append_once(_inbox_entry(run.next_prompt, run.next_id, by_hook=run.next_by_hook))
        await run_in_thread(session.conversation.sync)
        self._trace("sent", run)

    @property
    def last_result(self) -> TurnResult | None:
        return self._session.last_result if self._session else None

    @property
    def requests_exhausted(self) -> bool:
        """Whether the chain has made all model requests that it may make."""
        return self._session is not None and self._session.requests_exhausted

    def take_unenforced(self) -> tuple[HookOutput, ...]:
        """Return the gates that were not enforced since the last call."""
        taken, self._unenforced = self._unenforced, []
        return tuple(taken)

    def last_answer(self) -> str:
        """Return the last answer; if it is blank, the last one that is not, marked as earlier."""
        messages = self._session.conversation.messages if self._session else ()
        replies = [message.text for message in messages if isinstance(message, Reply)]
        if replies and replies[-1].strip():
            return replies[-1]
        earlier = next((text for text in reversed(replies) if text.strip()), "")
        return f"[an earlier answer; the last one was empty]\n{earlier}" if earlier else ""

    def sync(self) -> None:
        if self._session:
            self._session.conversation.sync()

    async def close(self) -> None:
        if self._session:
            await self._session.close()

    def _ensure_session(self, run: SubagentRun) -> SubagentSession:
        if self._session is None:
            self._session = self._host.new_session(run)
        return self._session


def _inbox_entry(prompt: str, run: str, *, by_hook: bool) -> InboxEntry:
    return InboxEntry(prompt, "stop_hook" if by_hook else "user", key=run)
