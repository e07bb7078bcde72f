"""The session: ask the model, run its tools, ask again; when it would stop, ask the hooks."""

import asyncio
import os
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from turngate.agent.answer import answer, last_reply
from turngate.agent.children.family import Family, Role
from turngate.agent.children.limits import Limits
from turngate.agent.desk import TurnHalted
from turngate.agent.ending import missing_results, tell_observers
from turngate.agent.history import SessionLock, chat_path, read_past
from turngate.agent.inbox import Entry, Inbox
from turngate.agent.system import read_exports, system_prompt
from turngate.agent.tools import Tool, Workplace
from turngate.agent.transcript import Transcript
from turngate.agent.turn import Turn
from turngate.core import events
from turngate.core.guard import GoHome, GoOn, LoopGuard, new_guard
from turngate.core.hooks import label
from turngate.core.messages import Message, Reply, Results, Said, ToolResult, ToolUse
from turngate.core.moments import context_of, refusal_of
from turngate.core.reports import Exited
from turngate.core.runs import Run
from turngate.core.settings import Rule, Settings
from turngate.core.turn import (
    Continuation,
    HookFinished,
    HookStarted,
    Notice,
    SessionEvent,
    SubagentFinished,
    TurnEnd,
    TurnResult,
)
from turngate.core.verdict import HookRun, Stop, Verdict, notices, outcome, warnings
from turngate.engine import ask_hooks
from turngate.errors import ModelError, UsageError
from turngate.journal import Journal, session_folder, state_folder
from turngate.plugins.observers import PluginContext, Plugins
from turngate.ports import Model, World
from turngate.settings.files import load_settings
from turngate.shells.local import LocalShell
from turngate.tasks import in_thread, is_cancelled, to_the_end

PermissionMode = Literal["default", "acceptEdits", "plan", "bypassPermissions"]
RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between requests to a provider that is overloaded
MOST_REQUESTS = 500  # to the model in one turn, where nobody says otherwise: no loop is without an end
ANSWERABLE = (
    "allowed",
    "capped",
    "stalled",
    "question",
)  # ends after which a message that waits is still answered
CHILD_EVENTS = (
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PreCompact",
    "StopFailure",
)  # its stop is its parent's


class Session:
    """An agent that works on a project under its stop hooks."""

    def __init__(
        self, project: str, model: Model, settings: Settings | None = None, *,
        dialect: str = "turngate", session_id: str | None = None, state: str | None = None,
        permission_mode: PermissionMode = "default", allow: Collection[str] = (), extra_paths: Sequence[str] = (),
        permit: Callable[[ToolUse, str], Awaitable[bool]] | None = None,
        limit: int | None = None, max_turns: int | None = None, hooks: bool = True, skip_stop_hook: bool = False,
        plugins: Plugins | None = None, on_event: Callable[[SessionEvent], None] | None = None,
        retries: Sequence[float] = RETRIES, models: Callable[[str], Model] | None = None,
        children: Limits | None = None, role: Role | None = None, parent: "Session | None" = None,
        announcer: Callable[[Run], Awaitable[None]] | None = None, on_step: Callable[[str, Run], None] | None = None,
    ) -> None:  # fmt: skip
        self.project = os.path.abspath(project)
        self.model = model
        self.role = role
        self.settings = settings or load_settings(self.project, dialect=dialect)
        self.id = session_id or str(uuid.uuid4())
        self.state = state or state_folder()
        self.folder = session_folder(self.state, self.id)
        self.permission_mode = permission_mode
        self.allowed = set(allow)
        self.permit = permit
        self.agent: Literal["main", "sub"] = "sub" if role else "main"
        self.compact_again_at = 0
        self.limit, self.retries = limit, retries
        self.max_turns = MOST_REQUESTS if max_turns is None else max_turns
        self.hooks, self.skip_stop_hook = hooks, skip_stop_hook
        self.plugins = plugins or Plugins()
        self.plugins.bind(PluginContext(self.id, self.project, self.state, self.settings))
        self.inbox = Inbox()
        self.messages: list[Message] = []
        self.journal: Journal = parent.journal if parent else Journal(self.state)
        env_file = os.path.join(self.folder, "env")
        named = {"CLAUDE_ENV_FILE": env_file, "TURNGATE_ENV_FILE": env_file}
        environ = {**os.environ, **named}
        own = World(LocalShell(), self.project, self.journal, environ, watch=self._watch)
        self.world: World = parent.world if parent else own
        self.workplace = Workplace(self.project, {**os.environ, **self.settings.env}, tuple(extra_paths))
        self.transcript_path = (
            role.transcript if role else chat_path(self.state, self.id, self.settings.dialect.name)
        )
        self.family: Family = Family(
            self, limits=children, models=models, root=parent.family if parent else None,
            announcer=announcer, on_step=on_step,
        )  # fmt: skip
        self.workplace.start_child = self.family.start
        self.tools: Mapping[str, Tool] = self.family.tools()
        self.last_result: TurnResult | None = None
        self._own_model = parent is not None and model is not parent.model
        self._listener = on_event
        self._lock = SessionLock(os.path.join(self.folder, "lock"))
        self._transcript: Transcript | None = None
        self._turn: Turn | None = None
        self._task: asyncio.Task[GoHome] | None = None
        self._interrupted = False
        self._keys: set[str] = set()  # of messages that must reach the conversation once, and have
        self._context: list[str] = []  # what SessionStart hooks want the model to know
        self._kept_continuations = 0
        self._halted: TurnHalted | None = None  # what a SessionStart hook said

    # The loop

    async def send(self, prompt: str, *, skip_stop_hook: bool = False) -> TurnResult:
        """One turn: from the user's message to the moment when control returns to the user."""
        return await self.take_turn(Entry(prompt), skip_stop_hook=skip_stop_hook)

    async def take_turn(self, entry: Entry, *, skip_stop_hook: bool = False) -> TurnResult:
        """The same with a message that may come from somebody else."""
        if self._turn is not None:
            raise UsageError("this session is in the middle of a turn; `queue` adds a message to it")
        self._interrupted = False
        self._turn = Turn(self._new_guard())
        self._task = asyncio.create_task(self._work(entry))
        passing = None
        try:
            end = await self._task
        except asyncio.CancelledError as error:
            end = GoHome("interrupt")
            passing = (
                error if is_cancelled() else None
            )  # whoever waits for us is cancelled, and so is the turn
        except BaseException:  # ours, or a listener's: the turn ends in order all the same
            self._task = None
            await to_the_end(self._finish(GoHome("error"), tell_stop=not skip_stop_hook))
            raise
        finally:
            self._task = None
        tell_stop = not (skip_stop_hook or self.skip_stop_hook)
        if end.ended_by == "interrupt":
            await to_the_end(self.family.end("interrupted"))
        await to_the_end(self.family.settled())
        result = await to_the_end(self._finish(end, tell_stop=tell_stop))
        if passing is not None:
            raise passing
        return result

    async def stream(self, prompt: str) -> AsyncIterator[SessionEvent]:
        """One turn as a stream of what happens in it; the last event is its `TurnEnd`."""
        happened: asyncio.Queue[SessionEvent] = asyncio.Queue()
        listener, self._listener = self._listener, happened.put_nowait
        turn = asyncio.create_task(self.send(prompt))
        try:
            while not turn.done() or not happened.empty():
                coming = asyncio.create_task(happened.get())
                await asyncio.wait({coming, turn}, return_when=asyncio.FIRST_COMPLETED)
                if not coming.done() and happened.empty():
                    coming.cancel()
                    break
                yield await coming
            await turn  # raises what went wrong
        finally:
            self._listener = listener
            turn.cancel()

    async def _work(self, entry: Entry) -> GoHome:
        try:
            await self.open()
            self._obey_the_start()
            kept, self._kept_continuations = self._kept_continuations, 0
            self._now.guard, self._now.continuations = self._new_guard(kept), kept
            self.inbox.put_all(await self.family.reports())
            self.inbox.put(entry)
            while True:
                end = await self._round()
                if end is not None and not (end.ended_by in ANSWERABLE and await self._more_to_come()):
                    return end
        except TurnHalted as halted:
            return GoHome("halted", stop_reason=halted.reason)
        except ModelError as error:
            return await self._failed(error)
        except OSError as error:  # the disk is full, or gone
            return GoHome("error", stop_reason=f"the conversation can not be written down: {error}")

    async def _round(self) -> GoHome | None:
        """One message is answered, and then the gates are asked; None: there is more to do."""
        await asyncio.sleep(0)  # an interrupt that came meanwhile counts before anything is begun
        self.inbox.put_all(await self.family.reports())
        entry = self.inbox.take()
        if entry is not None:
            refused = await self._hear(entry)
            if refused is not None:
                return refused
            end = await answer(self)
            if end is not None:
                return end
        if self.inbox.user_waits and self.settings.dialect.defers_to_user:
            return None  # the agent is not about to stop: somebody waits for an answer (C-31)
        waits = bool(self.family.waits()) and not self.settings.dialect.asks_while_waiting
        if waits and await self._report_comes():
            return None  # nor is it while its children work
        if self.role is not None:
            return GoHome("allowed")  # a child's supervisor asks, when the run is over
        return await self._stop()

    async def _more_to_come(self) -> bool:
        """Is there a message that waits, or a child that still works and will report?"""
        return bool(len(self.inbox)) or await self._report_comes()

    async def _report_comes(self) -> bool:
        """Waits while children work in the background, but not for ever; True: something is to be looked at."""
        while not len(self.inbox):
            self.inbox.put_all(await self.family.reports())
            if len(self.inbox) or not self.family.waits():
                break
            if not await self.family.next_news():
                self.notice("children in the background are not waited for any longer")
                return False
        return bool(len(self.inbox))

    async def _stop(self) -> GoHome | None:
        """The agent would stop. May it?"""
        turn = self._now
        await in_thread(self.transcript.settle)  # the hooks read what we wrote
        verdict = await self.fire(self._stop_event())
        step = turn.guard.after(verdict)
        match step:
            case GoHome(notice=notice):
                if notice:
                    self.notice(notice)
                return step
            case GoOn() if self.spent:
                return self.out_of_turns()  # nobody could answer it any more
            case GoOn(prompt, guard):
                turn.guard, turn.continuations = guard, turn.continuations + 1
                self.inbox.put(Entry(prompt, "stop_hook", guard))
                self.emit(Continuation(prompt, guard.continuations, guard.limit))
                return None

    # From outside

    def queue(self, prompt: str) -> None:
        """A message that the user types while the turn runs; it is answered after what is being answered."""
        self.inbox.put(Entry(prompt))

    def interrupt(self) -> None:
        """Ends the turn, whatever it is doing; nothing of it runs afterwards."""
        if self._task is not None and not self._task.done():
            self._interrupted = True
            self.inbox.drop_continuations()
            self._task.cancel()

    async def open(self, source: Literal["startup", "resume", "clear", "compact"] | None = None) -> None:
        """Takes the session for this process, reads where it was left, and fires SessionStart."""
        if self._transcript is not None:
            return
        if self.role is None:  # a child's run has one owner by the register
            self._lock.take()
        try:
            past = await in_thread(read_past, self.transcript_path)
            self.messages, self._keys = list(past.messages), set(past.keys)
            self._kept_continuations = past.continuations if self.role is None else 0
            self._transcript = Transcript(
                self.transcript_path, self.id, self.project, sidechain=self.role is not None, parent=past.last
            )
            if self.role is None:
                for problem in (*self.settings.errors, *self.family.problems):
                    self.notice(str(problem))
            await self.family.open()
            await self.begin(source or ("resume" if past.messages else "startup"))
        except BaseException:
            if (
                self._task is None or self._transcript is None
            ):  # inside a turn it stays open, and its end is told
                self._let_go()
            raise

    async def begin(self, source: Literal["startup", "resume", "clear", "compact"]) -> None:
        verdict = await self.fire(events.SessionStart(**self.common(), source=source, model=self.model.name))
        said = context_of(verdict.runs, plain=True)
        earlier = self._context if source == "compact" else []  # what was said at the start still holds
        self._context = [*earlier, said] if said and said not in earlier else list(earlier)
        exports = read_exports(os.path.join(self.folder, "env"), self.workplace.environ)
        self.workplace.environ.update(exports)
        if isinstance(verdict, Stop) and verdict.halted:
            self._halted = TurnHalted(verdict.stop_reason)
            if source == "compact" and self.in_turn:
                self._obey_the_start()

    def _obey_the_start(self) -> None:
        """A SessionStart hook said `continue: false`: the turn that began the session, or the next one, ends at once."""
        halted, self._halted = self._halted, None
        if halted is not None:
            raise halted

    async def reset(self) -> None:
        """Forgets the conversation; the next message starts a new one."""
        if self._turn is not None:
            raise UsageError("this session is in the middle of a turn; `interrupt` ends it")
        await self.open()
        await self.family.end("session-reset")
        await self.fire(events.SessionEnd(**self.common(), reason="clear"))
        self.messages, self.inbox, self._kept_continuations = [], Inbox(), 0
        self.transcript.add({"type": "cleared"})
        await self.begin("clear")

    async def close(self, reason: Literal["clear", "prompt_input_exit", "other"] = "other") -> None:
        """Fires SessionEnd and lets go of the session; hooks in the background get their last seconds."""
        if self._task is not None:
            self.interrupt()
            await asyncio.wait({self._task})
        if self._transcript is None or self.role is not None:
            self._let_go()
            if self._own_model:
                await self._close_model()
            return
        try:
            if reason == "prompt_input_exit":
                await self.family.end("the user has left")
            await self.fire(events.SessionEnd(**self.common(), reason=reason))
        finally:
            try:
                ended = await self.world.close(self.settings.dialect.background_grace)
                if ended:
                    self.notice(f"{ended} hook(s) in the background did not end in time and were ended")
            finally:
                await to_the_end(self._close_all())

    async def _close_all(self) -> None:
        await self.family.close()
        self._let_go()
        await self._close_model()
        await in_thread(self.journal.close)

    async def _close_model(self) -> None:
        try:
            await self.model.close()
        except Exception as error:  # noqa: BLE001 - foreign code, and the conversation is over
            self.notice(f"the model's connection could not be closed: {type(error).__name__}: {error}")

    def _let_go(self) -> None:
        if self._transcript is not None:
            self._transcript.close()
            self._transcript = None
        self._lock.release()

    # A child's session, for its supervisor

    def child(self, role: Role, model: Model, launch: Mapping[str, Any]) -> "Session":
        """The session of a child of this one."""
        session = Session(
            self.project, model, self.settings, session_id=role.parent, state=self.state, role=role, parent=self,
            permission_mode=launch.get("permission_mode", "default"), allow=launch.get("allow", ()),
            extra_paths=launch.get("extra_paths", ()), permit=self.permit, max_turns=self.max_turns,
            hooks=self.hooks, retries=self.retries, on_event=self._hear_child,
        )  # fmt: skip
        if role.parent == self.id:
            session.allowed = self.allowed  # what the user allows for this session counts for its children
        return session

    def hear_at_once(self, entry: Entry) -> None:
        """A message with a key reaches the conversation once, however often it is sent."""
        if entry.key not in self._keys:
            self.say(Said(entry.text, entry.origin), key=entry.key)
            self._keys.add(entry.key)

    def knows(self, key: str) -> bool:
        return key in self._keys

    def clear_queue(self) -> None:
        self.inbox = Inbox()

    def add_context(self, text: str) -> None:
        self._context.append(text)

    def settle(self) -> None:
        if self._transcript is not None:
            self._transcript.settle()

    def child_event(self, event: SessionEvent) -> None:
        if isinstance(event, SubagentFinished) and self._turn:
            self._turn.subagents.append(event)
        self.emit(event)

    def _hear_child(self, event: SessionEvent) -> None:
        """What a child is told is its own affair; a word to the user is for the user."""
        if isinstance(event, Notice):
            self.notice(event.text)

    async def __aenter__(self) -> Self:
        """The session is opened by its first message, so that the start can be interrupted as everything else."""
        return self

    async def __aexit__(self, *_: object) -> None:
        await to_the_end(self.close())

    # For the parts of a turn

    @property
    def transcript(self) -> Transcript:
        if self._transcript is None:
            raise UsageError("this session is not open; its first message, or `open`, opens it")
        return self._transcript

    @property
    def _now(self) -> Turn:
        if self._turn is None:
            raise UsageError("no turn is running")
        return self._turn

    @property
    def turn(self) -> Turn:
        return self._now

    @property
    def in_turn(self) -> bool:
        return self._turn is not None

    @property
    def spent(self) -> bool:
        return self._now.requests >= self.max_turns

    def out_of_turns(self) -> GoHome:
        return GoHome("max_turns", stop_reason=f"the limit of {self.max_turns} model requests is reached")

    def system(self) -> str:
        return system_prompt(self.project, self._context, self.role.kind.instructions if self.role else "")

    def say(self, message: Message, **meta: Any) -> None:
        """What the model sees is on disk before it sees it."""
        self.transcript.say(message, **meta)
        self.messages.append(message)

    def keep_result(self, result: ToolResult, key: str = "") -> None:
        """A tool's result is written as soon as it is there, whatever becomes of the tools beside it."""
        self.transcript.say(Results((result,)), **({"key": key} if key else {}))
        self._now.results.append(result)
        if key:
            self._keys.add(key)
            self.transcript.settle()  # a child's result is handed over once, and this is the moment
            self.family.handed(key)

    def keep_results(self, uses: Sequence[ToolUse]) -> None:
        """All tools of an answer have their results: the model gets them as one message, in the order it asked."""
        known = {result.tool_use_id: result for result in self._now.results}
        self.messages.append(Results(tuple(known[use.id] for use in uses)))

    def emit(self, event: SessionEvent) -> None:
        if self._listener:
            self._listener(event)

    def notice(self, text: str) -> None:
        if self._turn:
            self._turn.notices.append(text)
        self.emit(Notice(text))

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
        if self._turn:
            self._turn.runs += verdict.runs
        for text in (*notices(verdict.runs), *warnings(verdict.runs, self.settings.dialect)):
            self.notice(text)
        return verdict

    def _keep_output(self, run: HookRun) -> None:
        """A hook's plain words belong to the transcript, unless it asks to keep them off."""
        if isinstance(run.report, Exited) and run.report.stdout.strip() and not run.decision.quiet:
            record = {"type": "hook_output", "event": run.rule.event, "hook": label(run.rule.hook)}
            self.transcript.add({**record, "stdout": run.report.stdout[:10_000]})

    def _watch(self, rule: Rule, run: HookRun | None) -> None:
        if run is None:
            self.emit(HookStarted(rule.event, label(rule.hook)))
        else:
            self.emit(HookFinished(rule.event, label(rule.hook), outcome(run), run.seconds))

    # The ends of a turn

    def _new_guard(self, kept: int = 0) -> LoopGuard:
        guard = new_guard(self.settings, self.world.environ, limit=self.limit)
        return replace(guard, count=kept, continuations=kept)

    async def _hear(self, entry: Entry) -> GoHome | None:
        """The message reaches the conversation; a user's is first shown to the UserPromptSubmit hooks."""
        turn = self._now
        turn.question = None
        if entry.guard is not None:
            turn.guard = entry.guard
            self.say(
                Said(entry.text, entry.origin), continuation=entry.guard.continuations, stopHookActive=True
            )
            return None
        if entry.key:
            self.hear_at_once(entry)
            if entry.origin == "subagent":
                turn.guard, turn.prompt_id = self._new_guard(), str(uuid.uuid4())
                await in_thread(self.transcript.settle)
                await self.family.took(entry.key)
            return None
        verdict = await self.fire(events.UserPromptSubmit(**self.common(), prompt=entry.text))
        refused = refusal_of(verdict.runs)
        if isinstance(verdict, Stop) and verdict.halted:
            return GoHome("halted", stop_reason=verdict.stop_reason)
        if refused is not None:
            self.notice(f"a hook refused the prompt: {refused}")
            return GoHome("halted", stop_reason=refused)
        if turn.requests:  # a further message of the user's starts its own count (C-16)
            turn.guard, turn.prompt_id = self._new_guard(), str(uuid.uuid4())
        kept = {"continuation": turn.guard.continuations} if turn.guard.active else {}
        self.say(Said(entry.text), **kept)
        context = context_of(verdict.runs, plain=True)
        if context:
            self.say(Said(context, "context"), **kept)
        return None

    def _stop_event(self) -> events.StopEvent:
        turn = self._now
        last = last_reply(self.messages)
        return events.StopEvent(
            **self.common(),
            stop_hook_active=turn.guard.active,
            last_assistant_message=last.texts if last else None,
            continuation_count=turn.guard.continuations,
            limit=turn.guard.limit,
            prompt_id=turn.prompt_id,
            usage={"input_tokens": turn.usage.input_tokens, "output_tokens": turn.usage.output_tokens},
            duration_ms=int(turn.elapsed * 1000),
            tool_calls=turn.tool_calls,
            background_tasks=self.family.tasks(),
        )

    async def _failed(self, error: ModelError) -> GoHome:
        """A provider's error is no stop: no gate is asked, and StopFailure only watches."""
        said = f"the model failed ({error.kind}): {error}"
        self.notice(said)
        await self.fire(
            events.StopFailure(**self.common(), error=error.kind, last_assistant_message=str(error))
        )
        return GoHome("error", stop_reason=said)

    async def _finish(self, end: GoHome, *, tell_stop: bool) -> TurnResult:
        turn = self._now
        self.inbox.drop_continuations()
        self._write_end(end)
        elapsed = turn.elapsed
        result = turn.result(
            end, session_id=self.id, transcript_path=self.transcript_path, model=self.model.name
        )
        for complaint in await tell_observers(
            self.plugins, result, self.messages, elapsed, tell_stop=tell_stop
        ):
            self.emit(Notice(complaint))
        self._turn = None
        self.last_result = result
        self.emit(TurnEnd(result))
        return result

    def _write_end(self, end: GoHome) -> None:
        if self._transcript is None:
            return
        try:
            self._answer_open_calls(end)
            why = end.notice or end.stop_reason
            self._transcript.add({"type": "turn_end", "ended_by": end.ended_by, "notice": why})
        except OSError as error:  # a full disk takes the record of the end, not the end
            self.notice(f"the end of the turn could not be written down: {error}")

    def _answer_open_calls(self, end: GoHome) -> None:
        last = self.messages[-1] if self.messages else None
        if isinstance(last, Reply) and last.tool_uses:
            for result in missing_results(self.messages, self._now.results, end):
                self.keep_result(result)
            self.keep_results(last.tool_uses)
