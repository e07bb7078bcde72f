"""`turngate run`: an agent works on a task under the project's stop hooks."""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from turngate.agent.session import Session
from turngate.agent.session_store import list_sessions
from turngate.agent.tools import TOOLS
from turngate.cli.main import EXIT_IO_ERROR
from turngate.cli.progress import ProgressLine
from turngate.cli.project import project_folder, read_prompt_from_stdin
from turngate.cli.signals import run_loop
from turngate.cli.streams import stdout_error
from turngate.cli.terminal.format import clean
from turngate.core.constants import EVENTS
from turngate.core.json_output import run_json, unenforced_json
from turngate.core.session_events import (
    HookFinished,
    HookStarted,
    Notice,
    SessionEvent,
    TurnEnd,
    TurnResult,
    event_json,
)
from turngate.core.settings import Settings
from turngate.core.verdict import unenforced
from turngate.errors import UsageError
from turngate.models import resolve as judges
from turngate.plugins.entry_points import load_plugins
from turngate.ports import Model
from turngate.settings.load import load_settings, lost
from turngate.state.paths import main_transcript_path, state_folder

CODES = {"completed": 0, "capped": 10, "halted": 11, "waiting": 12, "error": 20, "interrupted": 130}
UNENFORCED = 13


def run(options: argparse.Namespace) -> int:
    project = project_folder(options.project)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, every exit code would be lost
    prompt = read_prompt_from_stdin() if options.prompt == "-" else options.prompt
    if options.print and not (prompt or "").strip():
        raise UsageError("-p needs a prompt; give it as an argument, or - to read it from stdin")
    start = _start(options, project, load_settings(project, dialect=options.dialect))
    if options.print:
        return _one_turn(start, prompt, options)
    code: int = import_module("turngate.cli.commands.run_interactive").talk(
        start, prompt, options.output_format
    )
    return code


def _start(options: argparse.Namespace, project: str, settings: Settings) -> Callable[..., Session]:
    """The session as it was asked for; who listens to it is still open."""
    _check_tools(options.allow)
    return partial(
        Session,
        project,
        find_model(options.model, settings.model),
        settings,
        session_id=_session_id(options, project),
        permission_mode=options.permission_mode,
        allow=options.allow,
        extra_paths=_folders(options.add_dir),
        limit=options.limit,
        max_turns=options.max_turns,
        hooks=not options.no_hooks,
        plugins=load_plugins(settings.plugins),
        models=lambda name: find_model(name, None),
    )


def _check_tools(names: list[str]) -> None:
    known = dict.fromkeys((*TOOLS, "Task", "Agent"))
    for name in names:
        if name not in known:
            raise UsageError(f"--allow {name}: there is no such tool; there are {', '.join(known)}")


def _folders(given: list[str]) -> list[str]:
    for folder in given:
        if not os.path.isdir(folder):
            raise UsageError(f"--add-dir {folder}: there is no such folder; give one that exists")
    return [os.path.abspath(folder) for folder in given]


def find_model(named: str | None, configured: str | None) -> Model:
    wanted = named or configured or import_module("turngate.models.live").default_model(os.environ, None)
    return judges.open_model(wanted)


def _session_id(options: argparse.Namespace, project: str) -> str | None:
    named: str | None = options.session or None
    if not options.resume:
        return named
    if named:
        if not os.path.lexists(main_transcript_path(state_folder(), named, options.dialect)):
            raise UsageError(f"there is no session {named} to resume; `turngate sessions` lists them")
        return named
    state = state_folder()
    known = [
        listed
        for listed in list_sessions(state)
        if listed.project == project
        and listed.path == main_transcript_path(state, listed.session_id, options.dialect)
    ]
    if not known:
        raise UsageError(f"there is no session of {project} to resume; `turngate sessions` lists all of them")
    return known[0].session_id


def _one_turn(start: Callable[..., Session], prompt: str, options: argparse.Namespace) -> int:
    printer = _Printer(options.output_format)
    session = start(on_event=printer.tell)
    ending = _Ending(session)
    result = run_loop(ending.after(prompt, printer), ending.stop)
    if session.journal.fault:
        printer.tell(Notice(session.journal.fault))
    printer.end(result, session)
    code = 128 + ending.signal if ending.signal else exit_code(result, session, strict=options.strict)
    lost = stdout_error()
    if lost is None:
        return code
    kept = f"it is kept in {result.transcript_path}"
    print(f"turngate: the answer could not be written to stdout ({lost}); {kept}", file=sys.stderr)
    return code or EXIT_IO_ERROR


class _Ending:
    """A signal ends whatever runs: first the turn, then the hooks that are asked at the session's end."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.signal = 0  # the first one
        self._closing: asyncio.Task[None] | None = None

    async def after(self, prompt: str, printer: "_Printer") -> TurnResult:
        """One turn; the session is closed in any case, and the answer does not wait for that."""
        progress = asyncio.create_task(printer.progress())
        try:
            result = await self._session.send(prompt)
            await _ended(progress)
            printer.answer(result)
        finally:
            await _ended(progress)
            await self._close()
        return result

    def stop(self, number: int) -> None:
        self.signal = self.signal or number
        if self._closing is None:
            self._session.interrupt()
        elif not self._closing.cancelling():  # once: what it does then is to clean up
            self._closing.cancel()

    async def _close(self) -> None:
        self._closing = asyncio.create_task(self._session.close())
        await asyncio.wait({self._closing})
        if not self._closing.cancelled():
            self._closing.result()  # raises what went wrong


async def _ended(task: "asyncio.Task[None]") -> None:
    task.cancel()
    await asyncio.wait({task})


def exit_code(result: TurnResult, session: Session, *, strict: bool) -> int:
    settings = session.settings
    broken = lost(settings, *EVENTS)
    ignored = session.hooks and (broken or unenforced(result.hook_runs, settings.dialect))
    if strict and result.outcome == "completed" and ignored:
        return UNENFORCED
    return CODES[result.outcome]


class _Printer:
    """Text: the answer on stdout and what happened on stderr. JSON: one object. stream-json: one per line."""

    def __init__(self, form: str) -> None:
        self.form = form
        self._late: list[str] = []  # what was noticed after the turn had ended
        self._asked: list[str] = []  # hooks that have not answered yet
        self._line = ProgressLine(lambda: self._asked, idle="the agent is working")

    async def progress(self) -> None:
        if self.form == "text":
            await self._line.run()

    def tell(self, event: SessionEvent) -> None:
        if isinstance(event, HookStarted):
            self._asked.append(event.hook)
        elif isinstance(event, HookFinished) and event.hook in self._asked:
            self._asked.remove(event.hook)
        if isinstance(event, TurnEnd):
            self._late = []
        elif isinstance(event, Notice):
            self._late.append(event.text)
        if self.form == "stream-json":
            print(json.dumps(event_json(event)), flush=True)
        elif self.form == "text" and isinstance(event, Notice):
            self._line.print(f"! {clean(event.text)}")

    def answer(self, result: TurnResult) -> None:
        """People have it as soon as it is final, however long the session takes to close."""
        if self.form != "text":
            return
        if said := result.question or result.result:
            print(said, flush=True)
        why = result.stop_reason
        told = why is not None and any(why in notice for notice in result.notices)
        if result.outcome not in ("completed", "waiting") and not told:
            reason = f": {why}" if why else ""
            print(f"! the turn ended ({result.ended_by}){reason}", file=sys.stderr, flush=True)

    def end(self, result: TurnResult, session: Session) -> None:
        if self.form != "text":
            whole = replace(result, notices=(*result.notices, *self._late))
            print(json.dumps(result_json(whole, session)), flush=True)


def result_json(result: TurnResult, session: Session) -> dict[str, Any]:
    dialect = session.settings.dialect
    usage = {"input_tokens": result.usage.input_tokens, "output_tokens": result.usage.output_tokens}
    return {
        "type": "result",
        "outcome": result.outcome,
        "ended_by": result.ended_by,
        "stop_reason": result.stop_reason,
        "result": result.result,
        "session_id": result.session_id,
        "transcript_path": result.transcript_path,
        "continuations": result.continuations,
        "model_requests": result.model_requests,
        "tool_calls": result.tool_calls,
        "usage": usage,
        "duration_ms": result.duration_ms,
        "hook_runs": [run_json(run) for run in result.hook_runs],
        "unenforced": unenforced_json(result.hook_runs, dialect),
        "notices": list(result.notices),
        "subagents": [{**vars(child), "seconds": round(child.seconds, 4)} for child in result.subagents],
        **({"question": result.question} if result.question else {}),
    }
