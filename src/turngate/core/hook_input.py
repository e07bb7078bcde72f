"""What crosses the border as JSON: what a hook is told on stdin and in its environment, and what we report of a verdict."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, assert_never

from turngate.core.constants import IN_HOOK
from turngate.core.dialect import Dialect
from turngate.core.event_fields import checked
from turngate.core.events import OTHER_EVENTS, Event, OtherEvent, StopEvent, Subagent
from turngate.core.hooks import (
    AgentHook,
    CallbackHook,
    CommandHook,
    Hook,
    HttpHook,
    PromptHook,
    hook_text,
    kind,
    label,
)
from turngate.core.messages import Evaluation
from turngate.core.reports import Exited, Judged, Replied, Report, TimedOut
from turngate.core.settings import Payload, Settings
from turngate.core.verdict import HookRun, Stop, Verdict, outcome, said, unenforced, warnings

# The order in which Claude Code 2.1.325 writes its keys; others follow.
_CLAUDE_ORDER = (
    "session_id",
    "transcript_path",
    "cwd",
    "prompt_id",
    "permission_mode",
    "agent_id",
    "agent_type",
    "effort",
    "hook_event_name",
    "stop_hook_active",
    "agent_transcript_path",
    "last_assistant_message",
    "background_tasks",
    "session_crons",
)

_CLAUDE_HEAD = _CLAUDE_ORDER[: _CLAUDE_ORDER.index("hook_event_name") + 1]  # the same on every event

_SIX = ("session_id", "transcript_path", "cwd", "permission_mode", "hook_event_name", "stop_hook_active")


def encode(event: Event, dialect: Dialect, payload: Payload = "full") -> bytes:
    """One compact JSON line. Scripts grep it: no blank after `:` and `,`, no boolean after `stop_hook_active`."""
    told = hook_payload(event, dialect)
    if payload == "strict" and isinstance(event, StopEvent):
        told = {key: told[key] for key in _SIX if key in told}
    return (json.dumps(told, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")


def hook_payload(event: Event, dialect: Dialect) -> dict[str, Any]:
    if not isinstance(event, StopEvent):
        return _told_of_other(event, dialect)
    told = {
        "session_id": event.session_id,
        "transcript_path": event.transcript_path,
        "cwd": event.cwd,
        "permission_mode": event.permission_mode,
        "hook_event_name": event.name,
        "stop_hook_active": event.stop_hook_active,
        "last_assistant_message": last_message(event, dialect),
        "continuation_count": event.continuation_count,
        "max_continuations": event.limit,
        **_told_of_child(event, dialect),
        "prompt_id": event.prompt_id,
        "effort": {"level": event.effort} if event.effort else None,
        "usage": event.usage,
        "duration_ms": event.duration_ms,
        "tool_calls": event.tool_calls,
        "background_tasks": list(event.background_tasks) or None,
        "session_crons": list(event.session_crons) or None,
    }
    if dialect.child_identity != "claude":
        return {key: value for key, value in told.items() if value is not None}
    told["background_tasks"] = list(event.background_tasks)
    told["session_crons"] = list(event.session_crons)
    order = (*_CLAUDE_ORDER, *(key for key in told if key not in _CLAUDE_ORDER))
    return {key: told[key] for key in order if told.get(key) is not None}


def _told_of_child(event: StopEvent, dialect: Dialect) -> dict[str, Any]:
    child = event.subagent
    if child is None:
        return {}
    told: dict[str, Any] = {
        "agent_id": child.id,
        "agent_type": child.type,
        "agent_transcript_path": child.transcript_path,
        "parent_session_id": event.session_id if event.session_id != child.id else None,
        "parent_transcript_path": event.transcript_path if event.session_id != child.id else None,
        "outcome": child.outcome,
    }
    match dialect.child_identity:
        case "claude":
            return told
        case "parent":
            return {"transcript_path": child.transcript_path, **told}
        case "task":
            return {"session_id": child.id, "transcript_path": child.transcript_path, **told}
        case _:
            assert_never(dialect.child_identity)


def last_message(event: StopEvent, dialect: Dialect) -> str | None:
    blocks = event.last_assistant_message
    if blocks is None:
        return None
    if isinstance(blocks, str):
        blocks = (blocks,)
    if not dialect.last_text_block_only:
        return "\n".join(blocks)
    return (blocks[-1].strip() if blocks else "") or None


def _told_of_other(event: OtherEvent, dialect: Dialect) -> dict[str, Any]:
    own = {f.name: getattr(event, f.name) for f in fields(event)}
    common = {key: own.pop(key) for key in ("session_id", "transcript_path", "cwd", "permission_mode")}
    child = {key: value for key in ("agent_id", "agent_type") if (value := own.pop(key))}
    told = {**common, "hook_event_name": event.name, **child, **own}
    if dialect.child_identity != "claude":
        return told
    return {key: told[key] for key in (*_CLAUDE_HEAD, *told) if key in told}


def environment(event: Event, project: str) -> dict[str, str]:
    """What a hook finds in its environment, beside what it inherits."""
    told = {
        "PROJECT_DIR": project,
        "STOP_HOOK_ACTIVE": "true" if event.stop_hook_active else "false",
        "STOP_HOOK_COUNT": str(event.continuation_count),
        "TRANSCRIPT_PATH": event.stopping_transcript,
    }
    return {
        **{f"TURNGATE_{key}": value for key, value in told.items()},
        **{f"MUX_{key}": value for key, value in told.items()},
        "CLAUDE_PROJECT_DIR": project,
        "TURNGATE_EVENT": event.name,
        "TURNGATE_SESSION_ID": event.session_id,
        IN_HOOK: "1",
    }


# Reading an event, as `turngate fire` gets it


def read_event(name: str, told: dict[str, Any], *, cwd: str) -> Event:
    """The event that some JSON describes; what it leaves out gets a sensible default.

    Raises ValueError with a sentence that names the field.
    """
    checked(name, told)
    given = {key: value for key, value in told.items() if value is not None}
    if name == "SubagentStop":  # the event's own session and transcript are the parent's
        names = {"session_id": "parent_session_id", "transcript_path": "parent_transcript_path"}
        parents = {key: given[told_as] for key, told_as in names.items() if told_as in given}
    else:
        parents = {}
    common = {
        "session_id": given.get("session_id", "fire"),
        "transcript_path": given.get("transcript_path", ""),
        "cwd": given.get("cwd", cwd),
        "permission_mode": given.get("permission_mode", "default"),
        **parents,
    }
    if name in OTHER_EVENTS:
        kind = OTHER_EVENTS[name]
        own = {f.name for f in fields(kind)} - common.keys()
        return kind(**common, **{key: value for key, value in given.items() if key in own})
    return StopEvent(
        **common,
        stop_hook_active=given.get("stop_hook_active", False),
        last_assistant_message=given.get("last_assistant_message"),
        continuation_count=given.get("continuation_count", 0),
        limit=given.get("max_continuations"),
        prompt_id=given.get("prompt_id"),
        effort=given["effort"].get("level") if "effort" in given else None,
        usage=given.get("usage"),
        duration_ms=given.get("duration_ms"),
        tool_calls=given.get("tool_calls"),
        background_tasks=tuple(given.get("background_tasks", ())),
        session_crons=tuple(given.get("session_crons", ())),
        subagent=_read_child(given) if name == "SubagentStop" else None,
    )


def _read_child(given: Mapping[str, Any]) -> Subagent:
    own = given.get("agent_transcript_path", given.get("transcript_path", ""))
    return Subagent(
        id=given.get("agent_id", "fire-agent"),
        type=given.get("agent_type", ""),
        transcript_path=own,
        outcome=given.get("outcome", "ok"),
    )


# Reporting


def verdict_json(
    verdict: Verdict, event: str, settings: Settings, extra_warnings: Sequence[str] = ()
) -> dict[str, Any]:
    """The object that `turngate fire --json` prints."""
    stops = isinstance(verdict, Stop)
    return {
        "event": event,
        "verdict": "stop" if stops else "continue",
        "ended_by": ("halted" if verdict.halted else "allowed") if isinstance(verdict, Stop) else None,
        "prompt": None if isinstance(verdict, Stop) else verdict.prompt,
        "stop_reason": verdict.stop_reason if isinstance(verdict, Stop) else None,
        "runs": [run_json(run) for run in verdict.runs],
        "unenforced": unenforced_json(verdict.runs, settings.dialect),
        "warnings": [*extra_warnings, *warnings(verdict.runs, settings.dialect)],
    }


def unenforced_json(runs: Sequence[HookRun], dialect: Dialect) -> list[dict[str, Any]]:
    loose = unenforced(runs, dialect)
    return [{"hook": label(run.rule.hook), "outcome": outcome(run), "why": said(run)} for run in loose]


def run_json(run: HookRun) -> dict[str, Any]:
    stdout, stderr = _printed(run.report)
    return {
        "hook": hook_json(run.rule.hook, run.timeout),
        "source": run.rule.source,
        "file": run.rule.file,
        "outcome": outcome(run),
        "reason": said(run),
        "exit_code": run.report.code if isinstance(run.report, Exited) else None,
        "seconds": round(run.seconds, 4),
        "stdout": _head_and_tail(stdout),
        "stderr": _head_and_tail(stderr),
        "notice": run.decision.notice,
        **({"evaluation": evaluation_json(run.evaluation)} if run.evaluation else {}),
    }


def evaluation_json(spent: Evaluation) -> dict[str, Any]:
    used = {name: count for name, count in vars(spent.usage).items() if count or "cache" not in name}
    return {"model": spent.model, "requests": spent.requests, **used, "cost_usd": spent.cost}


def _printed(report: Report) -> tuple[str, str]:
    match report:
        case Exited() | TimedOut():
            return report.stdout, report.stderr
        case Replied(text) | Judged(text):
            return text, ""
        case _:
            return "", ""


def hook_json(hook: Hook, timeout: float | None = None) -> dict[str, Any]:
    """A hook as settings would write it; a callback's function is never serialised."""
    shown: dict[str, Any] = {"type": kind(hook)}
    match hook:
        case CommandHook(command, args):
            shown |= {"command": command} if args is None else {"command": command, "args": list(args)}
        case PromptHook(prompt) | AgentHook(prompt):
            shown["prompt"] = prompt
        case HttpHook():
            shown["url"] = hook_text(hook)
        case CallbackHook():
            shown["name"] = hook_text(hook)
        case _:
            assert_never(hook)
    shown |= {name: value for name in ("model", "transcript", "id") if (value := getattr(hook, name, None))}
    if hook.timeout is not None or timeout is not None:
        shown["timeout"] = hook.timeout if timeout is None else timeout
    return shown


SHOWN = 8_000  # characters of each stream that results and the journal keep


def _head_and_tail(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    half = SHOWN // 2
    return f"{text[:half]}\n… [{len(text) - SHOWN:,} characters left out] …\n{text[-half:]}"
