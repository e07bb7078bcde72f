"""The actions of `turngate gates`: run the gates of a project without an agent, as CI does, or list them."""

import argparse
import asyncio
import contextlib
import json
import os
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import uuid4

from turngate._frozen_dataclass import frozen
from turngate.cli.arguments import find_project_here
from turngate.cli.commands.gates.formats import FORMATS, bounded, find_places, write_job_summary
from turngate.cli.commands.hooks.samples import sample_fields
from turngate.cli.console.conversation_text import flat, format_waiting
from turngate.cli.console.progress import ProgressLine, show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.console.verdict import problems_for
from turngate.cli.main import EXIT_ALLOWED, EXIT_NOT_ENFORCED, EXIT_PROBLEMS
from turngate.cli.project import with_place
from turngate.cli.recorded_sessions import accept_open_stop, read_accepted
from turngate.cli.review import find_keys, load_all_hooks
from turngate.cli.review.entries import format_text, shown_key
from turngate.cli.workspace import OpenWorkspace, open_workspace
from turngate.core.answers.report_types import Skipped
from turngate.core.constants import GATES_BASE, GATES_RUN_SESSION, STOP_EVENTS
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.kinds import CommandHook, identity, label
from turngate.core.hooks.selection import switched_off_by
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.text import indent, quote_name, strip_controls
from turngate.core.verdict.decisions import Fault, Halt
from turngate.core.verdict.hints import GONE, run_hint
from turngate.core.verdict.hook_run import HookRun, run_message
from turngate.core.verdict.json_output import hook_json
from turngate.core.verdict.verdict import is_blocking
from turngate.doctor.proof.planted_failures import gate_text
from turngate.doctor.proof.ready_made_gates import named_gate, why_not_a_check
from turngate.doctor.proof.sample_transcript import conversation
from turngate.engine import ask_hooks
from turngate.errors import UsageError
from turngate.gates.session_changes import NO_SESSION, record_files
from turngate.ports import HookRunContext, World, on_machine
from turngate.settings.load import has_unloaded_hooks
from turngate.settings.plugin_folders import display_name
from turngate.stop_hooks import open_world
from turngate.trust.fingerprint import scripts_of
from turngate.trust.review import unique_keys

_CONVERSATION = re.compile(r"transcript_path|last_assistant_message", re.IGNORECASE)
Outcome = Literal["passed", "failed", "could not run", "left out"]


@frozen
class GateEntry:
    """One hook that decides whether an agent may stop; `left_out` says why it needs an agent."""

    key: str
    rule: Rule
    left_out: str | None = None
    file: str | None = None  # in which it is configured, for the user


@frozen
class GateResult:
    entry: GateEntry
    outcome: Outcome
    reason: str | None = None
    hint: str | None = None
    seconds: float = 0.0


NOT_LOADED = "no gate could be loaded; `turngate check` lists what to correct"
NO_GATES = "no gates are configured; `turngate init` finds the checks of a project"
APPROVE = (
    "read what is not approved with `turngate hooks diff`, and approve it with `turngate hooks approve --all`; "
    "or add --trust, in CI of your own repository"
)
_LABEL_WIDTH = len("could not run")
_STYLES: Mapping[Outcome, str] = {
    "passed": "good",
    "failed": "alert",
    "could not run": "notice",
    "left out": "dim",
}


def run_action(options: argparse.Namespace) -> int:
    if options.action == "accept":
        print(strip_controls(accept_open_stop(options.session, options.why)))
        return EXIT_ALLOWED
    with open_workspace(options, find_project_here(options)) as workspace:
        world, has_base = workspace.world, getattr(options, "base", None) is not None
        with show_if_slow(f"reading the settings{on_machine(world)}"):
            settings = load_all_hooks(options, world)
            entries = select_gates(settings, world, getattr(options, "names", ()), has_base=has_base)
        if options.action == "run":
            return _run(entries, settings, workspace, options)
    return _list(entries, world.location, options)


# Run


def _run(
    entries: Sequence[GateEntry], settings: Settings, workspace: OpenWorkspace, options: argparse.Namespace
) -> int:
    location = workspace.world.location
    with open_private_folder() as private:
        work = _run_and_print(entries, settings, workspace.world, private, options)
        results = workspace.run(work, "; no gate is left running")
    problems = [problem for event in STOP_EVENTS for problem in problems_for(event, settings)]
    not_loaded = has_unloaded_hooks(settings, *STOP_EVENTS)
    code = _exit_code(results, lenient=options.lenient, not_loaded=not_loaded)
    report = _report_json(results, location, problems, not_loaded=not_loaded)
    name = "json" if options.json else options.format
    if _prints_text(options):
        _print_end(results, problems, location, not_loaded=not_loaded)
    if name != "text" and (text := FORMATS[name](report)):
        print(text)
    if name == "github":
        write_job_summary(report)
    return code


def _prints_text(options: argparse.Namespace) -> bool:
    """GitHub Actions reads its commands from between the lines of a log."""
    return not options.json and options.format in ("text", "github")


async def _run_and_print(
    entries: Sequence[GateEntry],
    settings: Settings,
    world: World,
    private: str,
    options: argparse.Namespace,
) -> list[GateResult]:
    """Run the gates in order, each by itself, in the project; print each result at once."""
    base = "" if options.base is None else await find_base(world, options.base)
    results, accepted = [], await read_accepted(world)
    for entry in entries:
        if entry.left_out:
            result = GateResult(entry, "left out", entry.left_out)
        else:
            result = await run_gate(entry, settings, world, private, base)
            note = accepted.get(label(entry.rule.hook))
            if note and result.outcome != "passed":
                result = replace(result, reason=f"{result.reason}\n{note}")
        results.append(result)
        if _prints_text(options):
            _print_result(result, world.location)
    return results


def _exit_code(results: Sequence[GateResult], *, lenient: bool, not_loaded: bool) -> int:
    """Nothing that ran is nothing that passed."""
    outcomes = {result.outcome for result in results}
    if "failed" in outcomes:
        return EXIT_PROBLEMS
    is_enforced = "passed" in outcomes and "could not run" not in outcomes and not not_loaded
    return EXIT_ALLOWED if is_enforced or lenient else EXIT_NOT_ENFORCED


def _print_result(result: GateResult, location: str) -> None:
    label = paint(f"{result.outcome:<{_LABEL_WIDTH}}", _STYLES[result.outcome])
    time = f"{result.seconds:6.2f} s" if result.outcome != "left out" else " " * 8
    file = result.entry.file
    name = quote_name(shown_key(result.entry.key)) + (f"  ({file})" if file else "")
    is_long = result.outcome == "failed"
    why = f": {result.reason}" if result.reason and not is_long else ""
    print(f"{label} {time}  {flat(name + why)}", flush=True)
    if is_long:
        print(indent(bounded(result.reason or "")), flush=True)
    if result.hint:
        print(f"  → {flat(with_place(result.hint, location))}", flush=True)


def _print_end(
    results: Sequence[GateResult], problems: Iterable[Problem], location: str, *, not_loaded: bool
) -> None:
    for problem in dict.fromkeys(problems):
        print(paint(f"! {flat(str(problem))}", "alert", sys.stderr), file=sys.stderr)
        if problem.hint:
            print(f"  → {flat(problem.hint)}", file=sys.stderr)
    pending = {result.entry.rule.pending for result in results if result.outcome == "could not run"}
    if pending - {None, GONE}:
        print(f"→ {with_place(APPROVE, location)}")
    counts = Counter(result.outcome for result in results)
    total = ", ".join(f"{counts[outcome]} {outcome}" for outcome in _STYLES if counts[outcome])
    worst: tuple[Outcome, ...] = ("failed", "could not run", "passed")
    style = next((_STYLES[each] for each in worst if counts[each]), "notice")
    print(paint(total or (NOT_LOADED if not_loaded else NO_GATES), style))


def _report_json(
    results: Sequence[GateResult], project: str, problems: Iterable[Problem], *, not_loaded: bool
) -> dict[str, Any]:
    gates = [
        {
            **_entry_json(result.entry),
            "outcome": result.outcome.replace(" ", "_"),
            "reason": result.reason,
            "seconds": round(result.seconds, 4),
            "places": find_places(result.reason or "", project) if result.outcome == "failed" else [],
        }
        for result in results
    ]
    return {
        "project": project,
        "gates": gates,
        "not_loaded": not_loaded,
        "warnings": [str(problem) for problem in dict.fromkeys(problems)],
    }


# List


def _list(entries: Sequence[GateEntry], project: str, options: argparse.Namespace) -> int:
    if options.json:
        gates = [{**_entry_json(entry), "left_out": entry.left_out} for entry in entries]
        print(json.dumps({"project": project, "gates": gates}, indent=2))
        return EXIT_ALLOWED
    for entry in entries:
        file = f"  ({entry.file})" if entry.file else ""
        why = entry.left_out and f"left out: {entry.left_out}"
        pending = entry.rule.pending and f"pending: {entry.rule.pending}"
        print(flat(f"{shown_key(entry.key)}  {format_text(entry.rule)}{file}"))
        if note := why or pending:
            print(paint(f"  {flat(note)}", "dim"))
    if not entries:
        print(NO_GATES)
    return EXIT_ALLOWED


def _entry_json(entry: GateEntry) -> dict[str, Any]:
    hook = hook_json(entry.rule.hook)
    return {"name": entry.key, "event": entry.rule.event, "file": entry.file, "hook": hook}


@contextlib.contextmanager
def open_private_folder() -> Iterator[str]:
    """Yield a folder for the state of one run and a short conversation, which is removed afterward."""
    with tempfile.TemporaryDirectory(prefix="turngate-gates-") as folder:
        with open(os.path.join(folder, "transcript.jsonl"), "xb") as file:
            file.write(conversation(ran_tests=False))
        yield folder


async def run_gate(
    entry: GateEntry,
    settings: Settings,
    place: World,
    private: str,
    base: str = "",
    state: str | None = None,
) -> GateResult:
    """Run one gate. `base`: a commit, if any. `state`: where what is known of the gate is kept, by default nowhere."""
    rule, state = entry.rule, state or os.path.join(private, "state")
    given = {"session_id": f"{GATES_RUN_SESSION}{uuid4()}"}  # nothing is known from an earlier run
    fields = sample_fields(
        rule, given, project=place.project, transcript=os.path.join(private, "transcript.jsonl")
    )
    event = read_event(rule.event, fields, cwd=place.project)
    own = replace(settings, rules=(rule,), stop_budget=None)
    waiting = format_waiting(label(rule.hook), settings.timeout_of(rule))
    progress = ProgressLine(lambda: [waiting])
    async with open_world(place, own, state=state) as world, progress.shown():
        world.logs = False
        world.environ_here = {**world.own_environ, "TURNGATE_STATE": state, GATES_BASE: base}
        world.environ = {**world.environ, GATES_BASE: base} if world.machine else world.environ_here
        verdict = await ask_hooks(event, own, world)
    if not verdict.runs:
        return GateResult(entry, "could not run", "it does not run for this event")
    return _read_run(entry, verdict.runs[0], settings)


def _read_run(entry: GateEntry, run: HookRun, settings: Settings) -> GateResult:
    reason = run_message(run)
    if is_blocking(run, settings.dialect) or isinstance(run.decision, Halt):
        return GateResult(entry, "failed", reason or "it gave no reason", seconds=run.seconds)
    if isinstance(run.decision, Fault) or isinstance(run.report, Skipped):
        hint = run_hint(run) if run.rule.pending in (None, GONE) else None  # the others have one at the end
        return GateResult(entry, "could not run", reason, hint, run.seconds)
    return GateResult(entry, "passed", run.decision.notice, seconds=run.seconds)


# Which hooks can be run without an agent, and the commit that `--base` compares with


def select_gates(
    settings: Settings, world: World, names: Sequence[str], *, has_base: bool
) -> list[GateEntry]:
    """Return all hooks of stops, or those with these keys. Raises UsageError for a name that is not one.

    `has_base`: there is a commit that gates can compare with.
    """
    keyed = zip(unique_keys(settings.rules), settings.rules, strict=True)
    stops = [(key, rule) for key, rule in keyed if rule.event in STOP_EVENTS]
    entries = list(_entries(stops, settings, world, has_base=has_base))
    by_key = {entry.key: entry for entry in entries}
    return find_keys(by_key, names, "gate") if names else entries


def _entries(
    rules: Sequence[tuple[str, Rule]], settings: Settings, world: World, *, has_base: bool
) -> Iterator[GateEntry]:
    """A check that is a hook of Stop and of SubagentStop is run once."""
    seen: dict[tuple[object, ...], str] = {}
    for key, rule in rules:
        why = _why_left_out(rule, settings, world, has_base=has_base)
        same = seen.get(identity(rule.hook)) if why is None and not rule.pending else None
        if why is None and same is None:
            seen[identity(rule.hook)] = key
        why = why or (f"it is the same as {shown_key(same)}" if same else None)
        file = display_name(rule.file, world.project, world.files.home) if rule.file else None
        yield GateEntry(key, rule, why, file)


def _why_left_out(rule: Rule, settings: Settings, world: World, *, has_base: bool) -> str | None:
    if setting := switched_off_by(rule, settings):
        return f"{setting} switches it off"
    if not rule.hook.enabled:
        return "its own `enabled` switches it off"
    if rule.rejected:
        return "it was rejected"
    if settings.mode_of(rule) != "gate":
        return "it only observes"
    if rule.hook.detached:
        return "it runs in the background, and does not block a stop"
    if named := named_gate(rule.hook):
        needs = "it needs a conversation" if named.gate.needs_conversation else None
        no_start = NO_SESSION if named.gate.record is record_files and not has_base else None
        return why_not_a_check(named.gate) or needs or no_start
    if isinstance(rule.hook, CommandHook):
        command = " ".join((rule.hook.command, *(rule.hook.args or ())))
        text = gate_text(command, scripts_of(rule, world.project, world.files), world.project, world.files)
        return "it reads the conversation" if _CONVERSATION.search(text) else None
    return f"it asks a {rule.hook.asks}" if rule.hook.asks else None


GIT_TIMEOUT_S = 60.0


async def find_base(world: World, revision: str) -> str:
    """Return the last commit that the revision and HEAD have in common. Raises UsageError."""
    words = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    commit, name = await _git(world, *words), quote_name(flat(revision))
    if not commit:
        raise UsageError(
            f"--base {name}: git knows no such commit here; fetch it first, e.g. `git fetch origin`"
        )
    base = await _git(world, "merge-base", commit, "HEAD")
    if not base:
        raise UsageError(
            f"--base {name} has no commit in common with HEAD here; "
            "fetch the whole history (`git fetch --unshallow`, in a GitHub workflow `fetch-depth: 0`)"
        )
    return base


async def _git(world: World, *words: str) -> str:
    """Return the first line that git prints where the project is; empty if it fails."""
    git, live = CommandHook("git", args=("-c", "core.fsmonitor=false", *words)), HookRunContext()
    try:
        async with asyncio.timeout(GIT_TIMEOUT_S):
            done = await world.shell.run(git, cwd=world.project, env=world.environ, stdin=b"", live=live)
    except TimeoutError:
        raise UsageError(f"--base: git did not answer within {GIT_TIMEOUT_S:.0f} s") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"--base: git could not be started: {error}") from None
    return done.stdout.partition("\n")[0] if done.code == 0 else ""
