"""Verdicts, hook runs and hooks as the JSON that Turngate prints and records."""

from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from turngate.core.answers.reports import Exited, printed
from turngate.core.conversation.messages import Evaluation
from turngate.core.hooks.kinds import (
    COMMAND_GATE,
    AgentHook,
    CallbackHook,
    CommandHook,
    GateHook,
    Hook,
    HttpHook,
    PromptHook,
    hook_text,
)
from turngate.core.settings import Settings
from turngate.core.text import keep_ends
from turngate.core.verdict.hook_run import HookOutput, HookRun, outcome, run_message
from turngate.core.verdict.tool_effects import context_of, permission_of
from turngate.core.verdict.verdict import Stop, Verdict, warnings

MAX_STREAM_CHARS = 8_000  # of stdout and of stderr that results and the journal keep


def verdict_json(
    verdict: Verdict,
    event: str,
    settings: Settings,
    extra_warnings: Sequence[str] = (),
    *,
    not_loaded: bool = False,
) -> dict[str, Any]:
    """Return the object that `turngate fire --json` prints. `not_loaded`: a part of the settings was not loaded."""
    stops = isinstance(verdict, Stop)
    permission = permission_of(event, verdict.runs)
    return {
        "event": event,
        "verdict": "stop" if stops else "continue",
        "ended_by": _ended_by(verdict),
        "prompt": None if isinstance(verdict, Stop) else verdict.prompt,
        "stop_reason": verdict.stop_reason if isinstance(verdict, Stop) else None,
        "permission": permission and permission.behavior,
        "context": context_of(event, verdict.runs),
        "runs": [run_json(run) for run in verdict.runs],
        "unenforced": unenforced_json(verdict.unenforced),
        "not_loaded": not_loaded,
        "warnings": [*extra_warnings, *warnings(verdict.runs, settings.dialect)],
    }


def _ended_by(verdict: Verdict) -> str | None:
    match verdict:
        case Stop(waits=True):
            return "checkpoint"
        case Stop(halted=True):
            return "halted"
        case Stop():
            return "allowed"
        case _:
            return None


def unenforced_json(hooks: Sequence[HookOutput]) -> list[dict[str, Any]]:
    return [{"hook": hook.hook, "outcome": hook.outcome, "why": hook.said} for hook in hooks]


def run_json(run: HookRun) -> dict[str, Any]:
    stdout, stderr = printed(run.report)
    half = MAX_STREAM_CHARS // 2
    return {
        "hook": hook_json(run.rule.hook, run.timeout),
        "source": run.rule.source,
        "file": run.rule.file,
        "outcome": outcome(run),
        "reason": run_message(run),
        "exit_code": run.report.code if isinstance(run.report, Exited) else None,
        "seconds": round(run.seconds, 4),
        "stdout": keep_ends(stdout, half, half),
        "stderr": keep_ends(stderr, half, half),
        "notice": run.decision.notice,
        **({"permission": run.answer.permission} if run.answer and run.answer.permission else {}),
        **({"evaluation": evaluation_json(run.evaluation)} if run.evaluation else {}),
    }


def evaluation_json(spent: Evaluation) -> dict[str, Any]:
    used = {name: count for name, count in vars(spent.usage).items() if count or "cache" not in name}
    return {"model": spent.model, "requests": spent.requests, **used, "cost_usd": spent.cost}


def hook_json(hook: Hook, timeout: float | None = None) -> dict[str, Any]:
    """Return a hook as in settings; the function of a callback is never serialised."""
    entry: dict[str, Any] = {"type": hook.kind}
    match hook:
        case CommandHook(command, args):
            entry |= {"command": command} if args is None else {"command": command, "args": list(args)}
        case PromptHook(prompt) | AgentHook(prompt):
            entry["prompt"] = prompt
        case HttpHook():
            entry["url"] = hook_text(hook)
        case GateHook():
            entry |= _gate_json(hook)
        case CallbackHook():
            entry["name"] = hook_text(hook)
        case _:
            assert_never(hook)
    entry |= {name: value for name in ("model", "transcript", "id") if (value := getattr(hook, name, None))}
    if hook.timeout is not None or timeout is not None:
        entry["timeout"] = hook.timeout if timeout is None else timeout
    return entry


def recorded_gate(entry: Mapping[str, Any]) -> str:
    """Return the text of a gate hook of which `hook_json` has made this entry."""
    args = entry.get("args")
    gate, command, options = entry.get("gate", COMMAND_GATE), entry.get("command"), entry.get("options", {})
    return hook_text(GateHook(gate, command, None if args is None else tuple(args), options))


def _gate_json(hook: GateHook) -> dict[str, Any]:
    """Return what the gate checks, as in settings."""
    entry: dict[str, Any] = {} if hook.gate == COMMAND_GATE else {"gate": hook.gate}
    entry |= {} if hook.command is None else {"command": hook.command}
    entry |= {} if hook.args is None else {"args": list(hook.args)}
    entry |= {"options": dict(hook.options)} if hook.options else {}
    return {**entry, "strict": True} if hook.strict else entry
