"""A conversation: what the user says is worked on, what happens is shown, and either side may be interrupted."""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, assert_never

from turngate.agent.compaction import compact
from turngate.agent.session import Session
from turngate.cli.terminal import format as words
from turngate.cli.terminal.ui import Activity, TerminalUI
from turngate.core.constants import STOP_EVENTS
from turngate.core.messages import ToolUse
from turngate.core.session_events import (
    Compacted,
    Continuation,
    HookFinished,
    HookStarted,
    Notice,
    SessionEvent,
    StreamEnd,
    SubagentFinished,
    SubagentRedirected,
    SubagentStarted,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnEnd,
    TurnResult,
)
from turngate.errors import ModelError
from turngate.settings.lint import lint

MODEL = ("asking the model", "the model answers")
TWICE = 2.0  # seconds between two Ctrl-C that mean "leave"
LATE = 0.5  # seconds; a Ctrl-C so soon after a turn's end was meant for the turn


class Conversation:
    """What the user says is worked on, one thing after another, and what happens is shown."""

    def __init__(self, face: TerminalUI, start: Callable[..., Session]) -> None:
        self.face = face
        self.session = start(permit=self.permit, on_event=self.tell)
        self._jobs: deque[str] = deque()  # messages and commands, in the order in which they were said
        self._news = asyncio.Event()
        self._working: asyncio.Task[None] | None = None
        self._in_turn = False
        self._interrupted = False
        self._ended = self._ctrl_c = float("-inf")  # when the last turn ended, when Ctrl-C was pressed last
        self._last = False  # nothing more is going to be said
        self._code: int | None = None  # once we leave
        self._answer: asyncio.Future[words.Permission] | None = None
        self._question = ""
        self._one_question = asyncio.Lock()
        self._thought = 0.0  # seconds that the user took for an answer; they are not the tool's
        self._doing: Activity | None = None  # the model or a tool
        self._hooks: list[tuple[str, float]] = []  # those that run, and since when
        self._children: dict[str, str] = {}  # those that work, and what they are called
        self._cut: str | None = None  # what ran when the user interrupted

    async def run(self, first: str | None) -> int:
        """Until the user leaves; gives the exit code."""
        try:
            await self._work(self.session.open())
            self._greet()
            if first and first.strip():
                self.face.say(f"> {first}", "you")
                self._jobs.append(first)
            while (job := await self._next()) is not None:
                await self._work(self._do(job))
        finally:
            await self._work(self.session.close("prompt_input_exit" if self._code == 0 else "other"))
        if self.face.for_people and self.session.messages:
            self.face.say(f"turngate run --session {self.session.id} goes on with this conversation", "dim")
        return self._code or 0

    def _greet(self) -> None:
        settings = self.session.settings
        for problem in settings.problems:
            if (
                problem.severity != "note" and problem not in settings.not_loaded
            ):  # which the session has said
                self.face.say(f"! {problem}", "note")
        if self.face.for_people:
            past = f", {len(self.session.messages)} messages so far" if self.session.messages else ""
            self.face.say(f"{self.session.model.name} in {self.session.project}{past}", "dim")
            self.face.say("/help shows the commands and keys", "dim")

    async def _next(self) -> str | None:
        """What is to be done next; None: the user leaves."""
        while self._code is None and not self._jobs:
            if self._last:
                self._code = 0
                break
            self._news.clear()
            self.face.ready()
            await self._news.wait()
        return self._jobs.popleft() if self._code is None else None

    async def _work(self, job: Coroutine[Any, Any, None]) -> None:
        """Works on one thing; an interrupt ends it and nothing else."""
        self._interrupted = False
        self._working = asyncio.create_task(job)
        try:
            await self._working
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            self.face.say("interrupted", "note")
        finally:
            self._working = None
            self._doing, self._hooks = None, []
            self.face.end_stream()
            self.face.doing(None)

    # What there is to do

    async def _do(self, job: str) -> None:
        """A full disk ends what was asked for, and not the conversation."""
        try:
            await self._done(job)
        except OSError as error:
            self.face.say(f"! {error}", "loud")

    async def _done(self, job: str) -> None:
        name, rest = words.command(job)
        match name:
            case None:
                await self._turn(rest)
            case "/compact":
                await self._compact(rest)
            case "/clear":
                await self.session.reset()
                self.face.say("the conversation is forgotten", "dim")
            case _:
                self._command(name)

    async def _turn(self, prompt: str) -> None:
        self._in_turn, self._cut = True, None
        self._now(MODEL[0])
        try:
            result = await self.session.send(prompt)
        finally:
            self._in_turn, self._ended = False, time.monotonic()
        self.face.end_stream()
        for text, look in words.ending(result, self._cut):
            self.face.say(text, look)
        self._look_after_the_waiting(result)

    def _look_after_the_waiting(self, result: TurnResult) -> None:
        """A message that came while the last hooks ran is neither lost nor answered twice (X-34).

        After an interrupt it stays where it is and is answered before the user's next one (C-33).
        """
        inbox = self.session.inbox
        if result.outcome in ("interrupted", "error"):
            if len(inbox):
                self.face.say(
                    f"{_messages(len(inbox))} still waiting, to be answered before your next one", "note"
                )
            return
        left = []
        while entry := inbox.take():
            left.append(entry.text)
        self._jobs.extendleft(reversed(left))

    async def _compact(self, instructions: str) -> None:
        self._now("summing up the conversation")
        if not self.session.messages:
            self.face.say("there is nothing to sum up yet", "note")
            return
        try:
            await compact(self.session, "manual", instructions)
        except ModelError as error:
            self.face.say(f"! the model failed ({error.kind}): {error}", "note")

    def _command(self, name: str) -> None:
        """What can be done at once, also while the agent works."""
        match name:
            case "/help":
                self.face.say(words.HELP)
            case "/hooks":
                settings = self.session.settings
                problems = (*settings.problems, *lint(settings, self.session.project))
                for text, look in words.hooks(settings, problems, asked=self.session.hooks):
                    self.face.say(text, look)
            case "/exit" | "/quit":
                self.leave()
            case _:
                self.face.say(
                    f"there is no command {name}; /help lists them; a blank before it sends it as it is",
                    "note",
                )

    async def permit(self, use: ToolUse, name: str) -> bool:
        """Asks at the terminal; the session waits meanwhile, and an interrupt ends the waiting."""
        async with self._one_question:  # children may ask at the same time
            return await self._asked(use, name)

    async def _asked(self, use: ToolUse, name: str) -> bool:
        self._answer = asyncio.get_running_loop().create_future()
        short, whole = words.tool_line(use, self.session.project), words.request(use, self.session.project)
        if whole != short:
            self.face.say(whole, "note")
        self._question = f"{short} — allow? [y]es, [a]lways for this session, [n]o"
        self.face.ask(self._question)
        asked = time.monotonic()
        try:
            answer = await self._answer
        finally:
            self._answer = None
            self.face.ask(None)
        self._thought = time.monotonic() - asked
        self._doing = Activity(short, time.monotonic())
        self._show()
        if answer == "always":
            self.session.allowed.add(name)
        return answer != "no"

    # What the user says and presses

    @property
    def busy(self) -> bool:
        return self._working is not None

    def hear(self, text: str) -> None:
        name, rest = words.command(text)
        if self._answer is not None:
            self._answered(text)
        elif self.busy and name not in (None, "/compact", "/clear"):
            self._command(name)
        elif self._in_turn and not self._interrupted and name is None:
            self.session.queue(rest)
            self._show()
        else:
            self._jobs.append(text)
            self._news.set()

    def _answered(self, text: str) -> None:
        answer = words.permission(text)
        if answer is None:
            self.face.say("please answer y, a or n; what you typed is kept in the history", "note")
            self.face.ask(self._question)
        elif self._answer and not self._answer.done():
            self._answer.set_result(answer)

    def interrupt(self) -> None:
        if self._working is None or self._interrupted:
            return
        self._interrupted = True
        self._cut = self._running.what if self._running and self._running.what not in MODEL else None
        self.face.doing(Activity("interrupting", time.monotonic()))
        if self._in_turn:
            self.session.interrupt()
        else:
            self._working.cancel()

    def ctrl_c(self) -> None:
        now = time.monotonic()
        last, self._ctrl_c = self._ctrl_c, now
        if now - last < TWICE or (not self.busy and now - self._ended > LATE):
            self.leave()
        elif self.busy:
            self.interrupt()
        else:
            self.face.say("the turn had just ended; Ctrl-C again leaves", "dim")

    def end(self) -> None:
        """Nothing more is said: what was said before is still worked on."""
        self._last = True
        self._news.set()
        if self.busy and self.face.for_people:
            self.face.say("leaving when this ends", "dim")
        if self._answer and not self._answer.done():
            self._answer.set_result("no")

    def deaf(self, listening: "asyncio.Task[None]") -> None:
        if not listening.cancelled() and listening.exception():
            self.leave()

    def leave(self, code: int = 0) -> None:
        if self._code is None or code:
            self._code = code
        self._interrupted = self._interrupted and self._in_turn  # what says good-bye can be ended too
        self.interrupt()
        self._news.set()

    # What happens

    def tell(self, event: SessionEvent) -> None:
        match event:
            case TextDelta(text):
                self._now(MODEL[1])
                self.face.stream(text)
            case StreamEnd():
                self.face.end_stream()
                self._wait_for_children()
            case ToolStarted(use):
                self.face.end_stream()
                self._thought = 0.0
                self._now(words.tool_line(use, self.session.project))
            case ToolFinished(use, result, seconds):
                ended = words.tool_end(use, result, seconds - self._thought, self.session.project)
                self.face.say(ended, "note" if result.is_error else "dim")
                self._now(MODEL[0])
            case HookStarted(_, hook):
                self._hooks.append((hook, time.monotonic()))
                self._show()
            case HookFinished(name, hook, outcome, seconds):
                self._hooks = [running for running in self._hooks if running[0] != hook]
                if name in STOP_EVENTS:
                    self.face.say(words.hook_end(hook, outcome, seconds), "dim")
                self._show()
            case Continuation(prompt, count, limit):
                self.face.say(words.goes_on(prompt, count, limit, self.session.settings.dialect.prefix))
                self._now(MODEL[0])
            case Notice(text):
                self.face.say(*words.notice(text))
            case Compacted(_, summary):
                self.face.say(f"the conversation was summed up in {len(summary)} characters", "dim")
            case SubagentStarted(agent, kind, label):
                self._children[agent] = label or kind
                self.face.say(f"subagent {words.clean(label or kind)} starts", "dim")
            case SubagentRedirected(_, label, why, count, limit):
                self.face.say(words.child_goes_on(label, why, count, limit))
            case SubagentFinished(agent, label, outcome, _, seconds):
                self._children.pop(agent, None)
                self.face.say(f"subagent {words.clean(label)}: {outcome} ({seconds:.1f} s)", "dim")
            case TurnEnd():
                pass  # its result says more
            case _:
                assert_never(event)

    def _now(self, what: str) -> None:
        if self._doing is None or self._doing.what != what:
            self._doing = Activity(what, time.monotonic())
            self._show()

    def _wait_for_children(self) -> None:
        """The answer is there, and the turn goes on as long as children work in the background."""
        if self._children:
            self._now(f"waiting for {', '.join(map(words.clean, self._children.values()))}")

    @property
    def _running(self) -> Activity | None:
        if not self._hooks:
            return self._doing
        names = ", ".join(words.clean(hook) for hook, _ in self._hooks)
        return Activity(f"hook{'s' * (len(self._hooks) > 1)} {names}", self._hooks[0][1])

    def _show(self) -> None:
        if self._running and not self._interrupted:
            self.face.doing(replace(self._running, waiting=len(self.session.inbox)))


def _messages(number: int) -> str:
    return f"{number} message{'s are' if number != 1 else ' is'}"
