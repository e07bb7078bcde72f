"""A session: one agent that works on a project under its hooks. Open, send, queue, stream, interrupt, reset, close."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from turngate.agent.agent_config import AgentConfig
from turngate.agent.compaction import compact
from turngate.agent.continuation_loop import ContinuationLoop
from turngate.agent.conversation import Conversation
from turngate.agent.env_file import env_file, read_exports
from turngate.agent.event_sink import EventSink
from turngate.agent.loop_context import LoopContext
from turngate.agent.permissions import PermissionMode, Permissions
from turngate.agent.resources import SessionResources, close_models
from turngate.agent.session_hooks import SessionHooks, Source
from turngate.agent.session_host import SessionHost
from turngate.agent.session_store import SessionLock
from turngate.agent.system_prompt import system_prompt
from turngate.agent.tools import ALIASES, TOOLS, ToolContext, tools_of_subagent, with_task
from turngate.agent.turn import Turn
from turngate.agent.turn_runner import TurnRunner
from turngate.aio.cancellation import finish_despite_cancel
from turngate.core.events import SessionEnd
from turngate.core.inbox import Inbox, InboxEntry
from turngate.core.loop_guard import LoopGuard, new_guard
from turngate.core.messages import Message, ToolUse
from turngate.core.session_events import SessionEvent, TurnResult
from turngate.core.settings import Settings
from turngate.core.subagent_run import SubagentRun
from turngate.errors import UsageError
from turngate.models.resolve import open_model
from turngate.plugins.handlers import PluginContext, Plugins
from turngate.ports import Model, Shell
from turngate.settings.load import load_settings
from turngate.shells.local import LocalShell
from turngate.state.paths import session_folder, state_folder
from turngate.subagents.agent_types import AgentType, load_agent_types
from turngate.subagents.announcements import Announcements
from turngate.subagents.host import SubagentRole
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.manager import SubagentManager, SubagentOptions
from turngate.subagents.task_tool import TaskTool

RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between requests to a provider that is overloaded
MAX_REQUESTS = 500  # to the model in one turn, unless the caller sets another limit

EndReason = Literal["clear", "prompt_input_exit", "other"]


class Session:
    """An agent that works on a project under its stop hooks. `children` configures its subagents."""

    def __init__(
        self,
        project: str,
        model: Model | str,
        settings: Settings | None = None,
        *,
        dialect: str = "turngate",
        session_id: str | None = None,
        state: str | None = None,
        permission_mode: PermissionMode = "default",
        allow: Collection[str] = (),
        extra_paths: Sequence[str] = (),
        permit: Callable[[ToolUse, str], Awaitable[bool]] | None = None,
        limit: int | None = None,
        max_turns: int | None = None,
        hooks: bool = True,
        skip_stop_hook: bool = False,
        plugins: Plugins | None = None,
        on_event: Callable[[SessionEvent], None] | None = None,
        retries: Sequence[float] = RETRIES,
        models: Callable[[str], Model] | None = None,
        children: SubagentLimits | SubagentOptions | None = None,
        shell: Shell | None = None,
    ) -> None:
        model = open_model(model) if isinstance(model, str) else model
        _check_settings(settings)
        self.id = session_id or str(uuid.uuid4())
        self.events = EventSink(on_event)
        project = os.path.abspath(project)
        resources = SessionResources.create(
            project,
            settings or load_settings(project, dialect=dialect),
            state or state_folder(),
            session_id=self.id,
            model=model,
            models=models,
            shell=shell or LocalShell(),
            watch=self.events.watch_hook,
        )
        config = AgentConfig(
            model=model,
            permissions=Permissions(permission_mode, set(allow), permit),
            environ=os.environ,
            extra_paths=extra_paths,
            hooks_enabled=hooks,
            max_requests=MAX_REQUESTS if max_turns is None else max_turns,
            retries=retries,
            limit=limit,
            skip_stop_hook=skip_stop_hook,
        )
        if not isinstance(children, SubagentOptions):
            children = SubagentOptions(limits=children)
        self._compose(resources, config, plugins or Plugins(), children)
        self.plugins.bind(PluginContext(self.id, self.project, self.state, self.settings))

    def _for_subagent(self, run: SubagentRun, role: SubagentRole) -> "Session":
        model = self.resources.model_named(str(run.launch.get("model", "")), self.model)
        environ, enabled = self.tool_context.environ, self.hooks.enabled
        config = replace(self._config, model=self.model, environ=environ, hooks_enabled=enabled)
        config = config.from_launch(run.launch, role, same_session=run.parent == self.id, model=model)
        session = Session.__new__(Session)
        session.id, session.events = run.parent, EventSink(self.events.forward_notice)
        session._compose(self.resources, config, Plugins(), self.subagents)  # noqa: SLF001 - the same class
        return session

    def _compose(
        self,
        resources: SessionResources,
        config: AgentConfig,
        plugins: Plugins,
        subagents: SubagentOptions | SubagentManager,
    ) -> None:
        self.resources, self._config, self.plugins = resources, config, plugins
        self.project, self.settings, self.state = resources.project, resources.settings, resources.state
        self.model, self.role, self.permissions = config.model, config.role, config.permissions
        self.folder = session_folder(self.state, self.id)
        environ = {**config.environ, **self.settings.env}
        self.tool_context = ToolContext(self.project, environ, tuple(config.extra_paths))
        fields = config.role.record_fields if config.role else None
        path = resources.transcript_path(self.id, config.role)
        self.conversation = Conversation(path, self.id, self.project, subagent=fields)
        self.hooks = SessionHooks(resources, config, self.conversation, self.events)
        self.inbox = Inbox()
        self._turns = TurnRunner(self.events, self.inbox, plugins)
        self._lock = SessionLock(os.path.join(self.folder, "lock"))
        self._opening = asyncio.Lock()
        self._problems: list[str] = []
        self._continuations = 0  # of a turn that an earlier process did not finish
        if isinstance(subagents, SubagentOptions):
            subagents = self._create_manager(subagents)
        self.subagents = subagents
        self.conversation.on_result_delivered = subagents.result_delivered
        self._add_tools(config)

    def _create_manager(self, options: SubagentOptions) -> SubagentManager:
        agent_types, self._problems = load_agent_types(
            self.project, self.settings.plugin_dirs, known_tools={*TOOLS, *ALIASES}
        )
        host = SessionHost(
            self.resources, self.plugins, self.hooks, self.events, agent_types, self._for_subagent
        )
        return SubagentManager(host, self.id, self.state, agent_types, options)

    def _add_tools(self, config: AgentConfig) -> None:
        """Give the agent its tools, among them Task unless the agent is at the depth limit."""
        manager, role = self.subagents, config.role
        delivered = self.conversation.has_delivered
        self.announcements = Announcements(manager, self.id, config.agent_id, delivered, self.events.notice)
        self.task_tool = TaskTool(
            manager=manager,
            session_id=self.id,
            agent_id=config.agent_id,
            depth=config.depth,
            in_background=self.settings.dialect.subagents_in_background,
            launch=self._launch,
        )
        self.tool_context.start_subagent = self.task_tool.start
        tools = tools_of_subagent(role.agent_type.tools, role.tools) if role else TOOLS
        self.tools = with_task(tools, manager.agent_types if config.depth < manager.limits.depth else None)

    # Open

    async def __aenter__(self) -> Self:
        """Do not open the session yet: its first turn does, so that opening can be interrupted too."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await finish_despite_cancel(self.close())

    async def open(self, source: Source | None = None) -> None:
        """Lock the session for this process, read its conversation, and fire SessionStart."""
        async with self._opening:
            if not self.conversation.is_open:
                await self._open(source)

    async def _open(self, source: Source | None) -> None:
        if self.role is None:  # the registry gives a subagent's run one owner
            self._lock.acquire()
        try:
            continuations = await self.conversation.open()
            resumed = bool(self.messages)
            if self.role is None:
                self._continuations = continuations
                self._report_problems()
                has_results = await self.subagents.open()
            else:
                has_results = resumed  # its own subagents may have finished meanwhile
            if has_results:
                self.announcements.on_change()
            await self._fire_session_start(source or ("resume" if resumed else "startup"))
        except BaseException:
            if not self._turns.in_loop or not self.conversation.is_open:  # a turn writes its end first
                self._release()
            raise

    def _report_problems(self) -> None:
        if self.resources.world.in_hook and self.hooks.enabled:
            self.events.notice("this session was started from a hook, so no hooks run")
        for problem in (*self.settings.not_loaded, *self._problems):
            self.events.notice(str(problem))

    async def _fire_session_start(self, source: Source) -> None:
        await self.hooks.fire_session_start(source, self.model.name)
        environ = self.tool_context.environ
        environ.update(read_exports(env_file(self.state, self.id), environ))

    # Turns

    @property
    def turn(self) -> Turn | None:
        """The turn that is running."""
        return self.events.turn

    async def send(self, prompt: str, *, skip_stop_hook: bool = False) -> TurnResult:
        """Run one turn: from the user's message until control returns to the user."""
        return await self.run_turn(InboxEntry(prompt), skip_stop_hook=skip_stop_hook)

    async def run_turn(self, entry: InboxEntry, *, skip_stop_hook: bool = False) -> TurnResult:
        """Run one turn that begins with any message."""
        notify_stop = not (skip_stop_hook or self._config.skip_stop_hook)
        loop = self._turn_loop(Turn(self._new_guard()))
        return await self._turns.run(loop, entry, notify_stop=notify_stop)

    def _turn_loop(self, turn: Turn) -> ContinuationLoop:
        return ContinuationLoop(
            context=self._loop_context(turn),
            inbox=self.inbox,
            announcements=self.announcements,
            settings=self.settings,
            new_guard=self._new_guard,
            prepare=self._prepare_turn,
            end_subagents=self._end_subagents,
            is_subagent=self.role is not None,
        )

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
            on_compacted=self._on_compacted,
        )

    async def _prepare_turn(self, turn: Turn) -> None:
        await self.open()
        self.hooks.raise_if_halted()
        continuations, self._continuations = self._continuations, 0
        turn.guard, turn.continuations = self._new_guard(continuations), continuations

    async def _on_compacted(self) -> None:
        await self._fire_session_start("compact")
        if self.turn is not None:
            self.hooks.raise_if_halted()

    async def _end_subagents(self, interrupted: bool) -> None:
        if interrupted:
            await self.subagents.kill_all(self.id, self._config.agent_id, "interrupted")
        await self.subagents.end_turn(self.id, self._config.agent_id)

    def queue(self, prompt: str) -> None:
        """Add a message while a turn runs; it is answered after the one that is being answered."""
        self.inbox.put(InboxEntry(prompt, waited=True))
        self.announcements.wake()

    def stream(self, prompt: str) -> AsyncIterator[SessionEvent]:
        """Run one turn and yield its events; the last one is its `TurnEnd`."""
        return self.events.stream(lambda: self.send(prompt))

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
        await self.announcements.discard()
        await self._fire_session_end("clear")
        self.conversation.clear()
        self.inbox.clear()
        self._continuations = 0
        await self._fire_session_start("clear")

    async def close(self, reason: EndReason = "other") -> None:
        """Fire SessionEnd and release the session; hooks in the background get `background_grace` seconds."""
        await self._turns.stop()
        if self.role is not None:
            self._release()
            if self._config.owns_model:
                await close_models(self.model, notice=self.events.notice)
        elif not self.conversation.is_open:
            await finish_despite_cancel(self._close_all())
        else:
            await self._end(reason)

    async def _end(self, reason: EndReason) -> None:
        try:
            if reason == "prompt_input_exit":
                await self.subagents.kill_all(self.id, self._config.agent_id, "the user has left")
            await self._fire_session_end(reason)
        finally:
            try:
                ended = await self.resources.world.close(self.settings.dialect.background_grace)
                if ended:
                    self.events.notice(f"background hooks killed because they were still running: {ended}")
            finally:
                await finish_despite_cancel(self._close_all())

    async def _fire_session_end(self, reason: EndReason) -> None:
        await self.hooks.fire(SessionEnd(**self.hooks.event_fields(), reason=reason))

    async def _close_all(self) -> None:
        await self.subagents.close()
        self._release()
        await self.resources.close(self.model, notice=self.events.notice)

    def _release(self) -> None:
        self.conversation.close()
        self._lock.release()

    # Parts

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

    def _system_prompt(self) -> str:
        instructions = self.role.agent_type.instructions if self.role else ""
        return system_prompt(self.project, self.hooks.start_context, instructions)

    def _new_guard(self, continuations: int = 0) -> LoopGuard:
        guard = new_guard(self.settings, self.resources.world.environ, limit=self._config.limit)
        return replace(guard, count=continuations, continuations=continuations)

    def _launch(self, agent_type: AgentType) -> dict[str, Any]:
        return self._config.launch(
            agent_type,
            self.tools,
            model=agent_type.model if agent_type.model and self.resources.models else self.model.name,
            dialect=self.settings.dialect.name,
            prompt_id=self.turn.prompt_id if self.turn else "",
        )


def _check_settings(settings: object) -> None:
    if not isinstance(settings, Settings | None):
        name = type(settings).__name__
        raise UsageError(f"a session takes Settings, not {name}; `Options(…).settings()` gives them")
