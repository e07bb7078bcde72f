"""`turngate run`: an agent works on a task under the project's stop hooks."""

import argparse
import asyncio
import json
import os
import signal
import sys
from importlib import import_module
from typing import Any

from turngate.agent.session import Session
from turngate.core.turn import Notice, SessionEvent, TurnEnd, TurnResult, event_json
from turngate.core.verdict import unenforced
from turngate.core.wire import run_json, unenforced_json
from turngate.errors import UsageError
from turngate.models.scripted import ScriptedModel
from turngate.plugins.found import load_plugins
from turngate.ports import Model
from turngate.settings.files import load_settings

CODES = {"completed": 0, "capped": 10, "halted": 11, "waiting": 12, "error": 20, "interrupted": 130}
UNENFORCED = 13
FAILED = 20


def run(options: argparse.Namespace) -> int:
    project = os.path.abspath(options.project)
    if not os.path.isdir(project):
        raise UsageError(f"there is no folder {options.project}; give the project's folder with --project")
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, every exit code would be lost
    prompt = sys.stdin.read() if options.prompt == "-" else options.prompt
    if options.print and not (prompt or "").strip():
        raise UsageError("-p needs a prompt; give it as an argument, or - to read it from stdin")
    settings = load_settings(project, dialect=options.dialect)
    model = _model(options.model, settings.model)
    session_id = _session_id(options)
    if not options.print:
        interactive = import_module("turngate.cli.interactive")
        code: int = interactive.talk(options, project, settings, model, session_id, prompt)
        return code
    printer = _Printer(options.output_format)
    session = Session(
        project, model, settings, session_id=session_id, permission_mode=options.permission_mode,
        allow=options.allow, limit=options.limit, max_turns=options.max_turns, hooks=not options.no_hooks,
        plugins=load_plugins(settings.plugins), on_event=printer.tell,
    )  # fmt: skip
    result, number = asyncio.run(_one_turn(session, prompt))
    printer.end(result, session)
    return 128 + number if number else exit_code(result, session, strict=options.strict)


def _model(named: str | None, configured: str | None) -> Model:
    """A script needs nothing; everything else goes to the library that knows the providers."""
    wanted = named or configured or ""
    if wanted.startswith("scripted:"):
        return ScriptedModel.from_file(wanted.removeprefix("scripted:"))
    live = import_module("turngate.models.live")
    model: Model = live.LiveModel(wanted or live.default_model(os.environ, None))
    return model


def _session_id(options: argparse.Namespace) -> str | None:
    if not options.resume or options.session:
        return str(options.session) if options.session else None
    history = import_module("turngate.agent.history")
    project = os.path.abspath(options.project)
    every = history.list_sessions(import_module("turngate.journal").state_folder())
    known = [listed for listed in every if listed.project == project]
    if not known:
        raise UsageError(f"there is no session of {project} to resume; `turngate sessions` lists all of them")
    return str(known[0].session_id)


async def _one_turn(session: Session, prompt: str) -> tuple[TurnResult, int]:
    """The turn, and the signal that ended it (0: none)."""
    loop = asyncio.get_running_loop()
    caught: list[int] = []

    def stop(number: signal.Signals) -> None:
        caught.append(number)
        session.interrupt()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop, number)
    async with session:
        result = await session.send(prompt)
    return result, caught[0] if caught and result.ended_by == "interrupt" else 0


def exit_code(result: TurnResult, session: Session, *, strict: bool) -> int:
    if strict and result.outcome == "completed" and unenforced(result.hook_runs, session.settings.dialect):
        return UNENFORCED
    return CODES[result.outcome]


class _Printer:
    """Text: the answer on stdout and what happened on stderr. JSON: one object. stream-json: one per line."""

    def __init__(self, form: str) -> None:
        self.form = form

    def tell(self, event: SessionEvent) -> None:
        if self.form == "stream-json" and not isinstance(event, TurnEnd):
            print(json.dumps(event_json(event)), flush=True)
        elif self.form == "text" and isinstance(event, Notice):
            print(f"! {event.text}", file=sys.stderr, flush=True)

    def end(self, result: TurnResult, session: Session) -> None:
        if self.form == "text":
            print(result.question or result.result)
        else:
            print(json.dumps(result_json(result, session)))


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
        "subagents": [],
        **({"question": result.question} if result.question else {}),
    }
