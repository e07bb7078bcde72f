"""An agent: its model, its tools, its conversation on disk, and the hooks that are asked about it."""

import asyncio
import os
import uuid
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from turngate.agent.hook_agent import HookAgent
from turngate.agent.loop_context import TurnHalted
from turngate.agent.session_store import SessionLock
from turngate.agent.system_prompt import system_prompt
from turngate.agent.tools import Tool, ToolContext
from turngate.agent.turn import Turn
from turngate.core import events
from turngate.core.hooks import label
from turngate.core.inbox import Inbox, InboxEntry
from turngate.core.loop_guard import EndTurn
from turngate.core.messages import Message, ToolResult, ToolResults, ToolUse, UserMessage
from turngate.core.reports import Exited
from turngate.core.session_events import (
    HookFinished,
    HookStarted,
    Notice,
    SessionEvent,
    SubagentFinished,
    TurnResult,
)
from turngate.core.settings import Rule, Settings
from turngate.core.subagent_run import SubagentRun
from turngate.core.verdict import HookRun, Stop, Verdict, notices, outcome, run_message, warnings
from turngate.engine import ask_hooks
from turngate.errors import UsageError
from turngate.models.resolve import JudgeModels, open_model
from turngate.plugins.handlers import PluginContext, Plugins
from turngate.ports import Model, World
from turngate.settings.load import load_settings
from turngate.shells.local import LocalShell
from turngate.state.journal import Journal
from turngate.state.paths import main_transcript_path, session_folder, state_folder
from turngate.subagents.host import SubagentRole
from turngate.subagents.limits import SubagentLimits
from turngate.subagents.manager import SubagentManager
from turngate.transcript.writer import Transcript

PermissionMode = Literal["default", "acceptEdits", "plan", "bypassPermissions"]
RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between requests to a provider that is overloaded
MOST_REQUESTS = 500  # to the model in one turn, where nobody says otherwise: no loop is without an end
CHILD_EVENTS = (
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "StopFailure",
)  # its stop is its parent's


class SessionBase:
    """What a session has and says; what it does is `Session`'s."""

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
        children: SubagentLimits | None = None,
        role: SubagentRole | None = None,
        parent: "SessionBase | None" = None,
        announcer: Callable[[SubagentRun], Awaitable[None]] | None = None,
        on_step: Callable[[str, SubagentRun], None] | None = None,
    ) -> None:
        self.project = os.path.abspath(project)
        self.model: Model = open_model(model) if isinstance(model, str) else model
        self.role = role
        given: object = settings
        if not isinstance(given, Settings | None):
            kind = type(given).__name__
            raise UsageError(f"a session takes Settings, not {kind}; `Options(…).settings()` gives them")
        self.settings = settings or load_settings(self.project, dialect=dialect)
        self.id = session_id or str(uuid.uuid4())
        self.state = state or state_folder()
        self.folder = session_folder(self.state, self.id)
        self.permission_mode = permission_mode
        self.allowed = set(allow)
        self.permit = permit
        self.agent: Literal["main", "sub", "judge"] = "sub" if role else "main"
        self.compact_again_at = 0
        self.limit, self.retries = limit, retries
        self.max_turns = MOST_REQUESTS if max_turns is None else max_turns
        self.hooks, self.skip_stop_hook = hooks, skip_stop_hook
        self.plugins = plugins or Plugins()
        self.plugins.bind(PluginContext(self.id, self.project, self.state, self.settings))
        self.inbox = Inbox()
        self.messages: list[Message] = []
        self.journal: Journal = parent.journal if parent else Journal(self.state)
        around = parent.workplace.environ if parent else dict(os.environ)
        self.judges: JudgeModels = (
            parent.judges
            if parent
            else JudgeModels(self.settings.judge, self.model, models, {**around, **self.settings.env})
        )
        self.world: World = parent.world if parent else self._own_world(around)
        self.workplace: ToolContext = ToolContext(
            self.project, {**around, **self.settings.env}, tuple(extra_paths)
        )
        self.transcript_path = (
            role.transcript if role else main_transcript_path(self.state, self.id, self.settings.dialect.name)
        )
        self.family: SubagentManager = SubagentManager(
            self,
            limits=children,
            models=models,
            root=parent.family if parent else None,
            announcer=announcer,
            on_step=on_step,
        )
        self.workplace.start_child = self.family.start
        self.tools: Mapping[str, Tool] = self.family.tools()
        self.last_result: TurnResult | None = None
        self.own_model = parent is not None and self.model is not parent.model
        self.listener = on_event
        self.lock = SessionLock(os.path.join(self.folder, "lock"))
        self.written: Transcript | None = None
        self.running: Turn | None = None
        self._task: asyncio.Task[EndTurn] | None = None
        self._telling: asyncio.Task[list[str]] | None = None  # observers are being told
        self._over: asyncio.Future[None] | None = (
            None  # done when the turn is over, with all that belongs to it
        )
        self._opening = asyncio.Lock()
        self.keys: set[str] = set()  # of messages that must reach the conversation once, and have
        self.context: list[str] = []  # what SessionStart hooks want the model to know
        self._kept_continuations = 0
        self._halted: TurnHalted | None = None  # what a SessionStart hook said

    def _own_world(self, around: dict[str, str]) -> World:
        """Where the hooks of this session run, and whom they may ask."""
        file = os.path.join(self.folder, "env")
        named = {"CLAUDE_ENV_FILE": file, "TURNGATE_ENV_FILE": file}
        inspector = HookAgent(self.project, self.settings, self.state, self.judges, around, self.journal)
        return World(
            LocalShell(),
            self.project,
            self.journal,
            {**around, **named},
            watch=self._watch,
            judge=self.judges,
            inspect=inspector,
        )

    # For the parts of a turn

    @property
    def transcript(self) -> Transcript:
        if self.written is None:
            raise UsageError("this session is not open; its first message, or `open`, opens it")
        return self.written

    @property
    def turn(self) -> Turn:
        if self.running is None:
            raise UsageError("no turn is running")
        return self.running

    @property
    def in_turn(self) -> bool:
        return self.running is not None

    @property
    def spent(self) -> bool:
        return self.turn.requests >= self.max_turns

    def out_of_turns(self) -> EndTurn:
        return EndTurn("max_turns", stop_reason=f"the limit of {self.max_turns} model requests is reached")

    def system(self) -> str:
        return system_prompt(self.project, self.context, self.role.kind.instructions if self.role else "")

    def say(self, message: Message, **meta: Any) -> None:
        """What the model sees is on disk before it sees it."""
        self.transcript.write_message(message, **meta)
        self.messages.append(message)

    def add_tool_result(self, result: ToolResult, key: str = "") -> None:
        """A tool's result is written as soon as it is there, whatever becomes of the tools beside it."""
        self.transcript.write_message(ToolResults((result,)), **({"key": key} if key else {}))
        self.turn.results.append(result)
        if key:
            self.keys.add(key)
            self.transcript.sync()  # a child's result is handed over once, and this is the moment
            self.family.handed(key)

    def add_tool_results(self, uses: Sequence[ToolUse]) -> None:
        """All tools of an answer have their results: the model gets them as one message, in the order it asked."""
        known = {result.tool_use_id: result for result in self.turn.results}
        self.messages.append(ToolResults(tuple(known[use.id] for use in uses)))

    def emit(self, event: SessionEvent) -> None:
        if self.listener:
            self.listener(event)

    def child_event(self, event: SessionEvent) -> None:
        if isinstance(event, SubagentFinished) and self.running:
            self.running.subagents.append(event)
        self.emit(event)

    def notice(self, text: str) -> None:
        if self.running:
            self.running.notices.append(text)
        self.emit(Notice(text))

    @property
    def identity(self) -> dict[str, str] | None:
        """Who a child is, in each record of its transcript."""
        return {"agentId": self.role.agent_id, "agentType": self.role.kind.name} if self.role else None

    def common(self) -> dict[str, Any]:
        role = self.role
        child = {"agent_id": role.agent_id, "agent_type": role.kind.name} if role else {}
        return {
            "session_id": self.id,
            "transcript_path": role.parent_transcript if role else self.transcript_path,
            "cwd": self.project,
            "permission_mode": self.permission_mode,
            **child,
        }

    async def fire(self, event: events.Event) -> Verdict:
        """Asks the hooks of one event about this agent, and keeps what they print."""
        verdict = await self.ask(event)
        for run in verdict.runs:
            self._keep_output(run)
        return verdict

    async def ask(self, event: events.Event) -> Verdict:
        """Asks the hooks of one event; what they say to the user is said, whatever they decide."""
        if not self.hooks or (self.role and event.name not in CHILD_EVENTS):
            return Stop()
        verdict = await ask_hooks(event, self.settings, self.world)
        if self.running:
            self.running.runs += verdict.runs
        for text in notices(verdict.runs):
            self.notice(text)
        for text in warnings(verdict.runs, self.settings.dialect):
            if self.running is None or text not in self.running.notices:  # a turn asks more than once
                self.notice(text)
        return verdict

    def _keep_output(self, run: HookRun) -> None:
        """A hook's plain words belong to the transcript, unless it asks to keep them off."""
        if isinstance(run.report, Exited) and run.report.stdout.strip() and not run.decision.quiet:
            record = {"type": "hook_output", "event": run.rule.event, "hook": label(run.rule.hook)}
            try:
                self.transcript.write_record({**record, "stdout": run.report.stdout[:10_000]})
            except OSError as error:  # its words are lost, and nothing else
                self.notice(f"what the hook {record['hook']} printed could not be written down: {error}")

    def _watch(self, rule: Rule, run: HookRun | None) -> None:
        if run is None:
            self.emit(HookStarted(rule.event, label(rule.hook)))
        else:
            self.emit(HookFinished(rule.event, label(rule.hook), outcome(run), run.seconds, run_message(run)))

    # Messages that reach the conversation once

    def append_once(self, entry: InboxEntry) -> None:
        """A message with a key reaches the conversation once, however often it is sent."""
        if entry.key not in self.keys:
            mark = {"stopHookActive": True} if entry.origin == "stop_hook" else {}
            self.say(UserMessage(entry.text, entry.origin), key=entry.key, **mark)
            self.keys.add(entry.key)

    def has_delivered(self, key: str) -> bool:
        return key in self.keys

    def clear_inbox(self) -> None:
        self.inbox = Inbox()

    def add_context(self, text: str) -> None:
        self.say(UserMessage(text, "context"))

    def sync(self) -> None:
        if self.written is not None:
            self.written.sync()
