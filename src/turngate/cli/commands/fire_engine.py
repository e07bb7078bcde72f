"""The part of `turngate fire` that asks: loaded only when there is somebody to ask."""

import argparse
import asyncio
import json
import signal
import sys
from typing import Any

from turngate.cli.progress import tell_progress
from turngate.cli.signals import run_until_signal
from turngate.core.constants import EVENTS, STOP_EVENTS
from turngate.core.events import Event
from turngate.core.hook_input import read_event
from turngate.core.hooks import label
from turngate.core.json_output import verdict_json
from turngate.core.reports import Detached, Exited
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.verdict import (
    Continue,
    HookRun,
    Stop,
    Verdict,
    notices,
    outcome,
    said,
    unenforced,
    warnings,
)
from turngate.engine import ask_hooks
from turngate.models.resolve import JudgeModels
from turngate.ports import World
from turngate.settings.load import load_settings, lost
from turngate.shells.local import LocalShell
from turngate.state.journal import Journal
from turngate.state.paths import state_folder
from turngate.stop_hooks import make_world

ALLOWED, GOES_ON, HALTED, UNENFORCED = 0, 10, 11, 13


def fire(options: argparse.Namespace, project: str, told: dict[str, Any]) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # inherited as ignored, every exit code would be lost
    settings = load_settings(project, dialect=options.dialect)
    event = read_event(options.event, told, cwd=project)
    journal = Journal(state_folder())
    judges = JudgeModels(settings.judge)
    world = make_world(LocalShell(), project, settings, journal, judges)
    ended = run_until_signal(_ask(event, settings, world, judges))
    journal.close()
    if isinstance(ended, signal.Signals):
        print(f"turngate: {ended.name}, nothing was decided and no hook is left running", file=sys.stderr)
        return 128 + ended
    verdict, left_behind = ended
    problems = [
        problem
        for problem in settings.problems
        if problem.severity != "note" and (problem.event in (None, event.name) or problem.event not in EVENTS)
    ]
    late = []
    if left_behind:
        late.append(f"{left_behind} hook(s) in the background did not end in time and were ended")
    if journal.fault:
        late.append(journal.fault)
    if options.json:
        lines = [*map(str, problems), *late]
        print(json.dumps(verdict_json(verdict, event.name, settings, lines), ensure_ascii=True))
    else:
        _print(verdict, event, settings, [*map(_with_hint, problems), *late])
    return _exit_code(verdict, settings, strict=options.strict, broken=lost(settings, event.name))


def _exit_code(verdict: Verdict, settings: Settings, *, strict: bool, broken: bool) -> int:
    if isinstance(verdict, Continue):
        return GOES_ON
    if verdict.halted:
        return HALTED
    return UNENFORCED if strict and (broken or unenforced(verdict.runs, settings.dialect)) else ALLOWED


async def _ask(event: Event, settings: Settings, world: World, judges: JudgeModels) -> tuple[Verdict, int]:
    asked: list[str] = []

    def watch(rule: Rule, run: HookRun | None) -> None:
        if run is None:
            asked.append(label(rule.hook))
        else:
            asked.remove(label(rule.hook))

    world.watch = watch
    progress = asyncio.create_task(tell_progress(lambda: asked))
    try:
        verdict = await ask_hooks(event, settings, world)
    finally:
        progress.cancel()
        await asyncio.gather(progress, return_exceptions=True)
    left_behind = await world.close(settings.dialect.background_grace)
    await judges.close()
    return verdict, left_behind


_WORDS = {
    "allow": "no objection",
    "block": "refuses",
    "advise": "advises",
    "halt": "ends the turn",
    "failed": "FAILED",
    "timeout": "TIMED OUT",
    "skipped": "not asked",
    "would_block": "would refuse",
}


def _print(verdict: Verdict, event: Event, settings: Settings, problems: list[str]) -> None:
    match verdict:
        case Stop(halted=True):
            print(
                f"{event.name}: halted by a hook"
                + (f": {verdict.stop_reason}" if verdict.stop_reason else "")
            )
        case Stop():
            print(f"{event.name}: {'the agent may stop' if event.name in STOP_EVENTS else 'no objection'}")
        case Continue():
            print(f"{event.name}: {'the agent goes on' if event.name in STOP_EVENTS else 'refused'}")
    for run in verdict.runs:
        print(_row(run))
    if isinstance(verdict, Continue):
        print("It is told:" if event.name in STOP_EVENTS else "Because:")
        for line in verdict.prompt.splitlines():
            print(f"  {line}")
    for notice in notices(verdict.runs):
        print(f"A hook says: {notice}")
    for warning in (*problems, *warnings(verdict.runs, settings.dialect)):
        print(f"! {warning}", file=sys.stderr)
    if any(isinstance(run.report, Exited) and run.report.code == 1 for run in verdict.runs):
        print("  → to refuse, a hook exits with 2 and says why on stderr", file=sys.stderr)


def _with_hint(problem: Problem) -> str:
    return f"{problem}\n  → {problem.hint}" if problem.hint else str(problem)


def _row(run: HookRun) -> str:
    """One run on one line; what refuses or fails is told below, with all its lines."""
    words = (said(run) or "").strip().splitlines()
    reason = f": {words[0]}" if words and outcome(run) not in ("block", "advise", "failed", "timeout") else ""
    where = f"  ({run.rule.file})" if run.rule.file else ""
    word = "in background" if isinstance(run.report, Detached) else _WORDS[outcome(run)]
    return f"  {word:<13} {run.seconds:6.2f} s  {label(run.rule.hook)}{where}{reason}"
