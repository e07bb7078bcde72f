"""`turngate hooks test`: run the hooks of an event on a sample input, and explain each answer."""

import argparse
import contextlib
import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, assert_never

from turngate._frozen_dataclass import frozen
from turngate.cli.commands.fire import read_input
from turngate.cli.console import conversation_text as fmt
from turngate.cli.console.conversation_text import NOT_ENFORCED
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.console.verdict import print_warning, problems_for, verdict_headline
from turngate.cli.main import EXIT_ALLOWED, EXIT_NOT_ENFORCED
from turngate.cli.project import with_place
from turngate.cli.review import load_all_hooks
from turngate.cli.review.entries import shown_key
from turngate.cli.workspace import OpenWorkspace
from turngate.core.answers.answer_json import parse_json
from turngate.core.answers.interpret import interpret
from turngate.core.answers.report_types import (
    Detached,
    Exited,
    HookFailed,
    JudgeReplied,
    Replied,
    Returned,
    Skipped,
    TimedOut,
)
from turngate.core.dialect import Dialect
from turngate.core.events.hook_input import read_event
from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Rule, Settings
from turngate.core.text import BLANKS, indent, one_line, truncate
from turngate.core.verdict.decisions import Advise, Allow, Block, Fault, Halt
from turngate.core.verdict.hints import GONE, run_hint
from turngate.core.verdict.hook_run import HookRun, outcome
from turngate.core.verdict.json_output import run_json
from turngate.core.verdict.tool_effects import (
    PLAIN_CONTEXT_EVENTS,
    Permission,
    context_of,
    first_messages,
    permission_of,
    updated_output,
    wake_message,
)
from turngate.core.verdict.verdict import Continue, Stop, conclude, is_blocking
from turngate.doctor.proof.project_copy import ProjectTooLarge, Relocation, copy_project
from turngate.doctor.proof.samples import conversation, sample_fields
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


# Explain one run: what was read of it, what was ignored, and what an agent would do if there were no other hook


MAX_VALUE_CHARS = 100
MAX_KEYS = 50  # of an answer that are tried


@frozen
class FieldNote:
    """One thing that a hook gave, and what it means."""

    field: str  # "exit code", "stdout", "decision", "hookSpecificOutput.additionalContext" …
    value: str
    meaning: str
    is_ignored: bool = False


def _ignored(field: str, value: str, why: str) -> FieldNote:
    return FieldNote(field, value, why, is_ignored=True)


def explain(run: HookRun, dialect: Dialect) -> tuple[FieldNote, ...]:
    """Return a note for each output of the hook, and for each key of its answer that has no effect."""
    notes = list(_notes(run, dialect))
    if isinstance(run.decision, Fault) and run.decision.kind == "failed" and not _is_exit_fault(run):
        error = run.decision.error
        is_named = any(error in note.meaning for note in notes)
        notes += [] if is_named else [FieldNote("result", "", f"no decision: {error}")]
    notes += [FieldNote("warning", "", warning) for warning in run.decision.warnings]
    return tuple(notes)


def _notes(run: HookRun, dialect: Dialect) -> Iterator[FieldNote]:
    match run.report:
        case Skipped(reason):
            yield FieldNote("run", "", f"it did not run: {reason}")
        case HookFailed(error):
            yield FieldNote("run", "", f"it could not be run: {error}")
        case TimedOut(seconds, out, err):
            yield FieldNote("time", f"{seconds:g} s", "the timeout: it was ended, and gave no decision")
            for name, text in (("stdout", out), ("stderr", err)):
                if text.strip():
                    yield _ignored(name, _shown(text), "it timed out")
        case Exited():
            yield FieldNote("exit code", str(run.report.code), _exit_meaning(run, run.report, dialect))
            stdout = run.report.stdout
            if stdout.strip() and (why := _why_stdout_is_ignored(run, run.report, dialect)) is not None:
                yield _ignored("stdout", _shown(stdout), why)
            elif stdout.strip():
                yield from _explain_answer("stdout", stdout, run, dialect)
            yield from _explain_stderr(run, run.report)
        case Replied(text):
            yield from _explain_answer("reply", text, run, dialect)
        case JudgeReplied(text):
            yield FieldNote("reply", _shown(text), _judge_meaning(run))
        case Returned() | Detached():
            pass
        case _:
            assert_never(run.report)


def _shown(text: str) -> str:
    return one_line(text.strip(), MAX_VALUE_CHARS)


# The exit code


def _exit_meaning(run: HookRun, report: Exited, dialect: Dialect) -> str:
    if report.code == 0:
        return "success: the answer is on stdout"
    if report.code == 2:
        return _meaning_of_2(run)
    how = "failed" if report.signal is None else f"killed by signal {report.signal}"
    if not isinstance(run.decision, Fault):
        return f"{how}, but in the {dialect.name} dialect the JSON on stdout counts"
    if is_blocking(run, dialect):
        return f"{how}: a failure of this hook blocks (`blocking` or `onFailure`)"
    return f"{how}: a failure does not block, only 2 does"


def _meaning_of_2(run: HookRun) -> str:
    match run.decision:
        case Block():
            return "blocks"
        case Fault(error):
            return f"does not block: {error}"
        case Halt():
            return "blocks, but the JSON on stdout ends the turn"
        case _:
            return f"does not block: a hook cannot block at {run.rule.event}"


# The output


def _why_stdout_is_ignored(run: HookRun, report: Exited, dialect: Dialect) -> str | None:
    if report.code == 0 or dialect.json_on_any_exit:
        return None
    counts = not isinstance(run.decision, Fault) and run.answer is not None
    if counts or (report.code == 2 and not report.stderr.strip() and isinstance(run.decision, Block)):
        return None
    if report.code == 2:
        return "the exit code is 2, and with 2 the reason is read from stderr"
    return f"the exit code is {report.code}, and an answer counts only with exit code 0"


def _explain_answer(name: str, text: str, run: HookRun, dialect: Dialect) -> Iterator[FieldNote]:
    value = _parse_object(text)
    if value is None:
        yield _explain_text(name, text, run)
    elif isinstance(run.decision, Fault) and run.answer is None and not _is_exit_fault(run):
        yield _ignored(name, _shown(text), run.decision.error)
    else:
        yield FieldNote(name, f"a JSON object with {', '.join(value) or 'nothing'}", "read as the answer")
        yield from _keys_without_effect(value, run, dialect)


def _keys_without_effect(value: Mapping[str, Any], run: HookRun, dialect: Dialect) -> Iterator[FieldNote]:
    specific = value.get("hookSpecificOutput")
    inner = [key for key in specific if key != "hookEventName"] if isinstance(specific, dict) else []
    keys = [(key,) for key in value if not inner or key != "hookSpecificOutput"]
    result = _result(run, dialect)
    for path in islice([*keys, *(("hookSpecificOutput", key) for key in inner)], MAX_KEYS):
        *outer, key = path
        holder = value[outer[0]] if outer else value
        rest = {name: each for name, each in holder.items() if name != key}
        answered = _answered(run, {**value, outer[0]: rest} if outer else rest, dialect)
        if _result(answered, dialect) == result:
            shown = truncate(json.dumps(holder[key], ensure_ascii=False), MAX_VALUE_CHARS)
            yield _ignored(".".join(path), shown, "without it, the result is the same")


def _answered(run: HookRun, value: Mapping[str, Any], dialect: Dialect) -> HookRun:
    """Return the run as it would be with another answer."""
    text = json.dumps(value)
    report = replace(run.report, stdout=text) if isinstance(run.report, Exited) else Replied(text)
    decision, answer = interpret(report, run.rule, dialect)
    return replace(run, report=report, decision=decision, answer=answer)


def _result(run: HookRun, dialect: Dialect) -> object:
    return replace(run.decision, warnings=()), effect_of(run, dialect)


def _is_exit_fault(run: HookRun) -> bool:
    return isinstance(run.report, Exited) and run.report.code != 0


def _parse_object(text: str) -> Mapping[str, Any] | None:
    try:
        value = parse_json(text.strip(BLANKS))
    except (json.JSONDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _explain_text(name: str, text: str, run: HookRun) -> FieldNote:
    if isinstance(run.decision, Fault) and not _is_exit_fault(run):
        return _ignored(name, _shown(text), run.decision.error)
    if run.rule.event in PLAIN_CONTEXT_EVENTS and isinstance(run.report, Exited) and run.report.code == 0:
        return FieldNote(name, _shown(text), "plain text, added to the conversation as context")
    return _ignored(name, _shown(text), "it is plain text, and an answer is a JSON object")


def _explain_stderr(run: HookRun, report: Exited) -> Iterator[FieldNote]:
    if not report.stderr.strip():
        return
    shown = _shown(report.stderr)
    is_reason = isinstance(run.decision, Block) and report.stderr.strip() in run.decision.reason
    if report.code == 2 and is_reason:
        yield FieldNote("stderr", shown, "the reason of the block")
    elif report.code != 0 and isinstance(run.decision, Fault):
        yield FieldNote("stderr", shown, "shown to the user as the error")
    elif report.code == 0 and isinstance(run.decision, Fault):
        yield _ignored("stderr", shown, run.decision.error)
    else:
        why = "the reason is in the JSON" if report.code == 2 else f"the exit code is {report.code}"
        yield _ignored("stderr", shown, why)


def _judge_meaning(run: HookRun) -> str:
    if isinstance(run.decision, Fault):
        return f"not understood: {run.decision.error}"
    if isinstance(run.decision, Advise):
        return "the judge advises"
    return "the judge approves" if isinstance(run.decision, Allow) else "the judge blocks"


@frozen
class Effect:
    """A sentence, and the text that it announces."""

    text: str
    detail: str = ""


def effect_of(run: HookRun, dialect: Dialect) -> Effect:
    """Return what would have happened. `run.rule` is the hook as configured, also one that runs in the background."""
    event = run.rule.event
    if isinstance(run.report, Skipped) and run.report.on_purpose:
        return Effect(f"the hook does not take part in this {event}")
    if run.rule.hook.detached and isinstance(run.report, Skipped):
        return Effect("nothing runs in the background")
    if run.rule.hook.detached and (message := wake_message(run)):
        return Effect("it runs in the background, and its block wakes the agent with:", message)
    if run.rule.hook.detached:
        return Effect("it runs in the background, so its decision is ignored")
    if outcome(run) == "would_block":
        recorded = "recorded as a block and not enforced, because its mode is `observe`"
        return Effect(f"{recorded}: {_unchanged(event)}")
    verdict = conclude((run,), dialect)
    match verdict:
        case Continue(advice_only=True):
            return Effect("the agent continues once, with this advice:", verdict.prompt)
        case Continue():
            is_fault = isinstance(run.decision, Fault)
            because = "although it gave no decision, its failure blocks: " if is_fault else ""
            return Effect(because + _BLOCKED[event], verdict.prompt)
        case Stop(halted=True):
            ends = "the turn ends now to wait for the user" if verdict.waits else "the turn ends now"
            reason = verdict.stop_reason or ""
            return Effect(f"{ends}, and the user sees:" if reason else ends, reason)
        case Stop():
            return _passed(run, dialect)
        case _:
            assert_never(verdict)


_BLOCKED = {
    "Stop": "the agent is sent back with this text:",
    "SubagentStop": "the subagent is sent back with this text:",
    "TaskCompleted": "the task stays open, and the agent is sent this text:",
    "TeammateIdle": "the teammate is sent back with this text:",
    "UserPromptSubmit": "the prompt is not sent to the model, and the user sees:",
    "PreToolUse": "the tool call is denied, and the agent is sent:",
    "PermissionRequest": "the tool call is denied, and the agent is sent:",
    "PostToolUse": "the agent is sent this after the tool's result:",
    "PostToolUseFailure": "the agent is sent this after the tool's error:",
    "PostToolBatch": "the turn ends now, and the user sees:",
    "PreCompact": "the conversation is not compacted, and the user sees:",
}


def _passed(run: HookRun, dialect: Dialect) -> Effect:
    event = run.rule.event
    permission = permission_of(event, (run,))
    text = _permission_text(permission) or _unchanged(event)
    if isinstance(run.decision, Fault) and not is_blocking(run, dialect):
        return Effect(f"{NOT_ENFORCED}: {text}")
    if permission and permission.updated_input is not None:
        given = json.dumps(permission.updated_input, ensure_ascii=False)
        return Effect(f"{text}; the tool gets this input:", given)
    if (output := updated_output((run,))) is not None:
        shown = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
        return Effect("the agent gets this instead of the tool's result:", shown)
    if context := context_of(event, (run,)):
        return Effect(f"{text}; this is added to the conversation:", context)
    if messages := first_messages((run,)):
        return Effect("the session begins with this message:", "\n\n".join(messages))
    return Effect(text)


def _permission_text(permission: Permission | None) -> str:
    match permission.behavior if permission else None:
        case "allow":
            return "the tool call runs without a question"
        case "deny":
            return f"the tool call is denied: {permission.reason if permission else ''}"
        case "ask" | "defer":
            return "the user is asked about the tool call"
        case _:
            return ""


def _unchanged(event: str) -> str:
    return _UNCHANGED.get(event, "nothing changes")


_UNCHANGED = {
    "Stop": "the agent may stop",
    "SubagentStop": "the subagent may stop",
    "TaskCompleted": "the task may be completed",
    "TeammateIdle": "the teammate may become idle",
    "UserPromptSubmit": "the prompt is sent to the model",
    "PreToolUse": "the usual permissions decide about the tool call",
    "PermissionRequest": "the user is asked about the tool call",
    "PreCompact": "the conversation is compacted",
}
