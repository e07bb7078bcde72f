"""Explains one hook run: what was read of it, what was ignored, and what an agent would do if there were no other hook."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any, assert_never

from turngate._frozen_dataclass import frozen
from turngate.cli.console.conversation_text import NOT_ENFORCED
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
from turngate.core.text import BLANKS, one_line, truncate
from turngate.core.verdict.decisions import Advise, Allow, Block, Fault, Halt
from turngate.core.verdict.hook_run import HookRun, outcome
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
