"""AgentSession: the session of one agent, the main agent or a subagent. It opens, runs one turn at a time, and closes."""

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from turngate.agent.agent_config import AgentConfig
from turngate.agent.background import BackgroundCommand, BackgroundCommands, Wakes
from turngate.agent.conversation import Conversation
from turngate.agent.env_file import UnusableEnvFile, env_file, load_exports, send_env_file
from turngate.agent.event_sink import EventSink
from turngate.agent.loop_context import LoopContext
from turngate.agent.session_hooks import SessionHooks, Source
from turngate.agent.session_resources import SessionResources, close_models
from turngate.agent.session_store import SessionLock
from turngate.agent.tools import TOOLS, tools_of_subagent, with_task
from turngate.agent.tools.tool import ToolContext
from turngate.agent.turn import Turn
from turngate.agent.turn_state import TurnState
from turngate.aio.threads import current_task_cancelled, finish_despite_cancel
from turngate.core.constants import EVENTS
from turngate.core.conversation.inbox import Inbox, InboxEntry
from turngate.core.conversation.messages import Message, Usage
from turngate.core.events.plugin_events import StopPayload
from turngate.core.events.stream_events import (
    BackgroundCommandFinished,
    Notice,
    TurnEnd,
    TurnResult,
    blocked_subagents_json,
)
from turngate.core.settings import Settings
from turngate.core.verdict.loop_guard import EndTurn, LoopGuard, new_guard
from turngate.errors import UsageError
from turngate.plugins.handlers import Plugins
from turngate.project.files import Files, MachineUnreachable
from turngate.project.safe_paths import is_inside, is_sensitive
from turngate.settings.agent_types import AgentType
from turngate.settings.load import has_unloaded_hooks
from turngate.subagents.announcements import Announcements
from turngate.subagents.supervisor import Supervisor
from turngate.subagents.task_tool import TaskTool

GUIDES = ("AGENTS.md", "CLAUDE.md")
MAX_GUIDE_CHARS = 40_000

INSTRUCTIONS = """\
You are a coding agent. You work in the folder {project} with the tools that you are given.
Do what the user asks, check your work, and say plainly what you did and what you did not do.
A message that begins with a note about a stop hook comes from the project's own checks, not from the user: take it as
work that is still to be done."""


def system_prompt(project: str, context: Sequence[str], role: str = "") -> str:
    """Return the prompt of an agent; `context` are the guides of the project, and what hooks have added."""
    return "\n\n".join(part for part in (INSTRUCTIONS.format(project=project), role, *context) if part)


def read_guides(project: str, files: Files) -> tuple[str, ...]:
    """Return the guides of a project for the prompt. Raises MachineUnreachable."""
    files = files.snapshot([os.path.join(project, name) for name in GUIDES])
    return tuple(_guide(project, name, files) for name in GUIDES)


def _guide(project: str, name: str, files: Files) -> str:
    """Return a regular file of the project: a link could lead to a secret, and a pipe would block."""
    path = os.path.join(project, name)
    try:
        if not files.lexists(path):
            return ""
        path, folder = files.resolve(path), files.resolve(project)
        if not is_inside(path, folder) or is_sensitive(os.path.relpath(path, folder)):
            return ""
        with files.open(path)[0] as file:
            text = file.read(4 * MAX_GUIDE_CHARS).decode("utf-8", "replace")[:MAX_GUIDE_CHARS].strip()
    except OSError:
        return ""
    return f"The project's {name}:\n{text}" if text else ""


class AgentSession:
    """The session of one agent. `lock`: the registry gives a subagent's run one owner, so it has none."""

    def __init__(
        self,
        session_id: str,
        resources: SessionResources,
        config: AgentConfig,
        events: EventSink,
        subagents: Supervisor,
        plugins: Plugins,
        *,
        lock: SessionLock | None = None,
        problems: Sequence[str] = (),
    ) -> None:
        self.id, self.resources, self.config, self.events = session_id, resources, config, events
        self.subagents, self.plugins, self._lock, self._problems = subagents, plugins, lock, problems
        self.project, self.state = resources.world.project, resources.state
        self.model, self.role, self.permissions = config.model, config.role, config.permissions
        self.last_result: TurnResult | None = None
        self.inbox, role = Inbox(), config.role
        self.conversation = Conversation(
            role.transcript if role else resources.main_transcript,
            session_id,
            self.project,
            subagent={"agentId": config.agent_id, "agentType": role.agent_type.name} if role else None,
            machine=resources.world.machine,
        )
        self.hooks = SessionHooks(resources, config, self.conversation, events)
        self.guard = self.new_guard()  # since the user's last message, whichever turn or process it was in
        self._opening = asyncio.Lock()
        self._task: asyncio.Task[EndTurn] | None = None  # the loop of a turn
        self._notifying: asyncio.Task[list[str]] | None = None  # the plugins, of a turn's end
        self._over: asyncio.Future[None] | None = None  # done once the turn is finished
        self._guides: tuple[str, ...] = ()  # of the project, as they were read last
        self._lacks_guides = False  # the machine of the project did not answer
        self._start_source: Source | None = None  # of a SessionStart whose hooks have not run to their end
        self._chain_requests = 0  # model requests of a subagent since its last prompt that is not a redirect
        self._unfinished = 0  # continuations of a turn that an earlier process did not finish
        self.conversation.on_result_delivered = subagents.result_delivered
        events.on_missed = self.conversation.keep_missed
        told = self.conversation.has_delivered, events.notice, events.add_subagent
        self.announcements = Announcements(subagents, session_id, config.agent_id, *told)
        self.wakes = Wakes(
            resources.world.awaited,
            lambda: self.turn.guard if self.turn else self.guard,
            self.inbox,
            events.notice,
            self.announcements.wake,
        )
        self.background = BackgroundCommands(self._on_command_end)
        self.task_tool = TaskTool(
            supervisor=subagents,
            session_id=session_id,
            agent_id=config.agent_id,
            depth=config.depth,
            in_background=self.settings.dialect.subagents_in_background,
            launch=self._launch,
            on_result=events.add_subagent,
            count_approvals=self.conversation.count_approvals,
        )
        self.tool_context = ToolContext(
            self.project,
            {**config.environ, **self.settings.env},
            tuple(config.extra_paths),
            background=self.background,
            start_subagent=self.task_tool.start,
            world=resources.world,
        )
        tools = tools_of_subagent(role.agent_type, role.tools) if role else TOOLS
        has_task = config.depth < subagents.limits.depth
        self.tools = with_task(tools, subagents.agent_types if has_task else None)

    # Open

    async def open(self, source: Source | None = None) -> None:
        """Read the conversation and fire SessionStart; a main session is locked for this process first."""
        async with self._opening:
            if not self.conversation.is_open or self._start_source is not None:
                await self._open(source)

    async def _open(self, source: Source | None) -> None:
        if self._lock is not None and not self.conversation.is_open:
            self._lock.acquire()
            if prepare := getattr(self.model, "prepare", None):
                prepare()  # while the transcript is read and SessionStart hooks run
        try:
            with contextlib.suppress(MachineUnreachable):  # the first tool call reports it
                await self.tool_context.prepare()
            if not self.conversation.is_open:
                await self._read_conversation(source)
            if self._start_source is not None:
                await self.fire_session_start(self._start_source)
                self._start_source = None
        except BaseException:
            if self._task is None or not self.conversation.is_open:  # a turn writes its end first
                self.release()
            raise

    async def _read_conversation(self, source: Source | None) -> None:
        stored = await self.conversation.open()
        self.guard = self.new_guard(stored.continuations)
        self._unfinished = stored.continuations if stored.is_unfinished else 0
        self.events.restore_missed(stored.missed)
        for notice in stored.missed.notices():
            self.events.notice(notice)
        self._start_source = source or ("resume" if self.messages else "startup")
        if await self._has_results():
            self.announcements.on_change()

    async def _has_results(self) -> bool:
        """Return whether results of subagents may wait: those of a resumed agent may have finished meanwhile."""
        if self.role is not None:
            return bool(self.messages)
        if self.resources.world.in_hook and self.hooks.enabled:
            self.events.notice("this session was started from a hook, so no hooks run")
        for problem in self.settings.not_loaded:
            self.events.notice(str(problem), problem.hint)
        for text in self._problems:
            self.events.notice(text)
        return await self.subagents.open()

    async def fire_session_start(self, source: Source) -> None:
        world, path = self.resources.world, env_file(self.state, self.id)
        environ = self.tool_context.environ
        try:
            if self.hooks.enabled and self.settings.rules and self.role is None:
                await send_env_file(world, path)
        except UnusableEnvFile as error:
            self.events.notice(str(error))
        await self.hooks.fire_session_start(source, self.model.name)
        try:
            environ.update(await load_exports(world, path, dict(environ)))
        except UnusableEnvFile as error:
            self.events.notice(str(error))

    # Turns

    @property
    def turn(self) -> TurnState | None:
        return self.events.turn

    async def run_turn(self, entry: InboxEntry, *, skip_stop_hook: bool = False) -> TurnResult:
        """Run one turn that begins with any message; however it ends, it is finished."""
        if self.turn is not None:
            raise UsageError("this session is in the middle of a turn; `queue` adds a message to it")
        # Without hooks, gates that an earlier process missed still count.
        strict = self.config.strict
        not_loaded = strict and self.hooks.enabled and has_unloaded_hooks(self.settings, *EVENTS)
        earlier = self._chain_requests if self.role and entry.origin == "stop_hook" else 0
        turn = TurnState(self.guard, earlier_requests=earlier, strict=strict, not_loaded=not_loaded)
        self.events.begin_turn(turn)
        self._over = over = asyncio.get_running_loop().create_future()
        notify_stop = not (skip_stop_hook or self.config.skip_stop_hook)
        try:
            return await self._run(turn, entry, notify_stop=notify_stop)
        finally:
            over.set_result(None)
            self.guard, self._chain_requests = turn.guard, earlier + turn.requests

    async def _run(self, turn: TurnState, entry: InboxEntry, *, notify_stop: bool) -> TurnResult:
        """Run the loop of a turn as a task that can be interrupted."""
        self._task = asyncio.create_task(self._turn(turn).run(entry))
        cancelled = None
        try:
            end = await self._task
        except asyncio.CancelledError as error:
            end = EndTurn("interrupt")
            cancelled = error if current_task_cancelled() else None  # the caller itself is cancelled
        except BaseException:  # a bug, or a listener's error: finish the turn before raising
            self._task = None
            await finish_despite_cancel(self._finish(turn, EndTurn("error"), notify_stop=notify_stop))
            raise
        finally:
            self._task = None
        result = await finish_despite_cancel(self._finish(turn, end, notify_stop=notify_stop))
        if cancelled is not None:
            raise cancelled
        return result

    def _turn(self, turn: TurnState) -> Turn:
        has_user = self.permissions.permit is not None
        waits = self.role is None and not has_user and self.settings.dialect.wakes_without_user
        return Turn(
            context=self.loop_context(turn),
            inbox=self.inbox,
            announcements=self.announcements,
            background=self.background,
            wakes=self.wakes if waits else None,
            settings=self.settings,
            hooks=self.hooks,
            role=self.role,
            prepare=self._prepare_turn,
            new_guard=self._guard_for_prompt,
        )

    def loop_context(self, turn: TurnState) -> LoopContext:
        return LoopContext(
            model=self.model,
            agent="sub" if self.role else "main",
            dialect=self.settings.dialect,
            conversation=self.conversation,
            turn=turn,
            tools=self.tools,
            tool_context=self.tool_context,
            permissions=self.permissions,
            system_prompt=self._system_prompt,
            event_fields=self.hooks.event_fields,
            fire=self.hooks.fire,
            max_requests=self.config.max_requests,
            retries=self.config.retries,
            emit=self.events.emit,
            notice=self.events.notice,
            take_late_context=partial(self.resources.late_context.take, self.config.agent_id),
            on_compacted=self._on_compacted,
        )

    async def _prepare_turn(self) -> None:
        await self.open()
        self.hooks.raise_if_halted()
        if self.turn is not None:
            self.turn.guard, self.turn.continuations = self.guard.after_report(), self._unfinished

    async def _on_compacted(self) -> None:
        await self.fire_session_start("compact")
        if self.turn is not None:
            self.hooks.raise_if_halted()

    def _on_command_end(self, command: BackgroundCommand) -> None:
        self.events.emit(BackgroundCommandFinished(command.id, command.command, command.status))
        self.announcements.wake()

    def interrupt(self) -> None:
        """Cancel the turn, whatever it is doing; nothing of it runs afterward."""
        for task in (self._task, self._notifying):
            if task is not None and task.cancel():
                self.inbox.drop_continuations()

    async def stop_turn(self) -> None:
        """Interrupt the turn and wait until it is finished."""
        while self._over is not None and not self._over.done():
            self.interrupt()
            await asyncio.wait({self._over})

    # The end of a turn

    async def _finish(self, turn: TurnState, end: EndTurn, *, notify_stop: bool) -> TurnResult:
        interrupted, agent_id = end.ended_by == "interrupt", self.config.agent_id
        if interrupted:
            await self.background.kill(c for c in self.background.alive if c.started >= turn.started)
            await self.subagents.kill_all(self.id, agent_id, "interrupted")
        await self.subagents.end_turn(self.id, agent_id, interrupted=interrupted)
        try:
            self.inbox.drop_continuations()
            self._write_end(end)
            result = self.last_result = turn.result(end, self.conversation, self.model.name)
            self._record_end(result, end)
            for error in await self._notify_plugins(result, turn.elapsed, notify_stop=notify_stop):
                self._record({"kind": "notice", "event": "Stop", "text": error})
                self.events.emit(Notice(error))
        finally:
            self.events.turn = None
        self.events.emit(TurnEnd(result))
        return result

    def _write_end(self, end: EndTurn) -> None:
        if self.conversation.is_open:
            try:
                self.conversation.end_turn(end.ended_by, end.notice or end.stop_reason)
            except OSError as error:  # the turn ends without its record
                self.events.notice(f"the end of the turn could not be written to the transcript: {error}")

    def _record_end(self, result: TurnResult, end: EndTurn) -> None:
        blocked = blocked_subagents_json(result)
        if result.hook_runs or blocked:  # without hooks there is nothing to look up in the journal
            fields = {"ended_by": end.ended_by, "continuations": result.continuations}
            reason = end.notice or end.stop_reason
            more = {"blocked_subagents": blocked} if blocked else {}
            self._record({"kind": "turn_end", **fields, "reason": reason, **more})

    def _record(self, entry: Mapping[str, Any]) -> None:
        """Add a line to the session's journal; the supervisor of a subagent records its stop."""
        if self.role is None:
            self.resources.journal.record(self.id, entry)

    async def _notify_plugins(
        self, result: TurnResult, elapsed: float, *, notify_stop: bool
    ) -> Sequence[str]:
        """Notify the plugins once, as a task that can be cancelled. Return what went wrong in their handlers."""
        self._notifying = asyncio.create_task(self._call_plugins(result, elapsed, notify_stop=notify_stop))
        try:
            return await self._notifying
        except asyncio.CancelledError:
            if current_task_cancelled():
                raise
            return ["the plugins were interrupted while they were notified of the turn's end"]
        finally:
            self._notifying = None

    async def _call_plugins(self, result: TurnResult, elapsed: float, *, notify_stop: bool) -> list[str]:
        await self.plugins.notify("conversation", tuple(self.messages))
        if notify_stop:
            await self.plugins.notify("stop", _stop_payload(result, elapsed))
        return self.plugins.take_errors()

    # Close

    async def close(self) -> None:
        """End the turn and release the session; its model is closed unless it is the main agent's."""
        await self.stop_turn()
        await self.background.close()
        self.release()
        if self.config.owns_model:
            await close_models(self.model, notice=self.events.notice)

    async def close_unopened(self) -> None:
        """Close the parts of a main session that was never opened; SessionEnd hooks do not run."""
        await self.subagents.close()
        await self.resources.world.close(self.settings.dialect.background_grace)
        await self.resources.close(self.model, self.events.notice)

    def release(self) -> None:
        self.conversation.close()
        if self._lock is not None:
            self._lock.release()

    # Parts

    @property
    def settings(self) -> Settings:
        return self.resources.settings  # a review replaces them

    @property
    def requests_exhausted(self) -> bool:
        """Whether no model request is left for a redirect of this subagent."""
        return self._chain_requests >= self.config.max_requests

    @property
    def checkpoint(self) -> str | None:
        return self.role.agent_type.checkpoint if self.role else None

    @property
    def messages(self) -> list[Message]:
        return self.conversation.messages

    async def _system_prompt(self) -> str:
        try:
            self._guides = await self.tool_context.call(read_guides, self.project, self.tool_context.files)
            self._lacks_guides = False
        except MachineUnreachable as error:
            if not self._lacks_guides:
                self.events.notice(f"{' and '.join(GUIDES)} of the project could not be read again: {error}")
            self._lacks_guides = True
        instructions = self.role.agent_type.instructions if self.role else ""
        return system_prompt(self.project, (*self._guides, *self.hooks.start_context), instructions)

    def new_guard(self, continuations: int = 0) -> LoopGuard:
        guard = new_guard(self.settings, self.resources.world.own_environ, limit=self.config.limit)
        return LoopGuard.from_json({"continuations": continuations}, guard).after_report()

    def count_anew(self) -> None:
        """Forget the continuations of a conversation that was reset."""
        self.guard, self._unfinished = self.new_guard(), 0

    def _guard_for_prompt(self) -> LoopGuard:
        """Count anew for a message of the user, unless it continues a turn that an earlier process did not finish."""
        continuations, self._unfinished = self._unfinished, 0
        return self.new_guard(continuations)

    def _launch(self, agent_type: AgentType) -> dict[str, Any]:
        return self.config.launch(
            agent_type,
            tools_of_subagent(agent_type, self.tools),
            model=agent_type.model if agent_type.model and self.resources.models else self.model.name,
            dialect=self.settings.dialect.name,
            plugin_dirs=list(self.settings.plugin_dirs),
            prompt_id=self.config.prompt_id or (self.turn.prompt_id if self.turn else ""),
        )


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
