"""`turngate run -p`: run one turn and print the answer."""

import asyncio
import json
import shutil
import sys
from contextlib import AbstractAsyncContextManager, AsyncExitStack, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from turngate.agent.session import Session
from turngate.cli import main
from turngate.cli.commands.run.session import OpenedSession, OpenSession
from turngate.cli.console import conversation_text as fmt
from turngate.cli.console.progress import ProgressLine
from turngate.cli.console.signals import run_loop
from turngate.cli.console.streams import has_color, report_stdout_error, stdout_error, with_code
from turngate.core.events.stream_events import (
    HookFinished,
    HookStarted,
    Notice,
    SessionEvent,
    TurnEnd,
    TurnResult,
    blocked_subagents_json,
    event_json,
    subagent_json,
)
from turngate.core.text import strip_controls
from turngate.core.verdict.json_output import run_json, unenforced_json
from turngate.settings.slash_commands import parse_call


def run_print(open_session: OpenSession, prompt: str, output_format: str) -> int:
    printer = _Printer(output_format)
    turn = _SingleTurn(open_session, printer)
    session, result = run_loop(turn.run(prompt), turn.on_signal)
    if session is None or result is None:  # a signal came before it was opened
        return 128 + turn.signal
    result = session.last_result or result  # with what SessionEnd hooks added to it
    printer.print_result(result, session)
    is_unenforced = result.outcome == "completed" and not result.success
    code = main.EXIT_NOT_ENFORCED if is_unenforced else main.EXIT_CODES[result.outcome]
    code = 128 + turn.signal if turn.signal else code
    if error := stdout_error():
        where = f"it is kept in {result.transcript_path}"
        report_stdout_error(f"turngate: the answer could not be written to stdout ({error}); {where}")
        return code or main.EXIT_IO_ERROR
    return code


class _SingleTurn:
    """Run one turn and close the session. A signal interrupts the turn, or the hooks that run at the close."""

    def __init__(self, open_session: OpenSession, printer: "_Printer") -> None:
        self._open_session = open_session
        self._printer = printer
        self._opening: asyncio.Task[OpenedSession] | None = None
        self._session: Session | None = None
        self._closing: asyncio.Task[None] | None = None
        self.signal = 0  # the first one

    async def run(self, prompt: str) -> tuple[Session | None, TurnResult | None]:
        async with AsyncExitStack() as stack:
            opened = self._open_session(on_event=self._printer.on_event)
            self._opening = asyncio.create_task(stack.enter_async_context(opened))
            await asyncio.wait({self._opening})
            if self.signal or self._opening.cancelled():
                return None, None
            self._session = self._opening.result().session
            return self._session, await self._run(self._session, prompt)

    async def _run(self, session: Session, prompt: str) -> TurnResult:
        try:
            async with self._printer.show_progress("the agent is working"):
                is_command = parse_call(prompt) is not None  # a blank in front makes it a message
                result = await (session.run_command if is_command else session.send)(prompt)
            self._printer.print_answer(result)
        finally:
            self._closing = asyncio.create_task(session.close())
            async with self._printer.show_progress():
                await asyncio.wait({self._closing})
            if not self._closing.cancelled():
                self._closing.result()  # raises what went wrong
        return result

    def on_signal(self, number: int) -> None:
        self.signal = self.signal or number
        if self._session is None:
            if self._opening is not None:
                self._opening.cancel()
        elif self._closing is None:
            self._session.interrupt()
        elif not self._closing.cancelling():  # a second cancellation would interrupt the clean-up
            self._closing.cancel()


class _Printer:
    """Print a turn. text: the answer on stdout, notices on stderr; json: one object; stream-json: one per event.

    With JSON on stdout, stderr has only the notices about a tool without permission or a gate that was not enforced.
    """

    def __init__(self, output_format: str) -> None:
        self._format = output_format
        self._late_notices: list[str] = []  # those after the end of the turn
        self._running_hooks: list[HookStarted] = []
        self._progress = ProgressLine(self._waiting_for)

    def show_progress(self, idle: str = "") -> AbstractAsyncContextManager[None]:
        self._progress = ProgressLine(
            self._waiting_for,
            idle=idle,
            last_line=lambda: next(filter(None, (each.last_line() for each in self._running_hooks)), ""),
        )
        return self._progress.shown() if self._format == "text" else nullcontext()

    def _waiting_for(self) -> list[str]:
        return [fmt.format_waiting(started.hook, started.timeout) for started in self._running_hooks]

    def on_event(self, event: SessionEvent) -> None:
        self._track(event)
        if self._format == "stream-json":
            print(json.dumps(event_json(event)), flush=True)
        if isinstance(event, Notice) and (
            self._format == "text" or fmt.NOT_PERMITTED in event.text or fmt.NOT_ENFORCED in event.text
        ):
            self._progress.print(f"! {strip_controls(event.text)}")
            if event.hint:
                self._progress.print(f"  → {fmt.hanging(event.hint)}")

    def _track(self, event: SessionEvent) -> None:
        match event:
            case HookStarted():
                self._running_hooks.append(event)
            case HookFinished(name, hook):
                running = self._running_hooks
                self._running_hooks = [each for each in running if (each.event, each.hook) != (name, hook)]
            case TurnEnd():
                self._late_notices = []
            case Notice(text):
                self._late_notices.append(text)
            case _:
                pass

    def print_answer(self, result: TurnResult) -> None:
        """Print the answer as soon as it is final, before the session closes."""
        if self._format != "text":
            return
        if answer := result.question or result.result:
            print(_rendered(answer), flush=True)
        reason = result.stop_reason
        is_known = reason is not None and any(reason in notice for notice in result.notices)
        is_question = result.outcome == "waiting" and result.question is not None  # printed above
        if result.ended_by == "checkpoint" and reason:
            print(f"! {fmt.hanging(reason)}", file=sys.stderr, flush=True)
            if result.checkpoint is not None:
                resume = f"turngate run --resume --session {result.session_id} -p yes"
                print(f"  → {fmt.ANSWERS}: {resume}", file=sys.stderr, flush=True)
        elif result.outcome != "completed" and not is_question and not is_known:
            why = f": {strip_controls(reason)}" if reason else ""
            print(f"! turn ended ({result.ended_by}){why}", file=sys.stderr, flush=True)
        if blocked := blocked_subagents_json(result):
            print(f"! {fmt.format_blocked_subagents(blocked)}", file=sys.stderr, flush=True)
        if sys.stderr.isatty() and result.model_requests:
            print(fmt.format_totals(result), file=sys.stderr, flush=True)

    def print_result(self, result: TurnResult, session: Session) -> None:
        if self._format != "text":
            complete = replace(result, notices=(*result.notices, *self._late_notices))
            print(json.dumps(_result_json(complete, session)), flush=True)


def _rendered(answer: str) -> str:
    """Return an answer with its Markdown rendered, if stdout is a terminal with color."""
    if not has_color(sys.stdout) or "utf" not in (sys.stdout.encoding or "").lower():
        return answer
    from turngate.cli.console.markdown import render  # noqa: PLC0415 # lazy: not into a pipe

    style = partial(with_code, stream=sys.stdout)
    return render(strip_controls(answer), shutil.get_terminal_size().columns, style)


def _result_json(result: TurnResult, session: Session) -> dict[str, Any]:
    usage = {"input_tokens": result.usage.input_tokens, "output_tokens": result.usage.output_tokens}
    return {
        "type": "result",
        "outcome": result.outcome,
        "ended_by": result.ended_by,
        "stop_reason": result.stop_reason,
        "result": result.result,
        "session_id": result.session_id,
        "project": session.location,
        "transcript_path": result.transcript_path,
        "continuations": result.continuations,
        "model_requests": result.model_requests,
        "tool_calls": result.tool_calls,
        "usage": usage,
        "cost_usd": result.cost,
        "duration_ms": result.duration_ms,
        "hook_runs": [run_json(run) for run in result.hook_runs],
        "unenforced": unenforced_json(result.unenforced),
        "notices": list(result.notices),
        "subagents": [
            {**subagent_json(subagent), "seconds": round(subagent.seconds, 4)}
            for subagent in result.subagents
        ],
        "blocked_subagents": blocked_subagents_json(result),
        **({"question": result.question} if result.question else {}),
        **({"checkpoint": result.checkpoint} if result.checkpoint else {}),
        **({"deferred_tool_use": vars(result.deferred_tool_use)} if result.deferred_tool_use else {}),
    }
