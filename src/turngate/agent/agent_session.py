"""AgentSession: the session of one agent, the main agent or a subagent. It opens, runs turns and closes.

The system prompt of an agent.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Self

from turngate._frozen import frozen
from turngate.agent.agent_config import AgentConfig
from turngate.agent.background_blocks import Wakes
from turngate.agent.background_commands import BackgroundCommand, BackgroundCommands
from turngate.agent.conversation import Conversation
from turngate.agent.env_file import UnusableEnvFile, env_file, load_exports, send_env_file
from turngate.agent.event_sink import EventSink
from turngate.agent.loop_context import LoopContext
from turngate.agent.session_hooks import SessionHooks, Source
from turngate.agent.session_resources import SessionResources, close_models
from turngate.agent.tools import TOOLS, Tool, ToolContext, tools_of_subagent, with_task
from turngate.agent.turn.loop import ContinuationLoop
from turngate.agent.turn.runner import TurnRunner
from turngate.agent.turn.turn import Turn
from turngate.core.constants import EVENTS
from turngate.core.conversation.inbox import Inbox, InboxEntry
from turngate.core.conversation.messages import Message
from turngate.core.events.session_events import BackgroundCommandFinished, TurnResult
from turngate.core.settings import Settings
from turngate.core.verdict.loop_guard import LoopGuard, new_guard
from turngate.filesystem import files
from turngate.filesystem.descent import open_parent, open_regular
from turngate.filesystem.files import MachineUnreachable
from turngate.filesystem.real_path import is_inside, resolve
from turngate.filesystem.snapshot import snapshot
from turngate.plugins.handlers import Plugins
from turngate.settings.agent_types import AgentType
from turngate.settings.load import has_unloaded_hooks
from turngate.subagents.manager import SubagentManager
from turngate.subagents.results import Announcements
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


def read_guides(project: str) -> tuple[str, ...]:
    """Return the guides of a project for the prompt. Raises MachineUnreachable."""
    with snapshot(lambda: [os.path.join(project, name) for name in GUIDES]):
        return tuple(_guide(project, name) for name in GUIDES)


def _guide(project: str, name: str) -> str:
    """Return a regular file of the project: a link could lead to a secret, and a pipe would block."""
    path = os.path.join(project, name)
    try:
        if not files.lexists(path):
            return ""
        path = resolve(path)
        if not is_inside(path, resolve(project)):
            return ""
        text = _read(path).decode("utf-8", "replace")[:MAX_GUIDE_CHARS].strip()
    except OSError:
        return ""
    return f"The project's {name}:\n{text}" if text else ""


def _read(path: str) -> bytes:
    if there := files.current_files.get():
        return there.read(path, 4 * MAX_GUIDE_CHARS)
    with open_parent(path) as (folder, name), open_regular(name, folder) as file:
        return file.read(4 * MAX_GUIDE_CHARS)


# Without a user, a turn that may end waits this long for commands in the background. A server never ends, so it
# is short. With a user the turn ends at once, and the end of a command begins the next one.
COMMAND_WAIT_S = 10.0


@frozen
class SessionParts:
    """The parts of a session that exist before its subagents."""

    id: str
    resources: SessionResources
    config: AgentConfig
    events: EventSink
    conversation: Conversation
    hooks: SessionHooks

    @classmethod
    def create(
        cls, session_id: str, resources: SessionResources, config: AgentConfig, events: EventSink
    ) -> Self:
        fields = config.role.record_fields if config.role else None
        path = resources.transcript_path(session_id, config.role)
        conversation = Conversation(
            path, session_id, resources.project, subagent=fields, machine=resources.world.machine
        )
        hooks = SessionHooks(resources, config, conversation, events)
        return cls(session_id, resources, config, events, conversation, hooks)


class AgentSession:
    """The session of one agent. The registry gives a subagent's run one owner, so it takes no lock."""

    def __init__(self, parts: SessionParts, subagents: SubagentManager, plugins: Plugins) -> None:
        resources, config = parts.resources, parts.config
        self.id, self.events = parts.id, parts.events
        self.conversation, self.hooks = parts.conversation, parts.hooks
        self.resources, self._config, self.plugins, self.subagents = resources, config, plugins, subagents
        self.project, self.state = resources.project, resources.state
        self.model, self.role, self.permissions = config.model, config.role, config.permissions
        self.inbox = Inbox()
        self._turns = TurnRunner(self.events, self.inbox, plugins, None if config.role else self._record)
        self._opening = asyncio.Lock()
        self._guides: tuple[str, ...] = ()  # of the project, as they were read last
        self._lacks_guides = False  # the machine of the project did not answer
        self._start_source: Source | None = None  # of a SessionStart whose hooks have not run to their end
        self._guard = self._new_guard()  # since the user's last message, whichever turn or process it was in
        self._chain_requests = 0  # model requests of a subagent since its last prompt that is not a redirect
        self._unfinished = 0  # continuations of a turn that an earlier process did not finish
        self.conversation.on_result_delivered = subagents.result_delivered
        self.events.on_missed = self.conversation.keep_missed
        self.announcements = Announcements(
            subagents,
            self.id,
            config.agent_id,
            self.conversation.has_delivered,
            self.events.notice,
            self.events.add_subagent,
        )
        self.task_tool = self._create_task_tool()
        environ = {**config.environ, **self.settings.env}
        self.tool_context = ToolContext(
            self.project, environ, tuple(config.extra_paths), world=resources.world
        )
        self.background = BackgroundCommands(self._on_command_end)
        self.tool_context.background = self.background
        self.tool_context.start_subagent = self.task_tool.start
        self.tools = self._select_tools()

    def _create_task_tool(self) -> TaskTool:
        return TaskTool(
            manager=self.subagents,
            session_id=self.id,
            agent_id=self._config.agent_id,
            depth=self._config.depth,
            in_background=self.settings.dialect.subagents_in_background,
            launch=self._launch,
            on_result=self.events.add_subagent,
            count_approvals=self.conversation.count_approvals,
        )

    def _select_tools(self) -> dict[str, Tool]:
        """Return the agent's tools, among them Task unless the agent is at the depth limit."""
        manager, role = self.subagents, self.role
        tools = tools_of_subagent(role.agent_type, role.tools) if role else TOOLS
        return with_task(tools, manager.agent_types if self._config.depth < manager.limits.depth else None)

    # Open

    async def open(self, source: Source | None = None) -> None:
        """Read the conversation and fire SessionStart; a main session is locked for this process first."""
        async with self._opening:
            if not self.conversation.is_open or self._start_source is not None:
                await self._open(source)

    async def _open(self, source: Source | None) -> None:
        try:
            with contextlib.suppress(
                MachineUnreachable
            ):  # the first tool call tries it again, and reports it
                await self.tool_context.prepare()
            if not self.conversation.is_open:
                await self._read_conversation(source)
            if self._start_source is not None:
                await self._fire_session_start(self._start_source)
                self._start_source = None
        except BaseException:
            if not self._turns.in_loop or not self.conversation.is_open:  # a turn writes its end first
                self._release()
            raise

    async def _read_conversation(self, source: Source | None) -> None:
        stored = await self.conversation.open()
        self._guard = self._new_guard(stored.continuations)
        self._unfinished = stored.continuations if stored.is_unfinished else 0
        self.events.restore_missed(stored.missed)
        for notice in stored.missed.notices():
            self.events.notice(notice)
        self._start_source = source or ("resume" if self.messages else "startup")
        if await self._has_results():
            self.announcements.on_change()

    async def _has_results(self) -> bool:
        """Return whether results of subagents may wait: those of a resumed agent may have finished meanwhile."""
        return bool(self.messages)

    async def _fire_session_start(self, source: Source) -> None:
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
    def turn(self) -> Turn | None:
        """The turn that is running."""
        return self.events.turn

    async def run_turn(self, entry: InboxEntry, *, skip_stop_hook: bool = False) -> TurnResult:
        """Run one turn that begins with any message."""
        notify_stop = not (skip_stop_hook or self._config.skip_stop_hook)
        # Without hooks, gates that an earlier process missed still count.
        strict = self._config.strict
        not_loaded = strict and self.hooks.enabled and has_unloaded_hooks(self.settings, *EVENTS)
        earlier = self._chain_requests if self.role and entry.origin == "stop_hook" else 0
        turn = Turn(self._guard, earlier_requests=earlier, strict=strict, not_loaded=not_loaded)
        try:
            return await self._turns.run(self._turn_loop(turn), entry, notify_stop=notify_stop)
        finally:
            self._guard, self._chain_requests = turn.guard, earlier + turn.requests

    def _turn_loop(self, turn: Turn) -> ContinuationLoop:
        return ContinuationLoop(
            context=self._loop_context(turn),
            inbox=self.inbox,
            announcements=self.announcements,
            background=self.background,
            command_wait=0.0 if self.permissions.permit else COMMAND_WAIT_S,
            wakes=self._awaited_wakes(),
            settings=self.settings,
            new_guard=self._guard_for_prompt,
            prepare=self._prepare_turn,
            end_subagents=self._end_subagents,
            take_first_message=self.hooks.take_first_message,
            is_subagent=self.role is not None,
            checkpoint=self.role.agent_type.checkpoint if self.role else None,
        )

    def _awaited_wakes(self) -> Wakes | None:
        """Return what a turn waits for: nothing, unless it is the turn of a main agent without a user."""
        return None

    def _loop_context(self, turn: Turn) -> LoopContext:
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
            hooks=self.hooks,
            max_requests=self._config.max_requests,
            retries=self._config.retries,
            emit=self.events.emit,
            notice=self.events.notice,
            take_late_context=partial(self.resources.late_context.take, self._config.agent_id),
            on_compacted=self._on_compacted,
        )

    async def _prepare_turn(self, turn: Turn) -> None:
        await self.open()
        self.hooks.raise_if_halted()
        turn.guard, turn.continuations = self._guard.after_report(), self._unfinished

    async def _on_compacted(self) -> None:
        await self._fire_session_start("compact")
        if self.turn is not None:
            self.hooks.raise_if_halted()

    def _on_command_end(self, command: BackgroundCommand) -> None:
        self.events.emit(BackgroundCommandFinished(command.id, command.command, command.status))
        self.announcements.wake()

    async def _end_subagents(self, interrupted: bool) -> None:
        if interrupted:
            await self.background.kill_since(self.turn.started if self.turn else 0.0)
            await self.subagents.kill_all(self.id, self._config.agent_id, "interrupted")
        await self.subagents.end_turn(self.id, self._config.agent_id, interrupted=interrupted)

    # Close

    async def close(self) -> None:
        """End the turn and release the session; its model is closed unless it is the main agent's."""
        await self._turns.stop()
        await self.background.close()
        self._release()
        if self._config.owns_model:
            await close_models(self.model, notice=self.events.notice)

    def _release(self) -> None:
        self.conversation.close()

    # Parts

    @property
    def settings(self) -> Settings:
        return self.resources.settings  # a review replaces them

    def _record(self, entry: Mapping[str, Any]) -> None:
        self.resources.journal.record(self.id, entry)

    @property
    def requests_exhausted(self) -> bool:
        """Whether no model request is left for a redirect of this subagent."""
        return self._chain_requests >= self._config.max_requests

    @property
    def last_result(self) -> TurnResult | None:
        return self._turns.last_result

    @last_result.setter
    def last_result(self, result: TurnResult | None) -> None:
        self._turns.last_result = result

    @property
    def messages(self) -> list[Message]:
        return self.conversation.messages

    @property
    def transcript_path(self) -> str:
        return self.conversation.path

    async def _system_prompt(self) -> str:
        try:
            self._guides = await self.tool_context.with_files(read_guides, self.project)
            self._lacks_guides = False
        except MachineUnreachable as error:
            if not self._lacks_guides:
                self.events.notice(f"{' and '.join(GUIDES)} of the project could not be read anew: {error}")
            self._lacks_guides = True
        instructions = self.role.agent_type.instructions if self.role else ""
        return system_prompt(self.project, (*self._guides, *self.hooks.start_context), instructions)

    def _guard_for_prompt(self) -> LoopGuard:
        """Count anew for a message of the user, unless it continues a turn that an earlier process did not finish."""
        continuations, self._unfinished = self._unfinished, 0
        return self._new_guard(continuations)

    def _new_guard(self, continuations: int = 0) -> LoopGuard:
        guard = new_guard(self.settings, self.resources.world.own_environ, limit=self._config.limit)
        return replace(guard, count=continuations, continuations=continuations, resumed=continuations)

    def _launch(self, agent_type: AgentType) -> dict[str, Any]:
        return self._config.launch(
            agent_type,
            tools_of_subagent(agent_type, self.tools),
            model=agent_type.model if agent_type.model and self.resources.models else self.model.name,
            dialect=self.settings.dialect.name,
            plugin_dirs=list(self.settings.plugin_dirs),
            prompt_id=self._config.prompt_id or (self.turn.prompt_id if self.turn else ""),
        )
