"""The session that users see: one agent that works on a project under its hooks."""

import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, Self

from turngate.agent.agent_config import AgentConfig, PermissionMode, Permissions
from turngate.agent.agent_session import SessionParts
from turngate.agent.event_sink import EventSink
from turngate.agent.main_session import EndReason, MainSession
from turngate.agent.session_hooks import Source
from turngate.agent.session_resources import SessionResources
from turngate.aio.cancellation import finish_despite_cancel
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.messages import Message, ToolUse
from turngate.core.events.session_events import SessionEvent, TurnResult
from turngate.core.settings import Settings
from turngate.errors import UsageError
from turngate.filesystem.files import current_files
from turngate.models.resolve import open_model
from turngate.plugins.handlers import Plugins
from turngate.ports import Model, Shell, World
from turngate.settings.agent_types import agent_type_rules, first_notices, load_agent_types
from turngate.settings.load import project_path, report_unreachable
from turngate.settings.slash_commands import SlashCommands, expand, load_commands, parse_call
from turngate.shells.local import LocalShell
from turngate.state.paths import state_folder
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.manager import SubagentOptions
from turngate.trust.load import load_settings, review_agent_hooks
from turngate.trust.session_refresh import refreshed

RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between requests to a provider that is overloaded
MAX_REQUESTS = 500  # to the model in one turn, unless the caller sets another limit


class Session:
    """An agent that works on a project under its stop hooks. `children` configures its subagents."""

    def __init__(
        self,
        project: str | World,
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
        strict: bool = False,
        skip_stop_hook: bool = False,
        plugins: Plugins | None = None,
        on_event: Callable[[SessionEvent], None] | None = None,
        retries: Sequence[float] = RETRIES,
        models: Callable[[str], Model] | None = None,
        children: SubagentLimits | SubagentOptions | None = None,
        shell: Shell | None = None,
        trust: bool = False,
    ) -> None:
        _check_settings(settings)
        session_id = session_id or str(uuid.uuid4())
        workspace = _workspace(project, shell)
        location = workspace.location if workspace.machine else ""
        events, plugins = EventSink(on_event, location), plugins or Plugins()
        project = workspace.project
        settings = settings or load_settings(project, dialect=dialect, trust=trust)
        if isinstance(model, str):
            model = open_model(model, settings.environ_of_models(os.environ))
        agent_types, problems = load_agent_types(project, settings.plugin_dirs)
        rules, not_loaded, not_run = agent_type_rules(agent_types.values(), settings.dialect)
        if rules or not_loaded:
            reviewed = review_agent_hooks(rules, project, settings.dialect.name, trust=trust)
            settings = settings.with_rules(*reviewed, problems=not_loaded)
        resources = SessionResources.create(
            workspace,
            settings,
            state or state_folder(),
            session_id=session_id,
            model=model,
            models=models,
            watch=partial(events.watch_hook, settings),
            notice=events.notice,
        )
        resources.world.logs = on_event is None
        config = AgentConfig(
            model=model,
            permissions=Permissions(permission_mode, set(allow), permit),
            environ=workspace.environ,
            extra_paths=extra_paths,
            hooks_enabled=hooks,
            max_requests=MAX_REQUESTS if max_turns is None else max_turns,
            retries=retries,
            limit=limit,
            strict=strict,
            skip_stop_hook=skip_stop_hook,
        )
        if not isinstance(children, SubagentOptions):
            children = SubagentOptions(limits=children)
        notices = [*first_notices(problems), *first_notices(not_run)]
        parts = SessionParts.create(session_id, resources, config, events)
        self._main = MainSession(parts, plugins, children, agent_types, notices)
        self._commands: SlashCommands | None = None
        if workspace.files is not None:
            self._commands = load_commands(project, settings.plugin_dirs)

    @classmethod
    async def in_workspace(
        cls, workspace: World, model: Model | str, settings: Settings | None = None, **options: Any
    ) -> Self:
        """Return a session whose project is in a workspace, also on another machine; `options` are those of `Session`."""
        create = report_unreachable()(partial(cls, workspace, model, settings, **options))
        return await workspace.with_files(create)

    # What it is

    @property
    def id(self) -> str:
        """The id of the conversation; `Session(…, session_id=…)` continues it."""
        return self._main.id

    @property
    def project(self) -> str:
        """The absolute path of the project's folder."""
        return self._main.project

    @property
    def location(self) -> str:
        """Where the project is: its path, or a URL such as `ssh://me@build/srv/app`."""
        return self._main.resources.world.location

    @property
    def settings(self) -> Settings:
        """The settings in effect, with the problems of their files."""
        return self._main.settings

    @property
    def model(self) -> Model:
        """The model of the main agent."""
        return self._main.model

    @property
    def transcript_path(self) -> str:
        """The file that holds the conversation."""
        return self._main.transcript_path

    @property
    def messages(self) -> list[Message]:
        """The conversation as the model sees it."""
        return self._main.messages

    @property
    def last_result(self) -> TurnResult | None:
        """The result of the last turn."""
        return self._main.last_result

    @property
    def question(self) -> str | None:
        """What the agent has asked; your next message answers it, also in a session that continues this one."""
        return self._main.conversation.question

    @property
    def checkpoint(self) -> str | None:
        """What waits for your yes or no, the next message; also in a session that continues this one."""
        return self._main.conversation.checkpoint

    @property
    def is_running(self) -> bool:
        """Whether a turn is running."""
        return self._main.turn is not None

    @property
    def hooks_enabled(self) -> bool:
        """Whether hooks run: not with `hooks=False`, and not in a session that a hook has started."""
        return self._main.hooks.enabled

    # Open and close

    async def __aenter__(self) -> Self:
        """Do not open the session yet: its first turn does, so that opening can be interrupted too."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await finish_despite_cancel(self.close())

    async def open(self, source: Source | None = None) -> None:
        """Lock and read the conversation, and fire SessionStart. The first turn does this if you do not."""
        await self._main.open(source)

    async def close(self, reason: EndReason = "other") -> None:
        """Fire SessionEnd and release the session; hooks in the background get `background_grace` seconds."""
        await self._main.close(reason)

    # Turns

    async def send(self, prompt: str, *, skip_stop_hook: bool = False) -> TurnResult:
        """Run one turn: from the user's message until control returns to the user."""
        return await self._main.send(prompt, skip_stop_hook=skip_stop_hook)

    async def run_command(self, text: str) -> TurnResult:
        """Run one turn for a slash command, `/plan add login`; a workflow with checkpoints ends at the first of them."""
        name, arguments = parse_call(text) or (text.removeprefix("/"), "")
        command = self.commands.find(name)
        notices: tuple[str, ...] = ()
        if (unrun := command.not_run) is not None:
            notices = (f"{command.file}: {unrun} is not run; the agent gets it as text",)
        entry = InboxEntry(text, workflow=expand(command, arguments), notices=notices)
        return await self._main.run_prompt(entry)

    @property
    def commands(self) -> SlashCommands:
        """The slash commands of files, read when they are first needed; of another machine, at the start."""
        if self._commands is None:
            self._commands = load_commands(self.project, self.settings.plugin_dirs)
        return self._commands

    def stream(self, prompt: str) -> AsyncIterator[SessionEvent]:
        """Run one turn and yield its events; the last one is its `TurnEnd`."""
        return self._main.stream(prompt)

    @property
    def has_background_results(self) -> bool:
        """Whether a command in the background has ended, or a hook there has blocked, and `answer_background` tells it."""
        return bool(self._main.background.ended or self._main.wakes.waiting) and not (
            self._main.conversation.waits_for_user
        )

    async def answer_background(self) -> TurnResult | None:
        """Run a turn with the results of commands, and the blocks of hooks, in the background, if there are any."""
        return await self._main.answer_background()

    def interrupt(self) -> None:
        """End the turn, whatever it is doing; nothing of it runs afterwards."""
        self._main.interrupt()

    def queue(self, prompt: str) -> None:
        """Add a message while a turn runs; it is answered after the one that is being answered."""
        self._main.queue(prompt)

    @property
    def queued(self) -> int:
        """How many messages wait for an answer."""
        return self._main.inbox.count("user")

    def take_queued(self) -> list[str]:
        """Remove the messages that wait, and return them."""
        return self._main.take_queued()

    def refresh_hooks(self, reviewed: Settings) -> None:
        """Use hooks that were approved or rejected meanwhile: `session.refresh_hooks(load_settings(project))`.

        A hook that has changed and is pending runs on as it was at the start, and so does one that is no longer configured.
        """
        resources = self._main.resources
        resources.settings = refreshed(resources.settings, reviewed)

    def allow(self, tool: str) -> None:
        """Permit a tool for the rest of the session, without a question."""
        self._main.permissions.allowed.add(tool)

    # The conversation

    async def compact(self, instructions: str = "") -> bool:
        """Replace the conversation by its summary, between two turns."""
        return await self._main.compact(instructions)

    async def reset(self) -> None:
        """Forget the conversation; the next message starts a new one."""
        await self._main.reset()


def _workspace(project: str | World, shell: Shell | None) -> World:
    """Return the workspace of a session. Raises UsageError if its files cannot be read from here."""
    if isinstance(project, str):
        return World(shell or LocalShell(), project_path(project))
    if shell is not None:
        raise UsageError("a session in a workspace uses the shell of the workspace; leave `shell` out")
    if project.files is not None and current_files.get() is not project.files:
        raise UsageError(
            f"{project.location} is on another machine; use `await Session.in_workspace(workspace, model)`"
        )
    return project


def _check_settings(settings: object) -> None:
    if not isinstance(settings, Settings | None):
        name = type(settings).__name__
        raise UsageError(f"a session takes Settings, not {name}; `Options(…).settings()` gives them")
