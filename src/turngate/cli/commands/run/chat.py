"""`turngate run` without `-p`: a conversation, in which the user's messages are run one after another, and shown what runs."""

import asyncio
import os
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterable
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple, assert_never

from turngate.agent.session import Session
from turngate.cli.commands.goal import run_in_conversation
from turngate.cli.commands.run.hooks_menu import HooksMenu
from turngate.cli.commands.run.plain_ui import PlainUI
from turngate.cli.commands.run.session import OpenSession
from turngate.cli.console import conversation_text as fmt
from turngate.cli.console.conversation_text import Permission
from turngate.cli.console.signals import SIGNALS, run_loop
from turngate.cli.console.streams import report_stdout_error, stdout_error
from turngate.cli.console.tool_text import StyledLine, fold_output, format_output, format_request
from turngate.cli.console.ui import Activity, MenuKey, TerminalUI, call_if_slow
from turngate.cli.main import EXIT_IO_ERROR
from turngate.cli.recorded_sessions import NOT_AT_LIMIT, accept_stop
from turngate.core.constants import STOP_EVENTS
from turngate.core.conversation.messages import ToolResult, ToolUse, Usage
from turngate.core.events.stream_events import (
    BackgroundCommandFinished,
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
from turngate.core.hooks.kinds import label
from turngate.core.settings import Settings
from turngate.core.text import one_line, quote_name, strip_controls
from turngate.errors import ModelError, UsageError
from turngate.ports import World, on_machine, ssh_option
from turngate.project.files import MachineUnreachable
from turngate.settings.slash_commands import BUILT_IN
from turngate.state.paths import state_folder
from turngate.trust.review import Review


def run_interactive(open_session: OpenSession, first: str | None, output_format: str) -> int:
    if output_format != "text":
        raise UsageError(f"--output-format {output_format} needs -p; a conversation prints only text")
    # The handlers of the chat replace this one before it can be called.
    code = run_loop(_run_chat(open_session, first), lambda _: None)
    if error := stdout_error():
        report_stdout_error(f"turngate: answers could not be written to stdout ({error})")
        return code or EXIT_IO_ERROR
    return code


async def _run_chat(open_session: OpenSession, first: str | None) -> int:
    ui = _open_ui(os.path.join(state_folder(), "history"))
    chat: Chat
    loop = asyncio.get_running_loop()
    async with AsyncExitStack() as stack:
        handlers = {
            "permit": lambda *call: chat.permit(*call),  # noqa: PLW0108 - the chat is made later
            "on_event": lambda event: chat.on_event(event),  # noqa: PLW0108
        }
        opening = asyncio.create_task(stack.enter_async_context(open_session(**handlers)))
        caught: list[int] = []

        def cancel(number: int) -> None:
            caught.append(number)
            opening.cancel()

        for number in SIGNALS:
            loop.add_signal_handler(number, cancel, number)
        await asyncio.wait({opening})
        if caught:
            return 128 + caught[0]
        opened = opening.result()
        chat = Chat(ui, opened.session, opened.review, opened.world)
        loop.add_signal_handler(signal.SIGINT, chat.on_ctrl_c)
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
            loop.add_signal_handler(number, chat.quit, 128 + number)
        listener = asyncio.create_task(ui.listen(chat))
        listener.add_done_callback(chat.on_listener_exit)
        try:
            code = await chat.run(first)
        finally:
            listener.cancel()
            await asyncio.wait({listener})
        if not listener.cancelled():
            listener.result()  # raises what the terminal raised
        return code


def _open_ui(history_path: str) -> TerminalUI:
    """Return a screen if stdin and stdout are a capable terminal, otherwise plain lines."""
    if not (os.isatty(0) and os.isatty(1)) or os.environ.get("TERM", "dumb") == "dumb":
        return PlainUI()
    try:
        from turngate.cli.commands.run.screen_ui import ScreenUI  # noqa: PLC0415 # lazy: needs prompt_toolkit
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("prompt_toolkit", "wcwidth"):
            raise
        from turngate.extra_install import install_command  # noqa: PLC0415 # lazy: not needed where it is installed

        ui = PlainUI()
        ui.print(
            "! prompt_toolkit is not installed, so there is no history, no Escape key and no status line; "
            f"to install it: {install_command('agent')}"
        )
        return ui
    return ScreenUI(history_path)


def blocks_at_limit(result: TurnResult) -> dict[str, str]:
    """Return the hooks that still blocked when the limit ended the turn, each with its reason."""
    last = {each.hook: each for each in result.hook_outputs if each.event == "Stop"}
    is_at_limit = result.ended_by in ("capped", "stalled")
    return {name: each.said or "" for name, each in last.items() if is_at_limit and each.outcome == "block"}


class PermissionDialog:
    """One question at a time; subagents may ask at the same time as the main agent."""

    def __init__(self, ui: TerminalUI) -> None:
        self._ui = ui
        self._lock = asyncio.Lock()
        self._answer: asyncio.Future[Permission] | None = None
        self._question = ""
        self.subject = ""  # the tool call that the question is about
        self.seconds = 0.0  # how long the last answer took

    @property
    def is_open(self) -> bool:
        return self._answer is not None

    async def ask(self, use: ToolUse, project: str, before: str | None) -> Permission:
        """`before` is the text of the file that the tool changes, if it is known."""
        async with self._lock:
            self._answer = asyncio.get_running_loop().create_future()
            self.subject, details = fmt.format_tool(use, project), format_request(use, project, before)
            if details != [(self.subject, "notice")]:
                print_lines(self._ui, details)
            self._question = f"{self.subject} — allow? [y]es, [a]lways for this session, [n]o"
            self._ui.ask(self._question)
            start = time.monotonic()
            try:
                return await self._answer
            finally:
                self._answer = None
                self._ui.ask(None)
                self.seconds = time.monotonic() - start

    def on_message(self, text: str) -> None:
        permission = fmt.parse_permission(text)
        if permission is None:
            self._ui.print("answer y, a or n; your text is kept in the history", "notice")
            self._ui.ask(self._question)
        else:
            self.resolve(permission)

    def resolve(self, permission: Permission) -> None:
        if self._answer and not self._answer.done():
            self._answer.set_result(permission)


def print_lines(ui: TerminalUI, lines: Iterable[StyledLine]) -> None:
    for style, group in groupby(lines, key=itemgetter(1)):
        ui.print("\n".join(text for text, _ in group), style)


MAX_FILE_BYTES = 10_000_000  # a larger one is not compared
BACKGROUND_JOB = "background"  # compared by identity: answer commands that have ended in the background
DOUBLE_CTRL_C_S = 2.0  # two Ctrl-C within this time exit
LATE_CTRL_C_S = 0.5  # a Ctrl-C this soon after a turn was meant for the turn


class Chat:
    """Run the jobs of the user, messages and commands, in order; implements `InputHandler`."""

    def __init__(self, ui: TerminalUI, session: Session, review: Callable[[], Review], world: World) -> None:
        self.ui, self.session, self._world = ui, session, world
        self._hooks = HooksMenu(ui, review, session, world)
        self._listings: set[asyncio.Task[None]] = set()  # lists of all hooks, while the agent works
        self._jobs: deque[str] = deque()
        self._wake = asyncio.Event()  # a job came, or the conversation ends
        self._task: asyncio.Task[None] | None = None  # the running job
        self._in_turn = False
        self._interrupted = False
        self._interruption = "interrupted"  # what the user reads about the last interrupt
        self._turn_ended_at = self._ctrl_c_at = float("-inf")
        self._is_open = False  # the session, whose hooks can then be reviewed
        self._input_ended = False
        self._exit_code: int | None = None  # set when the user exits
        self._permission = PermissionDialog(ui)
        self._answer_s = 0.0  # time that the user took to permit the running tool
        self._activity = ActivityTracker()
        self._output: list[StyledLine] = []  # of the last tool, for /output
        self._shown: set[str] = set()  # calls whose change was shown with the question for permission
        self._totals = Totals()
        self._blocks = dict[str, str]()  # the hooks that blocked the end of the last turn, with their reasons

    async def run(self, first: str | None) -> int:
        """Run the conversation until the user exits; return the exit code."""
        try:
            with call_if_slow(self._start, f"opening the session{on_machine(self._world)}"):
                await self._run_task(self.session.open())
            self._is_open = True
            self._greet()
            self._show_totals()
            if first and first.strip():
                self.ui.print(f"> {first}", "user")
                self._jobs.append(first)
            while (job := await self._next_job()) is not None:
                await self._run_task(self._run_job(job))
        finally:
            await asyncio.gather(*self._listings, return_exceptions=True)
            await self._run_task(self.session.close("prompt_input_exit" if self._exit_code == 0 else "other"))
        if self.ui.is_interactive and self.session.messages:
            self.ui.print(
                f"to continue this conversation: turngate run {ssh_option(self._world)}--session {self.session.id}",
                "dim",
            )
        return self._exit_code or 0

    def _greet(self) -> None:
        settings = self.session.settings
        for problem in settings.problems:
            # The session itself reports hooks that were not loaded.
            if problem.severity != "note" and problem not in settings.not_loaded:
                self.ui.print(*fmt.format_notice(str(problem), problem.hint))
        if self.ui.is_interactive:
            count = f", {len(self.session.messages)} messages so far" if self.session.messages else ""
            self.ui.print(f"{self.session.model.name} in {self.session.location}{count}", "dim")
            self.ui.print("/help shows the commands and keys", "dim")
            if pending := self._hooks.pending_notice():
                self.ui.print(pending, "alert")
        if self.session.question is not None:
            self.ui.print(*fmt.format_question(self.session.question))
        if self.session.checkpoint is not None:
            self.ui.print(f"{fmt.hanging(self.session.checkpoint)}\n{fmt.ANSWERS}", "notice")

    async def _next_job(self) -> str | None:
        """Wait for the next job; return None when the conversation ends."""
        while self._exit_code is None and not self._jobs:
            if self.session.has_background_results:
                return BACKGROUND_JOB
            if self._input_ended:
                self._exit_code = 0
                break
            self._wake.clear()
            self.ui.prompt()
            await self._wake.wait()
        return self._jobs.popleft() if self._exit_code is None else None

    async def _run_task(self, job: Coroutine[Any, Any, None]) -> None:
        """Run a job in a task of its own, so that an interrupt ends nothing else."""
        self._interrupted = False
        self._task = asyncio.create_task(job)
        try:
            await self._task
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            self.ui.print("interrupted", "notice")
        finally:
            self._task = None
            self._activity.clear()
            self.ui.end_stream()
            self.ui.set_activity(None)

    # Jobs

    async def _run_job(self, job: str) -> None:
        try:
            await self._dispatch(job)
        except OSError as error:  # a full disk, for example: it ends the job, not the conversation
            self.ui.print(f"! {error}", "alert")

    async def _dispatch(self, job: str) -> None:
        command, text = fmt.parse_command(job)
        match command:
            case None:
                await self._run_turn(None if job is BACKGROUND_JOB else text)
            case "/compact":
                await self._compact(text)
            case "/hooks":
                await self._hooks.run()
            case "/more":
                await self._run_more()
            case "/clear":
                await self.session.reset()
                self.ui.print("conversation cleared", "dim")
            case _ if self._is_file_command(command):
                await self._run_turn(job.strip(), is_command=True)
            case _:
                self._run_command(command, text)

    def _is_file_command(self, command: str) -> bool:
        name = command.removeprefix("/")
        return name not in BUILT_IN and name in self.session.commands.by_name

    async def _run_turn(self, prompt: str | None, *, is_command: bool = False) -> None:
        """Run a turn for a prompt or a slash command, or for commands that have ended in the background."""
        self._in_turn, self._interruption = True, "interrupted"
        self._start(MODEL_REQUEST)
        try:
            if prompt is None:
                result = await self.session.answer_background()
            else:
                result = await (self.session.run_command if is_command else self.session.send)(prompt)
        except UsageError as error:  # the file of a slash command cannot be used
            self.ui.print(f"! {fmt.hanging(str(error))}", "notice")
            return
        finally:
            self._in_turn, self._turn_ended_at = False, time.monotonic()
        self.ui.end_stream()
        if result is None:
            return
        self._totals.add(result)
        self._show_totals()
        for text, style in fmt.format_turn_end(result, self._interruption, totals=self.ui.is_interactive):
            self.ui.print(text, style)
        self._blocks = blocks_at_limit(result)
        if self._blocks and self.ui.is_interactive:
            self.ui.print(fmt.AT_LIMIT, "notice")
        self._take_queued_messages(result)

    async def _run_more(self) -> None:
        """Send the agent back with what still blocks, in a turn with a new count."""
        if self._blocks:
            await self._run_turn("\n\n".join(("The stop hooks still block.", *self._blocks.values())))
        else:
            self.ui.print(NOT_AT_LIMIT, "notice")

    def _accept(self, why: str) -> None:
        try:
            self.ui.print(accept_stop(self.session.id, self.session.location, [*self._blocks], why), "notice")
            self._blocks = {}
        except UsageError as error:
            self.ui.print(f"! {error}", "notice")

    def _take_queued_messages(self, result: TurnResult) -> None:
        """Run the messages that came during the last hooks: none is lost or answered twice (X-34).

        After an interrupt they stay in the inbox and are answered before the user's next message (C-33), after a
        question behind its answer.
        """
        waits = self.session.question is not None or self.session.checkpoint is not None
        if result.outcome in ("interrupted", "error") or waits:
            if count := self.session.queued:
                are = "message is" if count == 1 else "messages are"
                when = "after your answer" if waits else "before your next one"
                self.ui.print(f"{count} {are} still queued, to be answered {when}", "notice")
            return
        self._jobs.extendleft(reversed(self.session.take_queued()))

    async def _compact(self, instructions: str) -> None:
        self._start("summarizing the conversation")
        if not self.session.messages:
            self.ui.print("there is nothing to summarize yet", "notice")
            return
        try:
            await self.session.compact(instructions)
        except ModelError as error:
            self.ui.print(f"! the model failed ({error.kind}): {error}", "notice")

    def _run_command(self, command: str, text: str) -> None:
        """Run a command that also works while the agent does."""
        match command:
            case "/help":
                listed = fmt.format_commands(self.session.commands)
                self.ui.print(f"{fmt.HELP}\n\n{listed}" if listed else fmt.HELP)
            case "/hooks":
                listing = asyncio.create_task(self._hooks.print_list())
                self._listings.add(listing)
                listing.add_done_callback(self._listings.discard)
            case "/output":
                print_lines(self.ui, self._output or [("no tool has printed anything yet", "notice")])
            case "/goal":
                self.ui.print(run_in_conversation(text, self.session.id, self.session.location), "dim")
            case "/accept":
                self._accept(text)
            case "/exit" | "/quit":
                self.quit()
            case _:
                self.ui.print(self.session.commands.describe_unknown(command.removeprefix("/")), "notice")

    async def permit(self, use: ToolUse, name: str) -> bool:
        """Ask the user; the session waits, and an interrupt ends the question."""
        permission = await self._permission.ask(use, self.session.project, await self._read_before(use))
        self._answer_s = self._permission.seconds
        self._activity.restart(fmt.format_tool(use, self.session.project))
        self._show_activity()
        if permission == "always":
            self.session.allow(name)
        self._shown.add(use.id)
        return permission != "no"

    async def _read_before(self, use: ToolUse) -> str | None:
        """Return the text of the file that a tool would change; None if there is none, or it cannot be read."""
        if use.name not in ("Write", "Edit"):
            return None
        path = os.path.join(self.session.project, str(use.input.get("file_path", "")))
        try:
            data = await self._world.call(self._world.files.read, path, MAX_FILE_BYTES)
        except (OSError, ValueError, MachineUnreachable):  # ValueError: a null byte in the path
            return None
        return data.decode("utf-8", "surrogateescape")

    # Input

    @property
    def is_busy(self) -> bool:
        return self._task is not None

    def on_message(self, text: str) -> None:
        command, message = fmt.parse_command(text)
        if self._permission.is_open:
            self._permission.on_message(text)
        elif self._hooks.is_open:
            self._hooks.on_message(text)
        elif self.is_busy and command is not None and not self._is_job(command):
            self._run_command(command, message)
        elif self._in_turn and not self._interrupted and command is None:
            self.session.queue(message)
            self._show_activity()
        else:
            self._jobs.append(text)
            self._wake.set()

    def _is_job(self, command: str) -> bool:
        """Return whether a command waits for the running job. `/hooks` does not while the agent works: it prints a list."""
        if command == "/hooks":
            return not self._is_open
        return command in ("/compact", "/clear", "/more") or self._is_file_command(command)

    def on_menu_key(self, key: MenuKey) -> None:
        self._hooks.on_key(key)

    def interrupt(self) -> None:
        if self._task is None or self._interrupted:
            return
        if self._hooks.is_shown:
            self._hooks.close()
            return
        self._interrupted = True
        if self._permission.is_open:
            self._interruption = f"interrupted; not run: {self._permission.subject}"
        elif activity := self._activity.interruptible:
            self._interruption = f"interrupted while running: {activity}"
        self.ui.set_activity(Activity("interrupting", time.monotonic()))
        if self._in_turn:
            self.session.interrupt()
        else:
            self._task.cancel()

    def on_ctrl_c(self) -> None:
        now = time.monotonic()
        previous, self._ctrl_c_at = self._ctrl_c_at, now
        if now - previous < DOUBLE_CTRL_C_S or (
            not self.is_busy and now - self._turn_ended_at > LATE_CTRL_C_S
        ):
            self.quit()
        elif self.is_busy:
            self.interrupt()
        else:
            self.ui.print("the turn has just ended; Ctrl-C again exits", "dim")

    def on_eof(self) -> None:
        """Finish the jobs that were typed before, then exit."""
        self._input_ended = True
        self._wake.set()
        if self.is_busy and self.ui.is_interactive:
            self.ui.print("exiting when this is done", "dim")
        self._permission.resolve("no")
        self._hooks.close()

    def on_listener_exit(self, listener: "asyncio.Task[None]") -> None:
        if not listener.cancelled() and listener.exception():
            self.quit()

    def quit(self, code: int = 0) -> None:
        if self._exit_code is None or code:
            self._exit_code = code
        self._interrupted = self._interrupted and self._in_turn  # so that SessionEnd hooks can be interrupted
        if self._task is not asyncio.current_task():  # /exit is a job itself, and ends on its own
            self.interrupt()
        self._wake.set()

    # Events of the session

    def on_event(self, event: SessionEvent) -> None:
        match event:
            case TextDelta(text):
                self._start(MODEL_REPLY)
                self.ui.stream(text)
            case StreamEnd():
                self.ui.end_stream()
                self._totals.gates.clear()
                self._activity.wait_for_subagents()
                self._show_activity()
            case ToolStarted(use):
                self.ui.end_stream()
                self._answer_s = 0.0
                self._start(fmt.format_tool(use, self.session.project))
            case ToolFinished(use, result, seconds, change):
                line = fmt.format_tool_end(use, result, seconds - self._answer_s, self.session.project)
                self.ui.print(line, "notice" if result.is_error else "dim")
                self._show_output(use, result, change)
                self._start(MODEL_REQUEST)
            case HookStarted():
                self._activity.start_hook(event)
                self._show_activity()
            case HookFinished(name, hook):
                self._activity.end_hook(hook)
                if name in STOP_EVENTS:
                    self.ui.print(fmt.format_hook_end(event, self.session.settings), "dim")
                if name == "Stop":
                    self._totals.gates[hook] = event.outcome
                    self._show_totals()
                self._show_activity()
            case Continuation(prompt, count, limit):
                text = fmt.hanging(prompt.replace(self.session.settings.dialect.prefix, "").strip())
                self.ui.print(f"hook blocked the stop (continuation {fmt.count_of(count, limit)}): {text}")
                self._start(MODEL_REQUEST)
            case Notice(text, hint):
                self.ui.print(*fmt.format_notice(text, hint))
                if self.session.has_background_results:
                    self._wake.set()
            case Compacted(_, summary):
                self.ui.print(f"conversation summarized in {len(summary)} characters", "dim")
            case SubagentStarted(agent_id, agent_type, label):
                self._activity.subagents[agent_id] = label or agent_type
                self.ui.print(f"subagent {strip_controls(label or agent_type)} started", "dim")
            case SubagentRedirected(_, label, why, count, limit):
                self.ui.print(fmt.format_redirect(label, why, count, limit))
            case SubagentFinished(agent_id, label, outcome, _, seconds):
                self._activity.subagents.pop(agent_id, None)
                self.ui.print(f"subagent {strip_controls(label)}: {outcome} ({seconds:.1f} s)", "dim")
            case BackgroundCommandFinished(name, command, status):
                line = f"background command {name}: {status} ({strip_controls(one_line(command, 60))})"
                self.ui.print(line, "dim")
                self._wake.set()
            case TurnEnd():
                pass  # _run_turn() prints the result
            case _:
                assert_never(event)

    def _show_output(self, use: ToolUse, result: ToolResult, change: tuple[str, str] | None) -> None:
        self._output = format_output(result, change)
        is_known = change is not None and use.id in self._shown
        if self.ui.is_interactive and not result.is_error and not is_known:
            print_lines(self.ui, fold_output(use, self._output))

    def _show_totals(self) -> None:
        model = self.session.model.name.rpartition("/")[2]  # a script is named by its path
        self.ui.set_summary(model, self._totals.format(self.session.settings))

    def _start(self, label: str) -> None:
        self._activity.start(label)
        self._show_activity()

    def _show_activity(self) -> None:
        current = self._activity.current
        if current and not self._interrupted:
            self.ui.set_activity(replace(current, queued=self.session.queued))


# The status line


MODEL_REQUEST = "waiting for the model"
MODEL_REPLY = "the model is answering"


class _RunningHook(NamedTuple):
    started: HookStarted
    since: float  # time.monotonic()


class ActivityTracker:
    def __init__(self) -> None:
        self._step: Activity | None = None  # the model, a tool, or a command of the user
        self._hooks: list[_RunningHook] = []
        self.subagents: dict[str, str] = {}  # running subagents and their labels

    @property
    def current(self) -> Activity | None:
        """Return what to show: running hooks before the step that they belong to."""
        if not self._hooks:
            return self._step
        timeouts = [hook.started.timeout for hook in self._hooks if hook.started.timeout is not None]
        limit = fmt.format_limit(max(timeouts, default=None))
        label, since = f"waiting for {self._hook_names}", self._hooks[0].since
        return Activity(label, since, limit=limit, output=self._output)

    @property
    def _hook_names(self) -> str:
        names = ", ".join(strip_controls(quote_name(hook.started.hook)) for hook in self._hooks)
        return f"hook{'s' * (len(self._hooks) > 1)} {names}"

    @property
    def interruptible(self) -> str | None:
        """Return the tool or hook that an interrupt would end, or None if it is the model."""
        if self._hooks:
            return self._hook_names
        label = self._step.label if self._step else None
        return None if label in (MODEL_REQUEST, MODEL_REPLY) else label

    def start(self, label: str) -> None:
        """Set the step; one that already runs keeps its start."""
        if self._step is None or self._step.label != label:
            self.restart(label)

    def restart(self, label: str) -> None:
        self._step = Activity(label, time.monotonic())

    def clear(self) -> None:
        self._step, self._hooks = None, []

    def start_hook(self, started: HookStarted) -> None:
        self._hooks.append(_RunningHook(started, time.monotonic()))

    def end_hook(self, hook: str) -> None:
        self._hooks = [running for running in self._hooks if running.started.hook != hook]

    def _output(self) -> list[str]:
        """Return the last line that each running hook has printed; of several hooks with names and times."""
        lines = [each.started.last_line() for each in self._hooks]
        if len(lines) < 2:
            return list(filter(None, lines))
        now = time.monotonic()
        names = [f"{quote_name(each.started.hook)} {now - each.since:.0f} s" for each in self._hooks]
        return [f"{name}: {line}" if line else name for name, line in zip(names, lines, strict=True)]

    def wait_for_subagents(self) -> None:
        """Show that the turn lasts until its background subagents have ended."""
        if self.subagents:
            self.start(f"waiting for {', '.join(map(strip_controls, self.subagents.values()))}")


class Totals:
    """What the status line says of the conversation: tokens, cost, and the gates at the last stop."""

    def __init__(self) -> None:
        self._usage = Usage()
        self._cost: float | None = 0.0  # None: the price of a turn is not known
        self.gates: dict[str, str] = {}  # hooks of the last stop, and their outcomes

    def add(self, result: TurnResult) -> None:
        self._usage += result.usage
        if result.usage.total:
            self._cost = None if self._cost is None or result.cost is None else self._cost + result.cost

    def format(self, settings: Settings) -> str:
        """Format the figures: `1,238 tokens · $0.0041 · 3 gates: 2 passed, 1 blocked`."""
        gates = [each for each in settings.rules if each.event == "Stop" and settings.mode_of(each) == "gate"]
        names = {label(rule.hook) for rule in gates}
        outcomes = Counter(
            fmt.outcome_label(outcome) for name, outcome in self.gates.items() if name in names
        )
        parts = [f"{self._usage.total:,} tokens"] if self._usage.total else []
        parts += [fmt.format_dollars(self._cost)] if self._cost else []
        if gates:
            results = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items())
            parts.append(fmt.counted(len(gates), "gate") + (f": {results}" if results else ""))
        return " · ".join(parts)
