"""What an agent would do after one hook run, if there were no other hook."""

import json
from typing import assert_never

from turngate.core.decisions import Fault
from turngate.core.dialect import Dialect
from turngate.core.effects import (
    Permission,
    context_of,
    first_messages,
    permission_of,
    updated_output,
    wake_message,
)
from turngate.core.frozen import frozen
from turngate.core.hook_run import HookRun, outcome
from turngate.core.reports import Skipped
from turngate.core.verdict import Continue, Stop, Verdict, conclude, is_blocking

NOT_ENFORCED = "NOT enforced"


@frozen
class Effect:
    """A sentence, and the text that it announces."""

    text: str
    detail: str = ""


def effect_of(run: HookRun, dialect: Dialect) -> Effect:
    """Return what would have happened. `run.rule` is the hook as configured, also one that runs in the background."""
    event = run.rule.event
    if isinstance(run.report, Skipped) and run.report.on_purpose:
        return Effect(f"the hook has no part in this {event}")
    if run.rule.hook.detached:
        return (
            Effect("nothing runs in the background")
            if isinstance(run.report, Skipped)
            else _in_background(run)
        )
    if outcome(run) == "would_block":
        return Effect(
            f"recorded as a block and not enforced, because its mode is `observe`: {_unchanged(event)}"
        )
    verdict = conclude((run,), dialect)
    match verdict:
        case Continue():
            return Effect(_blocked(event, verdict, run), verdict.prompt)
        case Stop(halted=True):
            ends = "the turn ends now to wait for the user" if verdict.waits else "the turn ends now"
            reason = verdict.stop_reason or ""
            return Effect(f"{ends}, and the user sees:" if reason else ends, reason)
        case Stop():
            return _passed(run, dialect)
        case _:
            assert_never(verdict)


def _in_background(run: HookRun) -> Effect:
    if message := wake_message(run):
        return Effect("it runs in the background, and its block wakes the agent with:", message)
    return Effect("it runs in the background, so its decision is ignored")


def _blocked(event: str, verdict: Verdict, run: HookRun) -> str:
    if isinstance(verdict, Continue) and verdict.advice_only:
        return "the agent continues once, with this advice:"
    because = "although it gave no decision, its failure blocks: " if isinstance(run.decision, Fault) else ""
    return because + _BLOCKED[event]


_BLOCKED = {
    "Stop": "the agent is sent back with this text:",
    "SubagentStop": "the subagent is sent back with this text:",
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
    if isinstance(run.decision, Fault) and not is_blocking(run, dialect):
        asks = _permission_text(permission_of(event, (run,)))
        return Effect(f"{NOT_ENFORCED}: {asks or _unchanged(event)}")
    permission = permission_of(event, (run,))
    texts = [_permission_text(permission) or _unchanged(event)]
    if permission and permission.updated_input is not None:
        return Effect(
            f"{texts[0]}; the tool gets this input:", json.dumps(permission.updated_input, ensure_ascii=False)
        )
    if (output := updated_output((run,))) is not None:
        return Effect(
            "the agent gets this instead of the tool's result:",
            output if isinstance(output, str) else json.dumps(output, ensure_ascii=False),
        )
    if context := context_of(event, (run,)):
        return Effect(f"{texts[0]}; this is added to the conversation:", context)
    if messages := first_messages((run,)):
        return Effect("the session begins with this message:", "\n\n".join(messages))
    return Effect(texts[0])


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
    "UserPromptSubmit": "the prompt is sent to the model",
    "PreToolUse": "the usual permissions decide about the tool call",
    "PermissionRequest": "the user is asked about the tool call",
    "PreCompact": "the conversation is compacted",
}
