"""MainSession: the session of the main agent, with the lock of its conversation and the sessions of its subagents.

A session as the host of its subagents: what their supervisor asks for, and the sessions it makes for them.
"""

import contextlib
import os
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from turngate._frozen import frozen
from turngate.agent.agent_config import PermissionMode, Permissions, stricter_mode
from turngate.agent.agent_session import AgentSession, SessionParts
from turngate.agent.background_blocks import Wakes
from turngate.agent.compaction import compact
from turngate.agent.event_sink import EventSink
from turngate.agent.session_hooks import SessionHooks, Source, hook_output_records
from turngate.agent.session_resources import SessionResources
from turngate.agent.session_store import SessionLock
from turngate.agent.tools import TOOLS
from turngate.agent.turn.turn import Turn
from turngate.aio.cancellation import finish_despite_cancel
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.messages import UserMessage
from turngate.core.conversation.subagent_run import SubagentRun, names_of
from turngate.core.events.events import Event, SessionEnd
from turngate.core.events.session_events import SessionEvent, TurnResult
from turngate.core.settings import Settings
from turngate.core.text import quote_name
from turngate.core.verdict.hook_run import HookOutput, HookRun, outputs
from turngate.core.verdict.loop_guard import LoopGuard
from turngate.core.verdict.verdict import Verdict, unenforced, warnings_with_hints
from turngate.errors import UsageError
from turngate.plugins.handlers import PluginContext, Plugins
from turngate.ports import PreparedModel, World, describe_killed, ssh_option
from turngate.settings.agent_types import AgentType
from turngate.state.paths import main_transcript_path, session_folder
from turngate.subagents.host import SubagentRole, SubagentSession, subagent_transcript_path
from turngate.subagents.manager import SubagentManager, SubagentOptions
from turngate.transcript.writer import Transcript


@frozen
class SessionHost:
    """Implements `SubagentHost`. Runs of another session, which this process recovered, are hosted as well."""

    session_id: str
    resources: SessionResources
    plugins: Plugins
    hooks: SessionHooks
    events: EventSink
    agent_types: Mapping[str, AgentType]
    permissions: Permissions
    create_session: Callable[[SubagentRun, SubagentRole], SubagentSession]

    @property
    def project(self) -> str:
        return self.resources.project

    @property
    def settings(self) -> Settings:
        return self.resources.settings

    @property
    def world(self) -> World:
        return self.resources.world

    @property
    def hooks_run(self) -> bool:
        return self.hooks.enabled and not self.world.in_hook

    def permission_mode(self, run: SubagentRun) -> PermissionMode:
        return stricter_mode(self.permissions.mode, run.launch.get("permission_mode"))

    def new_session(self, run: SubagentRun) -> SubagentSession:
        tools = run.launch.get("tools")
        role = SubagentRole(
            agent_id=run.agent_id,
            agent_type=self._agent_type(run),
            depth=run.depth,
            transcript=self.transcript_path(run),
            parent_transcript=self.parent_transcript_path(run),
            tools=tuple(map(str, tools)) if isinstance(tools, list) else None,
        )
        return self.create_session(run, role)

    def _agent_type(self, run: SubagentRun) -> AgentType:
        """Return the agent type of a run; if it is missing, the row still has the tools."""
        name = str(run.launch.get("kind") or run.agent_type)
        if name and name not in self.agent_types:
            lost = f"the instructions of its agent type {name}, which is not known here"
            self.notice(f"subagent {run.name} continues without {lost}")
        approvals = run.launch.get("approvals")
        agent_type = self.agent_types.get(name) or AgentType(run.agent_type)
        return agent_type.at_stage(approvals if type(approvals) is int else 0)

    def transcript_path(self, run: SubagentRun) -> str:
        return subagent_transcript_path(self.resources.state, run.parent, run.agent_id)

    def parent_transcript_path(self, run: SubagentRun) -> str:
        return main_transcript_path(self.resources.state, run.parent, self.settings.dialect.name)

    def changing_tools(self) -> Collection[str]:
        return [name for name, tool in TOOLS.items() if tool.changes]

    async def ask_hooks(self, event: Event, run: SubagentRun) -> Verdict:
        verdict = await self.hooks.ask_hooks(event, counts=False)
        if printed := hook_output_records(verdict.runs):
            self._keep_output(printed, self.transcript_path(run), run.parent)
        return verdict

    def _keep_output(self, printed: Sequence[Mapping[str, str]], path: str, session_id: str) -> None:
        """Write hook output to the transcript of a subagent, whose session another process may have opened."""
        try:
            transcript = Transcript(path, session_id, self.project, machine=self.world.machine)
        except UsageError as error:
            names = ", ".join(quote_name(record["hook"]) for record in printed)
            self.notice(f"the output of hook {names} could not be written to the transcript: {error}")
            return
        try:
            self.hooks.keep_output(printed, transcript)
        finally:
            transcript.close()

    def emit(self, event: SessionEvent, run: SubagentRun) -> None:
        if run.parent == self.session_id:
            self.events.add_lifecycle_event(event)
        else:  # its own session counts it, when it gets the report
            self.events.emit(event)

    def notice(self, text: str) -> None:
        self.events.notice(text)

    def warn(self, run: SubagentRun, text: str, hint: str | None = None) -> None:
        entry = {"kind": "notice", "event": "SubagentStop", "agent_id": run.agent_id, "run_id": run.id}
        self.resources.journal.record(run.parent, {**entry, "text": text})
        self.events.notice(text, hint)


EndReason = Literal["clear", "prompt_input_exit", "other"]


class MainSession(AgentSession):
    """Belongs to a `Session`, which shows what users need of it."""

    def __init__(
        self,
        parts: SessionParts,
        plugins: Plugins,
        children: SubagentOptions,
        agent_types: Mapping[str, AgentType],
        problems: Sequence[str],
    ) -> None:
        resources, self._problems = parts.resources, problems
        host = SessionHost(
            parts.id,
            resources,
            plugins,
            parts.hooks,
            parts.events,
            agent_types,
            parts.config.permissions,
            self._for_subagent,
        )
        manager = SubagentManager(host, parts.id, resources.state, agent_types, children)
        super().__init__(parts, manager, plugins)
        self.folder = session_folder(self.state, self.id)
        self._lock = SessionLock(os.path.join(self.folder, "lock"))
        plugins.bind(PluginContext(self.id, self.project, self.state, self.settings))
        running, wake = resources.world.awaited, self.announcements.wake
        self.wakes = Wakes(running, self._current_guard, self.inbox, self.events.notice, wake)
        resources.late_context.on_rewake_end = self._on_rewake_end

    def _for_subagent(self, run: SubagentRun, role: SubagentRole) -> AgentSession:
        model = self.resources.model_named(str(run.launch.get("model", "")), self.model)
        environ, enabled = self.tool_context.environ, self.hooks.enabled
        config = replace(self._config, model=self.model, environ=environ, hooks_enabled=enabled)
        config = config.from_launch(run.launch, role, model=model)
        events = EventSink(self.events.forward_from_subagent)
        parts = SessionParts.create(run.parent, self.resources, config, events)
        return AgentSession(parts, self.subagents, Plugins())

    # Open

    async def _open(self, source: Source | None) -> None:
        if not self.conversation.is_open:
            self._lock.acquire()
            if isinstance(self.model, PreparedModel):
                self.model.prepare()  # while the transcript is read and SessionStart hooks run
        await super()._open(source)

    async def _has_results(self) -> bool:
        self._report_problems()
        return await self.subagents.open()

    def _report_problems(self) -> None:
        if self.resources.world.in_hook and self.hooks.enabled:
            self.events.notice("this session was started from a hook, so no hooks run")
        for problem in self.settings.not_loaded:
            self.events.notice(str(problem), problem.hint)
        for text in self._problems:
            self.events.notice(text)

    # Turns

    async def send(self, prompt: str, *, skip_stop_hook: bool = False) -> TurnResult:
        """Run one turn: from the user's message until control returns to the user."""
        return await self.run_prompt(InboxEntry(prompt), skip_stop_hook=skip_stop_hook)

    async def run_prompt(self, entry: InboxEntry, *, skip_stop_hook: bool = False) -> TurnResult:
        """Run one turn for a message of the user, or for a slash command."""
        self.wakes.count_anew()
        # The user's message runs the agent anyway, so these do not count.
        self.inbox.put_all(replace(entry, counts=False) for entry in self.wakes.take())
        return await self.run_turn(entry, skip_stop_hook=skip_stop_hook)

    def queue(self, prompt: str) -> None:
        """Add a message while a turn runs; it is answered after the one that is being answered."""
        self.wakes.count_anew()
        self.inbox.put(InboxEntry(prompt, waited=True))
        self.announcements.wake()

    def take_queued(self) -> list[str]:
        """Remove the messages that wait, and return them."""
        return [entry.text for entry in self.inbox.take("user")]

    def stream(self, prompt: str) -> AsyncIterator[SessionEvent]:
        """Run one turn and yield its events; the last one is its `TurnEnd`."""
        return self.events.stream(lambda: self.send(prompt))

    async def answer_background(self) -> TurnResult | None:
        """Run a turn with the results of commands and the blocks of hooks in the background, if there are any.

        While a question or a checkpoint is open, they wait for its answer.
        """
        if self.conversation.waits_for_user:
            return None
        wakes = self.wakes.take()  # if the limit was reached meanwhile, they are dropped
        entries = [*self.background.take_ended(), *(wakes if self._guard.below_limit else ())]
        if not entries:
            return None
        self.inbox.put_all(entries[1:])
        return await self.run_turn(entries[0])

    def _current_guard(self) -> LoopGuard:
        return self.turn.guard if self.turn else self._guard

    def _awaited_wakes(self) -> Wakes | None:
        has_user = self.permissions.permit is not None
        return None if has_user or not self.settings.dialect.wakes_without_user else self.wakes

    def _on_rewake_end(self, run: HookRun) -> None:
        """A hook with `asyncRewake` has ended: its block wakes the agent, its failure is reported."""
        self.wakes.add(run)
        if not_enforced := outputs(unenforced((run,), self.settings.dialect)):
            self._add_unenforced(not_enforced)
            for text, hint in warnings_with_hints((run,), self.settings.dialect):
                self.events.notice(text, hint)

    def interrupt(self) -> None:
        """End the turn, whatever it is doing; nothing of it runs afterwards."""
        self._turns.interrupt()

    async def compact(self, instructions: str = "") -> bool:
        """Replace the conversation by its summary, between two turns."""
        return await compact(self._loop_context(Turn(self._new_guard())), "manual", instructions)

    # Reset and close

    async def reset(self) -> None:
        """Forget the conversation; the next message starts a new one."""
        if self.turn is not None:
            raise UsageError("this session is in the middle of a turn; `interrupt` ends it")
        await self.open()
        await self.subagents.kill_all(self.id, self._config.agent_id, "session-reset")
        await self.background.kill(self.background.alive)
        self.background.take_ended()
        self.wakes.take()
        await self.announcements.discard()
        await self._fire_session_end("clear")
        self.conversation.clear()
        self.events.forget_missed()
        self.inbox.clear()
        self._guard, self._unfinished = self._new_guard(), 0
        await self._fire_session_start("clear")

    async def close(self, reason: EndReason = "other") -> None:
        """Fire SessionEnd and release the session; hooks in the background get `background_grace` seconds."""
        await self._turns.stop()
        self.wakes.close()
        for command in await self.background.close():
            self.events.notice(f"background command killed because it was still running: {command}")
        if self.conversation.is_open:
            self._keep_reports()
            await self._end(reason)
        else:
            await finish_despite_cancel(self._close_all())

    def _keep_reports(self) -> None:
        """Write the reports of commands that wait for an answer to the transcript: the next process cannot ask them."""
        for entry in (*self.inbox.take("background"), *self.background.take_ended()):
            with contextlib.suppress(OSError):  # a full disk must not keep the session open
                self.conversation.append(UserMessage(entry.text, entry.origin))

    async def _end(self, reason: EndReason) -> None:
        try:
            if reason == "prompt_input_exit":
                await self.subagents.kill_all(self.id, self._config.agent_id, "the user has left")
            await self._fire_session_end(reason)
        finally:
            try:
                await self._end_background_hooks()
            finally:
                await finish_despite_cancel(self._close_all())

    async def _fire_session_end(self, reason: EndReason) -> None:
        """Fire SessionEnd; a hook that was not enforced counts for `strict`, which judges the last turn."""
        verdict = await self.hooks.fire(SessionEnd(**self.hooks.event_fields(), reason=reason))
        self._add_unenforced(verdict.unenforced)

    def _add_unenforced(self, hooks: Sequence[HookOutput]) -> None:
        """Add hooks that were not enforced to the result of the turn, or of the last one."""
        if self.turn is not None:
            self.turn.unenforced += hooks
        elif self.last_result is not None and hooks:
            last = self.last_result
            self.last_result = replace(last, unenforced=(*last.unenforced, *hooks))

    async def _end_background_hooks(self) -> None:
        world, last = self.resources.world, self.last_result
        if last is not None and last.ended_by == "interrupt":
            world.awaited.clear()  # the user does not wait for hooks with `asyncRewake` either
        if await world.close(self.settings.dialect.background_grace):
            self.events.notice(describe_killed(world))

    async def _close_all(self) -> None:
        self._report_unfinished()
        await self.subagents.close()
        self._release()
        await self.resources.close(self.model, notice=self.events.notice)
        if self.resources.journal.fault:
            self.events.notice(self.resources.journal.fault)

    def _report_unfinished(self) -> None:
        if runs := self.announcements.running_in_background():
            count = "1 subagent has" if len(runs) == 1 else f"{len(runs)} subagents have"
            self.events.notice(
                f"{count} not finished: {names_of(runs)}; continue with `turngate run {ssh_option(self.resources.world)}--resume --session {self.id}`"
            )

    def _release(self) -> None:
        super()._release()
        self._lock.release()
