"""Runs the gates of a project one after another, and says how each ended."""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple
from uuid import uuid4

from turngate._frozen import frozen
from turngate.cli.commands.gates.selection import GateEntry
from turngate.cli.commands.hooks.samples import sample_fields
from turngate.cli.console.format import format_waiting
from turngate.cli.console.progress import ProgressLine
from turngate.core.answers.reports import Skipped
from turngate.core.constants import GATES_BASE
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.kinds import label
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.decisions import Fault, Halt
from turngate.core.verdict.hints import run_hint
from turngate.core.verdict.hook_run import HookRun, run_message
from turngate.core.verdict.verdict import is_blocking
from turngate.doctor.proof.sample_transcript import conversation
from turngate.engine import ask_hooks
from turngate.stop_hooks import open_world

Outcome = Literal["passed", "failed", "could not run", "left out"]


@frozen
class GateResult:
    entry: GateEntry
    outcome: Outcome
    reason: str | None = None
    hint: str | None = None
    seconds: float = 0.0


class Workspace(NamedTuple):
    """A folder for the state of one run and a short conversation, which is removed afterwards."""

    folder: str

    @property
    def state(self) -> str:
        return os.path.join(self.folder, "state")

    @property
    def transcript(self) -> str:
        return os.path.join(self.folder, "transcript.jsonl")


@contextlib.contextmanager
def open_workspace() -> Iterator[Workspace]:
    with tempfile.TemporaryDirectory(prefix="turngate-gates-") as folder:
        workspace = Workspace(folder)
        with open(workspace.transcript, "xb") as file:
            file.write(conversation(ran_tests=False))
        yield workspace


async def run_gates(
    entries: Sequence[GateEntry], settings: Settings, project: str, workspace: Workspace, base: str = ""
) -> AsyncIterator[GateResult]:
    """Run the gates in order, each by itself, in the project; yield each result at once. `base`: a commit, if any."""
    for entry in entries:
        if entry.left_out:
            yield GateResult(entry, "left out", entry.left_out)
        else:
            yield await _run_gate(entry, settings, project, workspace, base)


async def _run_gate(
    entry: GateEntry, settings: Settings, project: str, workspace: Workspace, base: str
) -> GateResult:
    rule = entry.rule
    given = {"session_id": f"gates-run-{uuid4()}"}  # nothing is known from an earlier run
    fields = sample_fields(rule, given, project=project, transcript=workspace.transcript)
    event = read_event(rule.event, fields, cwd=project)
    own = replace(settings, rules=(rule,), stop_budget=None)
    async with open_world(project, own, state=workspace.state) as world, _show_progress(rule, settings):
        world.logs = False
        world.environ = {**os.environ, "TURNGATE_STATE": workspace.state, GATES_BASE: base}
        verdict = await ask_hooks(event, own, world)
    if not verdict.runs:
        return GateResult(entry, "could not run", "it does not run for this event")
    return _read_run(entry, verdict.runs[0], settings)


@contextlib.asynccontextmanager
async def _show_progress(rule: Rule, settings: Settings) -> AsyncIterator[None]:
    waiting = format_waiting(label(rule.hook), settings.timeout_of(rule))
    progress = asyncio.create_task(ProgressLine(lambda: [waiting]).run())
    try:
        yield
    finally:
        progress.cancel()
        await asyncio.gather(progress, return_exceptions=True)


def _read_run(entry: GateEntry, run: HookRun, settings: Settings) -> GateResult:
    reason = run_message(run)
    if is_blocking(run, settings.dialect) or isinstance(run.decision, Halt):
        return GateResult(entry, "failed", reason or "it gave no reason", seconds=run.seconds)
    if isinstance(run.decision, Fault) or isinstance(run.report, Skipped):
        hint = None if run.rule.pending else run_hint(run)
        return GateResult(entry, "could not run", reason, hint, run.seconds)
    return GateResult(entry, "passed", run.decision.notice, seconds=run.seconds)
