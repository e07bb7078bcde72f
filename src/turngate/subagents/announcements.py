"""Results of subagents on their way into the conversation of the agent that started them."""

import asyncio
from collections.abc import Callable
from typing import Any

from turngate.aio.threads import run_in_thread
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.events.stream_events import SubagentFinished
from turngate.core.text import quote_name
from turngate.errors import TurngateError
from turngate.subagents.notifications import finished_event, waiting_agent
from turngate.subagents.supervisor import Supervisor


class Announcements:
    """One per agent: a session's main agent, or one of its subagents."""

    def __init__(
        self,
        supervisor: Supervisor,
        session_id: str,
        agent_id: str,
        has_delivered: Callable[[str], bool],
        notice: Callable[[str], None],
        on_finished: Callable[[SubagentFinished], None],
    ) -> None:
        self._supervisor = supervisor
        self._session_id, self._agent_id = session_id, agent_id
        self._has_delivered, self._notice, self._on_finished = has_delivered, notice, on_finished
        self._changed = False
        self._wake = asyncio.Event()
        self._queued: set[str] = set()  # keys of entries that are in the inbox, not yet in the conversation
        supervisor.listeners[agent_id] = self.on_change

    def on_change(self) -> None:
        """A subagent of this agent has changed its state."""
        self._changed = True
        self._wake.set()

    def wake(self) -> None:
        """End `wait_for_change`: the agent has something else to do."""
        self._wake.set()

    async def take_new(self) -> list[InboxEntry]:
        """Return the results that have arrived, each of them once."""
        if not self._changed:
            return []
        self._changed = False
        try:
            runs = await self._unread()
        except TurngateError as error:
            self._notice(str(error))
            return []
        except BaseException:
            self._changed = True  # an interrupt must not lose a result
            raise
        new = [run for run in runs if run.chain not in self._queued]
        self._queued.update(run.chain for run in new)
        return [
            InboxEntry(run.announcement, "subagent", key=run.chain, waiting=waiting_agent(run)) for run in new
        ]

    async def _unread(self) -> list[SubagentRun]:
        """Read the registry; a result that the conversation has already is marked as delivered there too."""
        context = await self._supervisor.connect()
        unread = []
        for run in await run_in_thread(context.registry.inbox, self._session_id, self._agent_id):
            if not self._supervisor.is_own(run):
                continue
            if self._has_delivered(run.chain):
                self._report(run, context.owner)
                await context.call(context.registry.mark_delivered, run.id)
            else:
                unread.append(run)
        return unread

    async def acknowledge(self, key: str) -> None:
        """Report whose result it is, then mark it as delivered. This may fail: the transcript has the key as well."""
        self._queued.discard(key)
        context = await self._supervisor.connect()
        try:
            if run := await context.call(context.registry.find, "last", key):
                self._report(run, context.owner)
                await context.call(context.registry.mark_delivered, run.id)
        except TurngateError as error:
            self._notice(str(error))

    def _report(self, run: SubagentRun, owner: str) -> None:
        """Report whose result has arrived; before it is marked as delivered, because a crash may come in between."""
        finished = finished_event(run)
        self._on_finished(finished)
        if run.owner != owner:  # then another process reported them
            for hook in finished.unenforced:
                name = f"hook {quote_name(hook.hook)} of subagent {finished.label}"
                self._notice(f"{name} was NOT enforced: {hook.said}")

    async def discard(self) -> None:
        """Drop results for a conversation that was reset."""
        await self._supervisor.discard_results()
        self._queued.clear()

    # Subagents in the background

    def running_in_background(self) -> list[SubagentRun]:
        """Return the subagents whose results will arrive as messages, also those that another process runs."""
        return self._supervisor.running_in_background(self._session_id, self._agent_id)

    def background_tasks(self) -> list[dict[str, Any]]:
        """Return the field `background_tasks` of a stop event."""
        return [
            {
                "id": run.agent_id,
                "type": "subagent",
                "status": "running",
                "description": run.label,
                "agent_type": run.agent_type,
            }
            for run in self.running_in_background()
        ]

    @property
    def max_wait(self) -> float:
        """Seconds that the agent waits for its subagents."""
        return self._supervisor.limits.wait

    async def wait_for_change(self, seconds: float) -> bool:
        """Wait for the next change or `wake`. Return False after these seconds."""
        self._wake.clear()
        if self._changed:
            return True
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return False
        return True
