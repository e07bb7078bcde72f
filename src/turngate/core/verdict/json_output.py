"""Verdicts, hook runs and hooks as the JSON that Turngate prints and records."""

from collections.abc import Mapping, Sequence
from typing import Any

from turngate.core.answers.report_types import Exited, printed
from turngate.core.constants import STOP_EVENTS, TEAM_EVENTS
from turngate.core.conversation.messages import Evaluation
from turngate.core.events.events import Event, StopEvent
from turngate.core.hooks.kinds import (
    COMMAND_GATE,
    SETTINGS_KINDS,
    CallbackHook,
    GateHook,
    Hook,
    HttpHook,
    hook_text,
)
from turngate.core.settings import Settings
from turngate.core.text import keep_ends
from turngate.core.verdict.hook_run import HookOutput, HookRun, outcome, run_message
from turngate.core.verdict.verdict import Stop, Verdict, warnings

MAX_STREAM_CHARS = 8_000  # of stdout and of stderr that results and the journal keep
MAX_ANSWER_CHARS = 500  # of the agent's last answer that the journal keeps


def verdict_json(
    verdict: Verdict,
    event: str,
    settings: Settings,
    extra_warnings: Sequence[str] = (),
    *,
    not_loaded: bool = False,
) -> dict[str, Any]:
    """Return the object that `turngate fire --json` prints. `not_loaded`: a part of the settings was not loaded."""
    permission, context = None, ""
    if event not in STOP_EVENTS:
        from turngate.core.verdict.tool_effects import context_of, permission_of  # noqa: PLC0415 # lazy: a stop has neither

        permission, context = permission_of(event, verdict.runs), context_of(event, verdict.runs)
    return {
        "event": event,
        "verdict": "stop" if isinstance(verdict, Stop) else "continue",
        "ended_by": verdict.ended_by if isinstance(verdict, Stop) else None,
        "prompt": None if isinstance(verdict, Stop) else verdict.prompt,
        "stop_reason": verdict.stop_reason if isinstance(verdict, Stop) else None,
        "permission": permission and permission.behavior,
        "context": context,
        "runs": [run_json(run) for run in verdict.runs],
        "unenforced": unenforced_json(verdict.unenforced),
        "not_loaded": not_loaded,
        "warnings": [*extra_warnings, *warnings(verdict.runs, settings.dialect)],
    }


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


def agent_json(event: Event) -> dict[str, str]:
    """Return which subagent, task or teammate stops, for the journal; for the main agent, which the session names, nothing."""
    if not isinstance(event, StopEvent):
        return {}
    team = event.team_fields or {}
    named = {key: team[key] for key in TEAM_EVENTS.values() if key in team}
    agent = event.subagent
    return {"agent_id": agent.id, "agent_type": agent.type, **named} if agent else named


# Fields of hooks, in the order of the output.
_SHOWN = (
    *("gate", *(kind.body for kind in SETTINGS_KINDS.values())),
    *("args", "options", "strict", "model", "transcript", "id"),
)


def hook_json(hook: Hook, timeout: float | None = None) -> dict[str, Any]:
    """Return a hook as in settings; the function of a callback is never serialized."""
    shown = {name: getattr(hook, name, None) for name in _SHOWN}
    if isinstance(hook, HttpHook):
        shown["url"] = hook_text(hook)
    elif isinstance(hook, GateHook) and hook.gate == COMMAND_GATE:
        del shown["gate"]
    entry: dict[str, Any] = {"type": hook.kind}
    if isinstance(hook, CallbackHook):
        entry["name"] = hook_text(hook)
    for name, value in shown.items():
        if value or (value is not None and name in ("args", hook.body)):
            entry[name] = list(value) if isinstance(value, tuple) else value
    if hook.timeout is not None or timeout is not None:
        entry["timeout"] = hook.timeout if timeout is None else timeout
    return entry


def recorded_gate(entry: Mapping[str, Any]) -> str:
    """Return the text of a gate hook of which `hook_json` has made this entry."""
    args = entry.get("args")
    gate, command, options = entry.get("gate", COMMAND_GATE), entry.get("command"), entry.get("options", {})
    return hook_text(GateHook(gate, command, None if args is None else tuple(args), options))
