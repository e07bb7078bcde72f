"""The session that users see: one agent that works on a project under its hooks."""

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, Self

from turngate.agent.agent_config import AgentConfig, PermissionMode, Permissions
from turngate.agent.agent_session import AgentSession
from turngate.agent.compaction import compact
from turngate.agent.event_sink import EventSink
from turngate.agent.session_hooks import Source
from turngate.agent.session_resources import SessionResources
from turngate.agent.session_store import SessionLock
from turngate.agent.subagent_host import SessionHost
from turngate.agent.turn_state import TurnState
from turngate.aio.threads import finish_despite_cancel
from turngate.core.conversation.inbox import InboxEntry
from turngate.core.conversation.messages import Message, ToolUse, UserMessage
from turngate.core.conversation.subagent_run import names_of
from turngate.core.events.events import SessionEnd
from turngate.core.events.stream_events import SessionEvent, TurnResult
from turngate.core.settings import Settings
from turngate.core.verdict.hook_run import HookOutput, HookRun, outputs
from turngate.core.verdict.verdict import unenforced, warnings_with_hints
from turngate.errors import UsageError
from turngate.gates.session_goal import remove_goal_of
from turngate.models.resolve import open_model
from turngate.plugins.handlers import PluginContext, Plugins
from turngate.ports import Model, Shell, World, describe_killed, ssh_option
from turngate.project.files import LOCAL, Files
from turngate.settings.agent_types import AgentType, agent_type_rules, first_notices, load_agent_types
from turngate.settings.load import project_path, report_unreachable
from turngate.settings.slash_commands import SlashCommands, expand, load_commands, parse_call
from turngate.shells.local import LocalShell
from turngate.state.paths import session_folder, state_folder
from turngate.subagents.limits import SubagentLimits, SubagentOptions
from turngate.subagents.supervisor import Supervisor
from turngate.trust.load import load_settings, refreshed, review_agent_hooks, with_running_gates_held

EndReason = Literal["clear", "prompt_input_exit", "other"]
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
        session_id, state = session_id or str(uuid.uuid4()), state or state_folder()
        workspace = _workspace(project, shell)
        project = workspace.project
        files = workspace.files
        settings = settings or load_settings(project, dialect=dialect, trust=trust, files=files)
        settings, agent_types, notices = _with_agent_types(settings, project, files, trust=trust)
        if isinstance(model, str):
            model = open_model(model, settings.environ_of_models(os.environ))
        events = EventSink(on_event, workspace.location if workspace.machine else "")
        plugins = plugins or Plugins()
        resources = SessionResources(
            workspace, settings, state, session_id=session_id, model=model, models=models, events=events
        )
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
        host = SessionHost(resources, agent_types)
        subagents = Supervisor(host, session_id, state, agent_types, children)
        lock = SessionLock(os.path.join(session_folder(state, session_id), "lock"))
        self._agent = host.main = AgentSession(
            session_id, resources, config, events, subagents, plugins, lock=lock, problems=notices
        )
        plugins.bind(PluginContext(session_id, project, state, settings))
        resources.late_context.on_rewake_end = self._on_rewake_end
        self._commands: SlashCommands | None = None
        if workspace.machine:
            self._commands = load_commands(project, settings.plugin_dirs, files=files)

    @classmethod
    async def in_workspace(
        cls, workspace: World, model: Model | str, settings: Settings | None = None, **options: Any
    ) -> Self:
        """Return a session whose project is in a workspace, possibly on another machine; `options` are the same as for `Session`."""
        create = report_unreachable(workspace.files)(partial(cls, workspace, model, settings, **options))
        return await workspace.call(create)

    # What it is

    @property
    def id(self) -> str:
        """The id of the conversation; `Session(…, session_id=…)` continues it."""
        return self._agent.id

    @property
    def project(self) -> str:
        """The absolute path of the project's folder."""
        return self._agent.project

    @property
    def location(self) -> str:
        """Where the project is: its path, or a URL such as `ssh://me@build/srv/app`."""
        return self._agent.resources.world.location

    @property
    def settings(self) -> Settings:
        """The settings in effect, with the problems of their files."""
        return self._agent.settings

    @property
    def model(self) -> Model:
        """The model of the main agent."""
        return self._agent.model

    @property
    def transcript_path(self) -> str:
        """The file that holds the conversation."""
        return self._agent.conversation.path

    @property
    def messages(self) -> list[Message]:
        """The conversation as the model sees it."""
        return self._agent.messages

    @property
    def last_result(self) -> TurnResult | None:
        """The result of the last turn."""
        return self._agent.last_result

    @property
    def question(self) -> str | None:
        """What the agent has asked; your next message answers it, even in a session that continues this one."""
        return self._agent.conversation.question

    @property
    def checkpoint(self) -> str | None:
        """The checkpoint that waits for your yes or no, which is the next message, even in a session that continues this one."""
        return self._agent.conversation.checkpoint

    @property
    def is_running(self) -> bool:
        """Whether a turn is running."""
        return self._agent.turn is not None

    @property
    def hooks_enabled(self) -> bool:
        """Whether hooks run: not with `hooks=False`, and not in a session that a hook has started."""
        return self._agent.hooks.enabled

    # Open and close

    async def __aenter__(self) -> Self:
        """Do not open the session yet: its first turn does, so that opening can be interrupted too."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await finish_despite_cancel(self.close())

    async def open(self, source: Source | None = None) -> None:
        """Lock and read the conversation, and fire SessionStart. The first turn does this if you do not."""
        await self._agent.open(source)

    async def close(self, reason: EndReason = "other") -> None:
        """Fire SessionEnd and release the session; hooks in the background get `background_grace` seconds."""
        agent = self._agent
        await agent.stop_turn()
        agent.wakes.close()
        for command in await agent.background.close():
            agent.events.notice(f"background command killed because it was still running: {command}")
        if agent.conversation.is_open:
            self._keep_reports()
            await self._end(reason)
        else:
            await finish_despite_cancel(self._close_all())

    # Turns

    async def send(self, prompt: str, *, skip_stop_hook: bool = False) -> TurnResult:
        """Run one turn: from the user's message until control returns to the user."""
        return await self._run_prompt(InboxEntry(prompt), skip_stop_hook=skip_stop_hook)

    async def run_command(self, text: str) -> TurnResult:
        """Run one turn for a slash command, `/plan add login`; a workflow with checkpoints ends at the first of them."""
        name, arguments = parse_call(text) or (text.removeprefix("/"), "")
        command = self.commands.find(name)
        notices: tuple[str, ...] = ()
        if (unrun := command.not_run) is not None:
            notices = (f"{command.file}: {unrun} is not run; the agent gets it as text",)
        entry = InboxEntry(text, workflow=expand(command, arguments), notices=notices)
        return await self._run_prompt(entry)

    async def _run_prompt(self, entry: InboxEntry, *, skip_stop_hook: bool = False) -> TurnResult:
        agent = self._agent
        agent.wakes.count_anew()
        # The user's message runs the agent anyway, so these do not count.
        agent.inbox.put_all(replace(entry, counts=False) for entry in agent.wakes.take())
        return await agent.run_turn(entry, skip_stop_hook=skip_stop_hook)

    @property
    def commands(self) -> SlashCommands:
        """The slash commands from files. They are read when first needed, or at the start if they are on another machine."""
        if self._commands is None:
            self._commands = load_commands(self.project, self.settings.plugin_dirs, files=LOCAL)
        return self._commands

    def stream(self, prompt: str) -> AsyncIterator[SessionEvent]:
        """Run one turn and yield its events; the last one is its `TurnEnd`."""
        return self._agent.events.stream(lambda: self.send(prompt))

    @property
    def has_background_results(self) -> bool:
        """Whether a background command has ended, or a background hook has blocked; `answer_background` tells the agent."""
        agent = self._agent
        return bool(agent.background.ended or agent.wakes.waiting) and not agent.conversation.waits_for_user

    async def answer_background(self) -> TurnResult | None:
        """Run a turn with the results of commands, and the blocks of hooks, in the background, if there are any."""
        agent = self._agent
        if agent.conversation.waits_for_user:
            return None  # they wait for the answer to the question or checkpoint
        wakes = agent.wakes.take()  # if the limit was reached meanwhile, they are dropped
        entries = [*agent.background.take_ended(), *(wakes if agent.guard.below_limit else ())]
        if not entries:
            return None
        agent.inbox.put_all(entries[1:])
        return await agent.run_turn(entries[0])

    def interrupt(self) -> None:
        """End the turn, whatever it is doing; nothing that it started keeps running."""
        self._agent.interrupt()

    def queue(self, prompt: str) -> None:
        """Add a message while a turn runs; it is answered after the one that is being answered."""
        self._agent.wakes.count_anew()
        self._agent.inbox.put(InboxEntry(prompt, waited=True))
        self._agent.announcements.wake()

    @property
    def queued(self) -> int:
        """How many messages wait for an answer."""
        return self._agent.inbox.count("user")

    def take_queued(self) -> list[str]:
        """Remove the messages that wait, and return them."""
        return [entry.text for entry in self._agent.inbox.take("user")]

    def refresh_hooks(self, reviewed: Settings) -> None:
        """Use hooks that have been approved or rejected in the meantime: `session.refresh_hooks(load_settings(project))`.

        A hook that has changed and is pending keeps running as it was at the start, and so does one that is no longer configured.
        """
        resources = self._agent.resources
        resources.settings = with_running_gates_held(refreshed(resources.settings, reviewed))

    def allow(self, tool: str) -> None:
        """Permit a tool for the rest of the session, without a question."""
        self._agent.permissions.allowed.add(tool)

    # The conversation

    async def compact(self, instructions: str = "") -> bool:
        """Replace the conversation with its summary, between two turns."""
        agent = self._agent
        return await compact(agent.loop_context(TurnState(agent.new_guard())), "manual", instructions)

    async def reset(self) -> None:
        """Forget the conversation; the next message starts a new one."""
        agent = self._agent
        if agent.turn is not None:
            raise UsageError("this session is in the middle of a turn; `interrupt` ends it")
        await agent.open()
        await agent.subagents.kill_all(self.id, "", "session-reset")
        await agent.background.kill(agent.background.alive)
        agent.background.take_ended()
        agent.wakes.take()
        await agent.announcements.discard()
        await self._fire_session_end("clear")
        agent.conversation.clear()
        remove_goal_of(state_folder(), self.id)
        agent.events.forget_missed()
        agent.inbox.clear()
        agent.count_anew()
        await agent.fire_session_start("clear")

    # Its end

    def _on_rewake_end(self, run: HookRun) -> None:
        """A hook with `asyncRewake` has ended: its block wakes the agent, its failure is reported."""
        self._agent.wakes.add(run)
        if not_enforced := outputs(unenforced((run,), self.settings.dialect)):
            self._add_unenforced(not_enforced)
            for text, hint in warnings_with_hints((run,), self.settings.dialect):
                self._agent.events.notice(text, hint)

    def _keep_reports(self) -> None:
        """Write the reports of commands that wait for an answer to the transcript: the next process cannot ask them."""
        agent = self._agent
        for entry in (*agent.inbox.take("background"), *agent.background.take_ended()):
            with contextlib.suppress(OSError):  # a full disk must not keep the session open
                agent.conversation.append(UserMessage(entry.text, entry.origin))

    async def _end(self, reason: EndReason) -> None:
        try:
            if reason == "prompt_input_exit":
                await self._agent.subagents.kill_all(self.id, "", "the user has left")
            await self._fire_session_end(reason)
        finally:
            try:
                await self._end_background_hooks()
            finally:
                await finish_despite_cancel(self._close_all())

    async def _fire_session_end(self, reason: EndReason) -> None:
        """Fire SessionEnd; a hook that was not enforced counts for `strict`, which judges the last turn."""
        hooks = self._agent.hooks
        verdict = await hooks.fire(SessionEnd(**hooks.event_fields(), reason=reason))
        self._add_unenforced(verdict.unenforced)

    def _add_unenforced(self, hooks: Sequence[HookOutput]) -> None:
        """Add hooks that were not enforced to the result of the turn, or of the last one."""
        agent, last = self._agent, self._agent.last_result
        if agent.turn is not None:
            agent.turn.unenforced += hooks
        elif last is not None and hooks:
            agent.last_result = replace(last, unenforced=(*last.unenforced, *hooks))

    async def _end_background_hooks(self) -> None:
        world, last = self._agent.resources.world, self.last_result
        if last is not None and last.ended_by == "interrupt":
            world.awaited.clear()  # the user does not wait for hooks with `asyncRewake` either
        if await world.close(self.settings.dialect.background_grace):
            self._agent.events.notice(describe_killed(world))

    async def _close_all(self) -> None:
        agent = self._agent
        if runs := agent.announcements.running_in_background():
            count = "1 subagent has" if len(runs) == 1 else f"{len(runs)} subagents have"
            resume = f"turngate run {ssh_option(agent.resources.world)}--resume --session {self.id}"
            agent.events.notice(f"{count} not finished: {names_of(runs)}; continue with `{resume}`")
        await agent.subagents.close()
        agent.release()
        await agent.resources.close(agent.model, notice=agent.events.notice)
        if agent.resources.journal.fault:
            agent.events.notice(agent.resources.journal.fault)


def _with_agent_types(
    settings: Settings, project: str, files: Files, *, trust: bool
) -> tuple[Settings, dict[str, AgentType], list[str]]:
    """Read the agent types. Return the settings with their hooks, reviewed, the types, and notices about their files."""
    agent_types, problems = load_agent_types(project, settings.plugin_dirs, files=files)
    rules, not_loaded, not_run = agent_type_rules(agent_types.values(), settings.dialect)
    if rules or not_loaded:
        reviewed = review_agent_hooks(rules, project, settings.dialect.name, trust=trust, files=files)
        settings = settings.with_rules(*reviewed, problems=not_loaded)
    return with_running_gates_held(settings), agent_types, [*first_notices(problems), *first_notices(not_run)]


def _workspace(project: str | World, shell: Shell | None) -> World:
    """Return the workspace of a session. Raises UsageError if its files cannot be read from here."""
    if isinstance(project, str):
        return World(shell or LocalShell(), project_path(project, LOCAL))
    if shell is not None:
        raise UsageError("a session in a workspace uses the shell of the workspace; leave `shell` out")
    if project.machine and _is_on_event_loop():
        instead = "use `await Session.in_workspace(workspace, model)`"
        raise UsageError(f"{project.location} is on another machine; {instead}")
    return project


def _is_on_event_loop() -> bool:
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop() is not None
    return False


def _check_settings(settings: object) -> None:
    if not isinstance(settings, Settings | None):
        name = type(settings).__name__
        raise UsageError(f"a session takes Settings, not {name}; `Options(…).settings()` gives them")
