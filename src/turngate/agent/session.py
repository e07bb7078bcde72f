"""A session: one agent that works on a project under its hooks. Open, send, queue, stream, interrupt, reset, close."""

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from typing import Literal, Self

from turngate.agent.agent_config import AgentConfig
from turngate.agent.agent_session import AgentSession, SessionParts
from turngate.agent.compaction import compact
from turngate.agent.event_sink import EventSink
from turngate.agent.permissions import PermissionMode, Permissions
from turngate.agent.resources import SessionResources
from turngate.agent.session_hooks import Source
from turngate.agent.session_host import SessionHost
from turngate.agent.session_store import SessionLock
from turngate.agent.tools import ALIASES, TOOLS
from turngate.agent.turn import Turn
from turngate.aio.cancellation import finish_despite_cancel
from turngate.core.events import SessionEnd
from turngate.core.inbox import InboxEntry
from turngate.core.messages import ToolUse
from turngate.core.session_events import SessionEvent, TurnResult
from turngate.core.settings import Settings
from turngate.core.subagent_run import SubagentRun
from turngate.errors import UsageError
from turngate.models.resolve import open_model
from turngate.plugins.handlers import PluginContext, Plugins
from turngate.ports import Model, Shell
from turngate.settings.load import load_settings, project_path
from turngate.shells.local import LocalShell
from turngate.state.paths import session_folder, state_folder
from turngate.subagents.agent_types import load_agent_types
from turngate.subagents.host import SubagentRole
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.manager import SubagentManager, SubagentOptions

RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between requests to a provider that is overloaded
MAX_REQUESTS = 500  # to the model in one turn, unless the caller sets another limit

EndReason = Literal["clear", "prompt_input_exit", "other"]


class Session(AgentSession):
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
        session_id = session_id or str(uuid.uuid4())
        events, plugins = EventSink(on_event), plugins or Plugins()
        project = project_path(project)
        resources = SessionResources.create(
            project,
            settings or load_settings(project, dialect=dialect),
            state or state_folder(),
            session_id=session_id,
            model=model,
            models=models,
            shell=shell or LocalShell(),
            watch=events.watch_hook,
            notice=events.notice,
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
        parts = SessionParts.create(session_id, resources, config, events)
        agent_types, self._problems = load_agent_types(
            project, resources.settings.plugin_dirs, known_tools={*TOOLS, *ALIASES}
        )
        host = SessionHost(resources, plugins, parts.hooks, events, agent_types, self._for_subagent)
        manager = SubagentManager(host, session_id, resources.state, agent_types, children)
        super().__init__(parts, manager, plugins)
        self.folder = session_folder(self.state, self.id)
        self._lock = SessionLock(os.path.join(self.folder, "lock"))
        plugins.bind(PluginContext(self.id, self.project, self.state, self.settings))

    def _for_subagent(self, run: SubagentRun, role: SubagentRole) -> AgentSession:
        model = self.resources.model_named(str(run.launch.get("model", "")), self.model)
        environ, enabled = self.tool_context.environ, self.hooks.enabled
        config = replace(self._config, model=self.model, environ=environ, hooks_enabled=enabled)
        config = config.from_launch(run.launch, role, same_session=run.parent == self.id, model=model)
        events = EventSink(self.events.forward_notice)
        parts = SessionParts.create(run.parent, self.resources, config, events)
        return AgentSession(parts, self.subagents, Plugins())

    # Open

    async def __aenter__(self) -> Self:
        """Do not open the session yet: its first turn does, so that opening can be interrupted too."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await finish_despite_cancel(self.close())

    async def _open(self, source: Source | None) -> None:
        self._lock.acquire()
        await super()._open(source)

    async def _has_results(self, continuations: int) -> bool:
        self._continuations = continuations
        self._report_problems()
        return await self.subagents.open()

    def _report_problems(self) -> None:
        if self.resources.world.in_hook and self.hooks.enabled:
            self.events.notice("this session was started from a hook, so no hooks run")
        for problem in (*self.settings.not_loaded, *self._problems):
            self.events.notice(str(problem))

    # Turns

    async def send(self, prompt: str, *, skip_stop_hook: bool = False) -> TurnResult:
        """Run one turn: from the user's message until control returns to the user."""
        return await self.run_turn(InboxEntry(prompt), skip_stop_hook=skip_stop_hook)

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
        if self.conversation.is_open:
            await self._end(reason)
        else:
            await finish_despite_cancel(self._close_all())

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
        super()._release()
        self._lock.release()


def _check_settings(settings: object) -> None:
    if not isinstance(settings, Settings | None):
        name = type(settings).__name__
        raise UsageError(f"a session takes Settings, not {name}; `Options(…).settings()` gives them")
