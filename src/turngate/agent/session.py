"""The session: ask the model, run its tools, ask again; when it would stop, ask the hooks."""

import asyncio
import os
import random
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self

from turngate.agent.compact import compact, nearly_full
from turngate.agent.history import SessionLock, chat_path, read_past
from turngate.agent.inbox import Entry, Inbox
from turngate.agent.system import read_exports, system_prompt
from turngate.agent.tools import TOOLS, Workplace
from turngate.agent.transcript import Transcript
from turngate.agent.work import TurnHalted, run_tools
from turngate.core import events
from turngate.core.guard import GoHome, GoOn, LoopGuard, new_guard
from turngate.core.hooks import label
from turngate.core.messages import Message, ModelRequest, Reply, Results, Said, ToolResult, ToolUse, Usage
from turngate.core.moments import context_of, refusal_of
from turngate.core.reports import Exited
from turngate.core.settings import Rule, Settings
from turngate.core.turn import (
    Continuation,
    HookFinished,
    HookStarted,
    Notice,
    SessionEvent,
    StreamEnd,
    TextDelta,
    TurnEnd,
    TurnResult,
)  # fmt: skip
from turngate.core.verdict import HookRun, Stop, Verdict, notices, outcome, warnings
from turngate.engine import ask_hooks
from turngate.errors import ModelError, UsageError
from turngate.journal import Journal, session_folder, state_folder
from turngate.plugins.observers import PluginContext, Plugins, StopPayload
from turngate.ports import Model, World
from turngate.settings.files import load_settings
from turngate.shells.local import LocalShell
from turngate.tasks import in_thread, is_cancelled, to_the_end

PermissionMode = Literal["default", "acceptEdits", "plan", "bypassPermissions"]
RETRIES = (0.5, 1.0, 2.0, 4.0, 8.0)  # seconds between requests to a provider that is overloaded
ANSWERABLE = (
    "allowed",
    "capped",
    "stalled",
    "question",
)  # ends after which a message that waits is still answered
CUT_ANSWERS = 3  # how often an answer that was cut off is asked for again


@dataclass
class Turn:
    """One turn while it runs: what it has come to so far."""

    guard: LoopGuard
    started: float = field(default_factory=time.monotonic)
    requests: int = 0
    tool_calls: int = 0
    usage: Usage = field(default_factory=Usage)
    runs: list[HookRun] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    answer: str = ""  # the last one that was not blank
    continuations: int = 0
    question: str | None = None
    results: list[ToolResult] = field(default_factory=list)  # of the answer whose tools are being run
    prompt_id: str = field(default_factory=lambda: str(uuid.uuid4()))


class Session:
    """An agent that works on a project under its stop hooks."""

    def __init__(
        self, project: str, model: Model, settings: Settings | None = None, *,
        dialect: str = "turngate", session_id: str | None = None, state: str | None = None,
        permission_mode: PermissionMode = "default", allow: Collection[str] = (), extra_paths: Sequence[str] = (),
        permit: Callable[[ToolUse, str], Awaitable[bool]] | None = None,
        limit: int | None = None, max_turns: int | None = None, hooks: bool = True, skip_stop_hook: bool = False,
        plugins: Plugins | None = None, on_event: Callable[[SessionEvent], None] | None = None,
        retries: Sequence[float] = RETRIES,
    ) -> None:  # fmt: skip
        self.project = os.path.abspath(project)
        self.model = model
        self.settings = settings or load_settings(self.project, dialect=dialect)
        self.id = session_id or str(uuid.uuid4())
        self.state = state or state_folder()
        self.folder = session_folder(self.state, self.id)
        self.permission_mode = permission_mode
        self.allowed = set(allow)
        self.permit = permit
        self.limit, self.max_turns, self.retries = limit, max_turns, retries
        self.hooks, self.skip_stop_hook = hooks, skip_stop_hook
        self.plugins = plugins or Plugins()
        self.plugins.bind(PluginContext(self.id, self.project, self.state, self.settings))
        self.inbox = Inbox()
        self.messages: list[Message] = []
        self.journal = Journal(self.state)
        env_file = os.path.join(self.folder, "env")
        named = {"CLAUDE_ENV_FILE": env_file, "TURNGATE_ENV_FILE": env_file}
        environ = {**os.environ, **named}
        self.world = World(LocalShell(), self.project, self.journal, environ, watch=self._watch)
        self.workplace = Workplace(self.project, {**os.environ, **self.settings.env}, tuple(extra_paths))
        self.transcript_path = chat_path(self.state, self.id, self.settings.dialect.name)
        self._listener = on_event
        self._lock = SessionLock(os.path.join(self.folder, "lock"))
        self._transcript: Transcript | None = None
        self._turn: Turn | None = None
        self._task: asyncio.Task[GoHome] | None = None
        self._interrupted = False
        self._context: list[str] = []  # what SessionStart hooks want the model to know
        self._kept_continuations = 0
        self._asking: str = "Stop"

    # The loop

    async def send(self, prompt: str, *, skip_stop_hook: bool = False) -> TurnResult:
        """One turn: from the user's message to the moment when control returns to the user."""
        if self._turn is not None:
            raise UsageError("this session is in the middle of a turn; `queue` adds a message to it")
        self._interrupted = False
        self._turn = Turn(self._new_guard())
        self._task = asyncio.create_task(self._work(prompt))
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

    async def _work(self, prompt: str) -> GoHome:
        try:
            await self.open()
            kept, self._kept_continuations = self._kept_continuations, 0
            self._now.guard, self._now.continuations = self._new_guard(kept), kept
            self.inbox.put(Entry(prompt))
            while True:
                end = await self._round()
                if end is not None and not (len(self.inbox) and end.ended_by in ANSWERABLE):
                    return end
        except TurnHalted as halted:
            return GoHome("halted", stop_reason=halted.reason)
        except ModelError as error:
            return await self._failed(error)

    async def _round(self) -> GoHome | None:
        """One message is answered, and then the gates are asked; None: there is more to do."""
        await asyncio.sleep(0)  # an interrupt that came meanwhile counts before anything is begun
        entry = self.inbox.take()
        if entry is None:
            return GoHome("allowed")
        refused = await self._hear(entry)
        if refused is not None:
            return refused
        end = await self._answer()
        if end is not None:
            return end
        if self.inbox.user_waits and self.settings.dialect.defers_to_user:
            return None  # the agent is not about to stop: somebody waits for an answer (C-31)
        return await self._stop()

    async def _answer(self) -> GoHome | None:
        """Asks the model and runs its tools until it has nothing more to do."""
        tries = 0
        while True:
            turn = self._now
            if self._spent:
                return self._out_of_turns()
            if nearly_full(self.messages, self.model):
                await compact(self, "auto")
            reply = await self._request()
            if reply.stop_reason == "refusal":
                raise ModelError("refusal", reply.text or "the model refused to answer")
            if reply.stop_reason == "max_tokens" and not reply.tool_uses:
                tries += 1
                turn.answer = self._told(reply) or turn.answer
                if tries > CUT_ANSWERS:
                    self.say(reply)
                    raise ModelError(
                        "invalid", "the model's answer was cut off at its limit of tokens, again and again"
                    )
                continue
            if not reply.blocks or (not reply.tool_uses and not reply.text.strip()):
                tries += 1
                if tries == 1:  # an empty answer may be an accident, once
                    continue
            self.say(reply)
            turn.answer = self._told(reply) or turn.answer
            if not reply.tool_uses:
                self.emit(StreamEnd(reply, stop_hook_active=turn.guard.active))
                return None
            self.say(await run_tools(self, reply.tool_uses))
            turn.guard = turn.guard.after_tool_call()
            if turn.question is not None:  # it waits for the user, and nobody pushes it past that
                return None if self.settings.dialect.asks_while_waiting else GoHome("question")

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
            case GoOn() if self._spent:
                return self._out_of_turns()  # nobody could answer it any more
            case GoOn(prompt, guard):
                turn.guard, turn.continuations = guard, turn.continuations + 1
                self.inbox.put(Entry(prompt, "stop_hook", guard))
                self.emit(Continuation(prompt, guard.continuations, guard.limit))
                return None

    @property
    def _spent(self) -> bool:
        return self.max_turns is not None and self._now.requests >= self.max_turns

    def _out_of_turns(self) -> GoHome:
        return GoHome("max_turns", stop_reason=f"the limit of {self.max_turns} model requests is reached")

    def _told(self, reply: Reply) -> str:
        """The answer as a result: all of its text, or in Claude Code's way its last block."""
        if self.settings.dialect.last_text_block_only:
            return reply.texts[-1].strip() if reply.texts else ""
        return reply.text if reply.text.strip() else ""

    async def _request(self) -> Reply:
        """One answer, asked for again while the provider is overloaded."""
        request = ModelRequest(
            messages=tuple(self.messages),
            system=system_prompt(self.project, self._context),
            tools=tuple(tool.spec for tool in TOOLS.values()),
        )
        for pause in (*self.retries, None):
            self._now.requests += 1
            try:
                reply = await self.model.ask(request, lambda text: self.emit(TextDelta(text)))
            except ModelError as error:
                if not error.passing or pause is None:
                    raise
                self.notice(f"the model did not answer ({error}); asking again in {pause:g} s")
                await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - no secret
            else:
                self._now.usage += reply.usage
                return reply
        raise AssertionError("the last try either returns or raises")

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
        self._lock.take()
        try:
            past = await in_thread(read_past, self.transcript_path)
            self.messages = list(past.messages)
            self._kept_continuations = past.continuations
            self._transcript = Transcript(self.transcript_path, self.id, self.project, parent=past.last)
            for problem in self.settings.errors:
                self.notice(str(problem))
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

    async def reset(self) -> None:
        """Forgets the conversation; the next message starts a new one."""
        if self._turn is not None:
            raise UsageError("this session is in the middle of a turn; `interrupt` ends it")
        await self.open()
        await self.fire(events.SessionEnd(**self.common(), reason="clear"))
        self.messages, self.inbox, self._kept_continuations = [], Inbox(), 0
        self.transcript.add({"type": "cleared"})
        await self.begin("clear")

    async def close(self, reason: Literal["clear", "prompt_input_exit", "other"] = "other") -> None:
        """Fires SessionEnd and lets go of the session; hooks in the background get their last seconds."""
        if self._task is not None:
            self.interrupt()
            await asyncio.wait({self._task})
        if self._transcript is None:
            return
        try:
            await self.fire(events.SessionEnd(**self.common(), reason=reason))
        finally:
            ended = await self.world.close(self.settings.dialect.background_grace)
            if ended:
                self.notice(f"{ended} hook(s) in the background did not end in time and were ended")
            self._let_go()
            await self.model.close()
            await to_the_end(in_thread(self.journal.close))

    def _let_go(self) -> None:
        if self._transcript is not None:
            self._transcript.close()
            self._transcript = None
        self._lock.release()

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

    def say(self, message: Message, **meta: Any) -> None:
        """What the model sees is on disk before it sees it."""
        self.transcript.say(message, **meta)
        self.messages.append(message)

    def emit(self, event: SessionEvent) -> None:
        if self._listener:
            self._listener(event)

    def notice(self, text: str) -> None:
        if self._turn:
            self._turn.notices.append(text)
        self.emit(Notice(text))

    def common(self) -> dict[str, Any]:
        return {
            "session_id": self.id,
            "transcript_path": self.transcript_path,
            "cwd": self.project,
            "permission_mode": self.permission_mode,
        }

    async def fire(self, event: events.Event) -> Verdict:
        """Asks the hooks of one event; what they say to the user is said, whatever they decide."""
        if not self.hooks:
            return Stop()
        self._asking = event.name
        verdict = await ask_hooks(event, self.settings, self.world)
        if self._turn:
            self._turn.runs += verdict.runs
        for text in (*notices(verdict.runs), *warnings(verdict.runs, self.settings.dialect)):
            self.notice(text)
        for run in verdict.runs:
            self._keep_output(run)
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
        last = next((message for message in reversed(self.messages) if isinstance(message, Reply)), None)
        return events.StopEvent(
            **self.common(),
            stop_hook_active=turn.guard.active,
            last_assistant_message=last.texts if last else None,
            continuation_count=turn.guard.continuations,
            limit=turn.guard.limit,
            prompt_id=turn.prompt_id,
            usage={"input_tokens": turn.usage.input_tokens, "output_tokens": turn.usage.output_tokens},
            duration_ms=int((time.monotonic() - turn.started) * 1000),
            tool_calls=turn.tool_calls,
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
        if self._transcript is not None:
            self._answer_open_calls(end)
        elapsed = time.monotonic() - turn.started
        result = TurnResult(
            ended_by=end.ended_by, session_id=self.id, transcript_path=self.transcript_path, result=turn.answer,
            stop_reason=end.stop_reason or end.notice, question=turn.question, continuations=turn.continuations,
            model_requests=turn.requests, tool_calls=turn.tool_calls, usage=turn.usage,
            duration_ms=int(elapsed * 1000), model=self.model.name,
            hook_runs=tuple(turn.runs), notices=tuple(turn.notices),
        )  # fmt: skip
        if self._transcript is not None:
            why = end.notice or end.stop_reason
            self._transcript.add({"type": "turn_end", "ended_by": end.ended_by, "notice": why})
        await self._tell_observers(result, elapsed, tell_stop=tell_stop)
        self._turn = None
        self.emit(TurnEnd(result))
        return result

    def _answer_open_calls(self, end: GoHome) -> None:
        """Every tool call has its result: providers refuse a conversation in which one is missing."""
        last = self.messages[-1] if self.messages else None
        if isinstance(last, Reply) and last.tool_uses:
            known = {result.tool_use_id: result for result in self._now.results}
            lost = f"no result: the turn was ended ({end.ended_by}) while this was to run or ran"
            answers = (known.get(use.id, ToolResult(use.id, lost, is_error=True)) for use in last.tool_uses)
            self.say(Results(tuple(answers)))

    async def _tell_observers(self, result: TurnResult, elapsed: float, *, tell_stop: bool) -> None:
        """Once, at the final end, with what the whole turn used; what they do changes nothing."""
        await self.plugins.tell("conversation", tuple(self.messages))
        if tell_stop:
            good = result.outcome not in ("error", "interrupted")
            payload = StopPayload(
                session_id=self.id, result=result, usage=result.usage if good else Usage(),
                turns_count=result.model_requests if good else 0, tool_calls_count=result.tool_calls if good else 0,
                duration=elapsed if good else 0, model=self.model.name.replace(":", "/", 1),
                continuations=result.continuations, ended_by=result.ended_by,
                partial_usage=result.usage, elapsed=elapsed,
            )  # fmt: skip
            await self.plugins.tell("stop", payload)
        for complaint in self.plugins.complaints:
            self.emit(Notice(complaint))
        self.plugins.complaints.clear()
