"""Proves that a gate blocks: it runs in a copy of the project, first as it is, then with a planted failure."""

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from turngate._frozen_dataclass import frozen
from turngate.core.conversation.tools import DEFAULT_AGENT_TYPE
from turngate.core.hooks.kinds import CommandHook, hook_text
from turngate.core.settings import Settings
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Fault, Halt
from turngate.core.verdict.hints import run_hint
from turngate.core.verdict.hook_run import HookRun, outcome, run_message
from turngate.core.verdict.verdict import is_blocking
from turngate.doctor.diagnosis import HookDiagnosis, fired_event
from turngate.doctor.proof.planted_failures import (
    MARK,
    CannotPlantError,
    Gate,
    PlantedFailure,
    failures_for,
    gate_text,
)
from turngate.doctor.proof.project_copy import ProjectCopy, Relocation, commit_everything, events_in_copy
from turngate.doctor.proof.ready_made_gates import (
    PLANTERS,
    judge_script,
    named_gate,
    why_no_failure,
    with_all_failures,
    with_judge,
)
from turngate.doctor.proof.samples import conversation
from turngate.engine import ask_hooks
from turngate.ports import World
from turngate.project.safe_paths import is_inside, real_path
from turngate.shells.local import LocalShell

MAX_REASON_CHARS = 200
_RED_HINT = "`turngate gates run` shows whether it is red in the project itself, and not only in a copy"
KNOWN = (
    "tests, linters, compilers, checklists in Markdown, searches in the conversation, and the state of git"
)


@frozen
class Proof:
    result: Literal["proved", "NOT PROVED", "cannot prove"]
    text: str  # what it blocks, or why that is not known
    hint: str | None = None


def why_unprovable(hook: HookDiagnosis) -> str | None:
    """Return why a gate is not run, or None if it can be tried."""
    if hook.outlook == "will NOT run":
        return hook.findings[0].message
    if named := named_gate(hook.rule.hook):
        if why := why_no_failure(named.gate):
            return why
    elif not isinstance(hook.rule.hook, CommandHook):
        asked, kind = hook.rule.hook.asks, hook.rule.hook.kind
        return f"it asks a {asked}" if asked else f"no failure is known that {kind} hooks have to block"
    return None if hook.is_gate else "it is not a gate: its block is only recorded, or ignored"


async def prove(hook: HookDiagnosis, settings: Settings, project: str, copy: ProjectCopy) -> Proof:
    try:
        return await _try(_Trial(hook, settings, project, copy))
    except OSError as error:
        return Proof("cannot prove", f"a failure cannot be planted: {error}")


async def _try(trial: "_Trial") -> Proof:
    if path := trial.script_of_project:
        names = "names the folder of the project, so it would run there and not in the copy"
        return Proof("cannot prove", f"{path} {names}")
    failures, reasons = trial.failures()
    if not failures:
        return Proof(
            "cannot prove", "; ".join(reasons) or f"Turngate does not know what it checks; it knows {KNOWN}"
        )
    first = failures[0]
    if first.as_is is not None:  # a gate that does not find what it checks says nothing about a planted one
        run = await trial.run(first.as_is, first.passing_answer)
        if outcome(run) == "failed":
            reason = one_line(run_message(run) or "", MAX_REASON_CHARS)
            return Proof("cannot prove", f"it could not run as it is: {reason}")
    run = await trial.run(first.passing, first.passing_answer, is_control=True)
    repaired = is_blocking(run, trial.settings.dialect) and trial.repair(failures)
    if repaired:
        run = await trial.run(first.passing, first.passing_answer, is_control=True)
    if is_blocking(run, trial.settings.dialect):
        reason = one_line(run_message(run) or "no reason given", MAX_REASON_CHARS)
        return Proof("NOT PROVED", f"it blocks even without a planted failure: {reason}", _RED_HINT)
    if why := _why_not_passed(run, trial):
        return Proof("cannot prove", why)
    runs = [(failure, await trial.run(failure.files, failure.answer)) for failure in failures]
    return _conclude(runs, trial.settings, repaired=repaired)


def _why_not_passed(run: HookRun, trial: "_Trial") -> str | None:
    """Return why a run without a planted failure says nothing about one with it."""
    reason = one_line(run_message(run) or "no reason given", MAX_REASON_CHARS)
    match outcome(run):
        case "failed" | "timeout" | "skipped" | "waiting":
            different = f" (of the copy: {'; '.join(trial.notes)})" if trial.notes else ""
            return f"it does not work in a copy of the project: {reason}{different}"
        case "halt":
            return f"it halts the turn: {reason}"
        case _:
            return None


def _conclude(runs: Sequence[tuple[PlantedFailure, HookRun]], settings: Settings, *, repaired: bool) -> Proof:
    blocked = [failure.what for failure, run in runs if is_blocking(run, settings.dialect)]
    ended = [failure.what for failure, run in runs if failure.is_limit and outcome(run) == "halt"]
    held = {*blocked, *ended}
    passed = [(failure, run) for failure, run in runs if failure.what not in held]
    if not held:
        text = "; ".join(_describe_pass(*each) for each in passed)
        return Proof("NOT PROVED", text, _hint(passed[0][1]))
    parts = [f"blocks {_join(blocked)}"] if blocked else []
    parts += [f"ends the turn with {_join(ended)}, as a limit does"] if ended else []
    parts += [f"allows {_join([failure.what for failure, _ in passed])}"] if passed else []
    text = "; ".join(parts)
    return Proof("proved", f"{text} (after the copy was cleaned up)" if repaired else text)


def _describe_pass(failure: PlantedFailure, run: HookRun) -> str:
    planted = f"with {failure.what} planted at {failure.where}"
    match outcome(run):
        case "failed" | "timeout":
            reason = one_line(run_message(run) or "", MAX_REASON_CHARS)
            return f"it failed {planted}, and a failure does not block: {reason}"
        case "halt":
            return f"it halted the turn {planted}"
        case _:
            return f"it allowed a stop {planted}"


def _hint(run: HookRun) -> str | None:
    if isinstance(run.decision, Fault):
        return run_hint(run)
    if isinstance(run.decision, Halt):
        return None
    return 'a hook that only reports is not a gate: write "mode": "observe"'


def _join(texts: list[str]) -> str:
    *first, last = dict.fromkeys(texts)
    return f"{', '.join(first)} and {last}" if first else last


class _Trial:
    """One gate in one copy: its command, settings and environment lead into the copy and not into the project."""

    def __init__(self, hook: HookDiagnosis, settings: Settings, project: str, copy: ProjectCopy) -> None:
        self._relocation = Relocation(project, copy)
        self.copy, self._private, self.notes = copy.project, self._relocation.private, copy.notes
        rule = replace(hook.rule, event=fired_event(hook.rule))
        self._agent_type = rule.agent_type or hook.subject or DEFAULT_AGENT_TYPE
        self.rule = self._relocation.rule(rule)
        self.settings = self._relocation.settings(settings, [self.rule])
        transcript = os.path.join(self._private, "transcript.jsonl")
        with open(transcript, "xb") as file:
            file.write(conversation())
        self.script_of_project = self._relocation.script_of_project(rule)
        text = gate_text(hook_text(self.rule.hook), self._relocation.scripts(rule), self.copy)
        has_repository = os.path.isdir(os.path.join(copy.folder, ".git"))
        self.gate = Gate(text, self.copy, transcript, has_repository=has_repository)
        self._named = named_gate(self.rule.hook)
        if self._named and self._named.gate.asks_model:
            model = f"scripted:{judge_script(self.gate)}"
            self.rule = replace(self.rule, hook=with_judge(self.rule.hook, model))
            self.settings = replace(self.settings, rules=(self.rule,))

    def repair(self, failures: Sequence[PlantedFailure]) -> bool:
        """Remove from the copy what the planted failures add to it. Return whether there was something."""
        repairs = {path: data for failure in failures for path, data in (failure.repairs or {}).items()}
        for path, data in repairs.items():
            self._write(path, data)
        commits = any(failure.commits for failure in failures)
        if commits:
            commit_everything(self.copy, MARK)
        return bool(repairs) or commits

    def failures(self) -> tuple[list[PlantedFailure], list[str]]:
        """Return the failures that the gate has to block, and why others cannot be planted."""
        if self._named is None:
            return failures_for(self.gate)
        try:
            return PLANTERS[self._named.gate.name](self._named, self.gate), []
        except CannotPlantError as error:
            return [], [str(error)]

    async def run(self, files: Mapping[str, bytes], answer: str, *, is_control: bool = False) -> HookRun:
        """Run the gate once, while these files are in the copy, at the end of a session of its own.

        `is_control`: a gate that runs a command also runs if nothing has changed, and all that fails counts.
        """
        settings = self.settings
        if is_control and self._named and "always" in self._named.options:
            settings = replace(settings, rules=(replace(self.rule, hook=with_all_failures(self.rule.hook)),))
        world = World(LocalShell(), self.copy, environ=self._relocation.environ(os.environ), logs=False)
        ended: Literal["ok", "error"] = "ok" if "ok" in self.rule.hook.outcomes else "error"
        agent = (self._agent_type, ended) if self.rule.event == "SubagentStop" else None
        start, stop = events_in_copy(self.copy, self.gate.transcript, self.rule.event, answer, agent)
        await ask_hooks(start, settings, world)  # a gate may record what is there
        with self._planted(files):
            verdict = await ask_hooks(stop, settings, world)
            await world.close()
        return verdict.runs[0]

    @contextlib.contextmanager
    def _planted(self, files: Mapping[str, bytes]) -> Iterator[None]:
        """Write files, and restore what was there before."""
        before: dict[str, bytes | None] = {}
        try:
            for path, data in files.items():
                before[path] = Path(path).read_bytes() if os.path.exists(path) else None
                self._write(path, data)
            yield
        finally:
            for path, earlier in before.items():
                with contextlib.suppress(OSError):  # the gate may have removed it, or its folder
                    os.unlink(path) if earlier is None else self._write(path, earlier)

    def _write(self, path: str, data: bytes) -> None:
        """Write a file of the copy, and never one that a link leads to elsewhere. Raises OSError."""
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if not is_inside(real_path(path), real_path(self._private)):
            raise OSError(errno.EXDEV, "it is a link that leads out of the copy", path)
        with open(path, "wb") as file:
            file.write(data)
