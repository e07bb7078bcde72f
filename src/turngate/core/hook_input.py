"""What a hook receives: the event as JSON on stdin and as environment variables; and JSON back to an event."""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, assert_never

from turngate.core.constants import IN_HOOK
from turngate.core.dialect import Dialect
from turngate.core.event_fields import check_fields
from turngate.core.events import OTHER_EVENTS, Event, OtherEvent, StopEvent, Subagent
from turngate.core.settings import Payload

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
    if dialect.subagent_identity != "claude":
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
    match dialect.subagent_identity:
        case "claude":
            return told
        case "parent":
            return {"transcript_path": child.transcript_path, **told}
        case "task":
            return {"session_id": child.id, "transcript_path": child.transcript_path, **told}
        case _:
            assert_never(dialect.subagent_identity)


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
    if dialect.subagent_identity != "claude":
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
    check_fields(name, told)
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
