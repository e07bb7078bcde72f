"""`turngate hooks test`: run the hooks of an event on a sample input, and explain each answer."""

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.cli.commands.fire import read_input
from turngate.cli.commands.hooks.run_explanation import effect_of, explain
from turngate.cli.commands.hooks.samples import sample_fields
from turngate.cli.console import conversation_text as fmt
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.console.verdict import print_warning, problems_for, verdict_headline
from turngate.cli.main import EXIT_ALLOWED, EXIT_NOT_ENFORCED
from turngate.cli.project import with_place
from turngate.cli.review import load_all_hooks
from turngate.cli.review.entries import shown_key
from turngate.cli.workspace import OpenWorkspace
from turngate.core.answers.report_types import Skipped
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Rule, Settings
from turngate.core.text import indent, one_line
from turngate.core.verdict.decisions import Allow, Fault
from turngate.core.verdict.hints import GONE, run_hint
from turngate.core.verdict.hook_run import HookRun, outcome
from turngate.core.verdict.json_output import run_json
from turngate.core.verdict.verdict import conclude, is_blocking
from turngate.doctor.proof.project_copy import ProjectTooLarge, Relocation, copy_project
from turngate.doctor.proof.sample_transcript import conversation
from turngate.engine import ask_hooks
from turngate.errors import UsageError
from turngate.ports import World
from turngate.settings.load import has_unloaded_hooks
from turngate.stop_hooks import open_world
from turngate.trust.review import unique_keys

MAX_COMMAND_CHARS = 120
FIELD_WIDTH = 10
# Other fields are those of the JSON answer.
_OUTER_FIELDS = ("run", "time", "exit code", "stdout", "stderr", "reply", "result", "warning")


@frozen
class Trial:
    """One hook, the input that it was given, and how it ran."""

    key: str
    fields: dict[str, Any]
    run: HookRun
    script_of_project: str | None = None  # one that names the folder of the project, and so leaves the copy


@frozen
class Place:
    """Where hooks are tried: in a copy of the project, or in the project."""

    world: World
    private: str  # a folder for the state and the sample transcript, which is removed afterwards
    relocation: Relocation | None = None
    notes: tuple[str, ...] = ()

    @property
    def transcript(self) -> str:
        return os.path.join(self.private, "transcript.jsonl")


def try_hooks(options: argparse.Namespace, workspace: OpenWorkspace) -> int:
    """Run the command in the workspace of the project."""
    world = workspace.world
    settings = load_all_hooks(options, world)
    chosen = _choose(settings, options.event, options.hook)
    fields = {} if options.input is None else read_input(options.input, options.event)
    if not chosen:
        others = ", ".join(dict.fromkeys(rule.event for rule in settings.rules)) or "no event"
        raise UsageError(f"there is no hook for {options.event} to test; there are hooks for {others}")
    with (
        _open_place(world, in_place=options.in_place) as place,
        show_if_slow(f"running the hooks of {options.event}"),
    ):
        with open(place.transcript, "xb") as file:
            file.write(conversation())
        trials = workspace.run(_try_all(chosen, settings, place, fields), "; no hook is left running")
    not_loaded = has_unloaded_hooks(settings, options.event)
    # Hooks in the background have no part in the verdict.
    runs = tuple(trial.run for trial in trials if not trial.run.rule.hook.detached)
    verdict = conclude(runs, settings.dialect)
    headline = verdict_headline(verdict, options.event, not_loaded=not_loaded)
    if options.json:
        shown = {
            "event": options.event,
            "project": world.location,
            "in_copy": place.relocation is not None,
            "notes": list(place.notes),
            "verdict": headline,
            "hooks": [_trial_json(trial, settings) for trial in trials],
            "not_loaded": not_loaded,
            "warnings": [str(problem) for problem in problems_for(options.event, settings)],
        }
        print(json.dumps(shown, indent=2))
    else:
        _print(trials, settings, place, options.event, fmt.hanging(headline), world.location)
    has_fault = any(isinstance(trial.run.decision, Fault) for trial in trials)
    return EXIT_NOT_ENFORCED if has_fault or not_loaded else EXIT_ALLOWED


def _choose(settings: Settings, event: str, key: str | None) -> list[tuple[str, Rule]]:
    """Return the hooks of the event by their keys, or the one that is named. Raises UsageError."""
    by_key = dict(zip(unique_keys(settings.rules), settings.rules, strict=True))
    of_event = {name: rule for name, rule in by_key.items() if rule.event == event}
    if key is None:
        return list(of_event.items())
    if key in of_event:
        return [(key, of_event[key])]
    if key in by_key:
        raise UsageError(f"{shown_key(key)} is a hook of {by_key[key].event}, not of {event}")
    known = ", ".join(map(shown_key, of_event)) or "none"
    raise UsageError(f"there is no hook {shown_key(key)} of {event}; there are: {known}")


@contextlib.contextmanager
def _open_place(world: World, *, in_place: bool) -> Iterator[Place]:
    project = world.project
    if in_place:
        with tempfile.TemporaryDirectory(prefix="turngate-test-") as private:
            yield Place(world, private)
        return
    try:
        with show_if_slow("copying the project"):
            opened = contextlib.ExitStack()
            copy = opened.enter_context(copy_project(project))
    except OSError as error:
        is_large = isinstance(error, ProjectTooLarge)
        what = f"is {error.strerror}" if is_large else f"cannot be copied: {error}"
        raise UsageError(f"the project {what}; --in-place runs the hooks in the project itself") from None
    with opened:
        relocation = Relocation(project, copy)
        copied = World(world.shell, copy.project, environ=relocation.environ(world.environ))
        yield Place(copied, relocation.private, relocation, copy.notes)


async def _try_all(
    chosen: Sequence[tuple[str, Rule]], settings: Settings, place: Place, fields: dict[str, Any]
) -> list[Trial]:
    """Run the hooks one after another, each by itself."""
    trials = []
    for key, rule in chosen:
        given = sample_fields(rule, fields, project=place.world.project, transcript=place.transcript)
        run = await _try(rule, settings, place, given)
        leaves = place.relocation.script_of_project(rule) if place.relocation else None
        trials.append(Trial(key, given, run, leaves))
    return trials


async def _try(rule: Rule, settings: Settings, place: Place, fields: dict[str, Any]) -> HookRun:
    """Run one hook, also one for the background, to its end."""
    event = read_event(rule.event, fields, cwd=place.world.project)
    in_foreground = replace(rule, hook=replace(rule.hook, detached=False, rewake=False))
    own = replace(settings, rules=(in_foreground,), stop_budget=None)
    if place.relocation:
        own = place.relocation.settings(settings, [place.relocation.rule(in_foreground)])
    async with open_world(place.world, own, state=os.path.join(place.private, "state")) as world:
        world.logs = False
        verdict = await ask_hooks(event, own, world)
    if not verdict.runs:
        skipped = Skipped(f"it is for subagents of the type {rule.agent_type}", on_purpose=True)
        return HookRun(rule, skipped, Allow())
    return replace(verdict.runs[0], rule=rule)


# Output


def _print(
    trials: Sequence[Trial], settings: Settings, place: Place, event: str, headline: str, location: str
) -> None:
    where = "in a copy of the project, which is removed" if place.relocation else "in the project itself"
    print(paint(f"{event}: {headline}", fmt.headline_style(headline)))
    print(f"  {where}")
    for note in place.notes:
        print(f"  {fmt.flat(note)}")
    for trial in trials:
        _print_trial(trial, settings, location)
    for problem in problems_for(event, settings):
        print_warning(str(problem), problem.hint)


def _print_trial(trial: Trial, settings: Settings, location: str) -> None:
    run = trial.run
    file = f"  ({run.rule.file})" if run.rule.file else ""
    print(paint(f"{shown_key(trial.key)}{fmt.flat(file)}", "bold"))
    is_in_background = run.rule.hook.detached and not isinstance(run.report, Skipped)
    label = fmt.outcome_label(outcome(run), blocking=is_blocking(run, settings.dialect))
    label = "in background" if is_in_background else label
    command = one_line(hook_text(run.rule.hook), MAX_COMMAND_CHARS)
    print(f"  {paint(label, fmt.label_style(label))}, {run.seconds:.2f} s: {fmt.flat(command)}")
    if not isinstance(run.report, Skipped):
        print(f"  {'input':<{FIELD_WIDTH}} {fmt.flat(_shown_input(trial.fields))}")
    for note in explain(run, settings.dialect):
        meaning = f"ignored: {note.meaning}" if note.is_ignored else note.meaning
        name = note.field if note.field in _OUTER_FIELDS else f"  {note.field}"
        value = f"{note.value} → " if note.value else ""
        print(f"  {fmt.flat(f'{name:<{FIELD_WIDTH}} {value}{meaning}')}")
    effect = effect_of(run, settings.dialect)
    print(f"  ⇒ {fmt.flat(effect.text)}")
    if effect.detail:
        print(indent(indent(effect.detail)))
    for hint in _hints(trial):
        print(f"  → {fmt.flat(with_place(hint, location))}")


def _shown_input(fields: dict[str, Any]) -> str:
    """Return the fields that depend on the event."""
    common = ("session_id", "transcript_path", "cwd")
    own = {name: value for name, value in fields.items() if name not in common}
    return json.dumps(own, ensure_ascii=False)


def _hints(trial: Trial) -> Iterator[str]:
    rule, hint = trial.run.rule, run_hint(trial.run)
    if rule.pending and rule.pending != GONE:
        yield f"--trust runs it for this test; `turngate hooks diff {shown_key(trial.key)}` shows it before you approve it"
    elif hint:
        yield hint
    elif isinstance(trial.run.report, Skipped):
        yield f"--input '{{…}}' gives it an input other than {_shown_input(trial.fields)}"
    if trial.script_of_project:
        yield f"{trial.script_of_project} names the folder of the project, so it may work there and not in the copy"


def _trial_json(trial: Trial, settings: Settings) -> dict[str, Any]:
    return {
        "key": trial.key,
        "input": trial.fields,
        **run_json(trial.run),
        "fields": [asdict(note) for note in explain(trial.run, settings.dialect)],
        "effect": asdict(effect_of(trial.run, settings.dialect)),
    }
