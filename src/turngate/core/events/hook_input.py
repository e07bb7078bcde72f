"""The input of a hook: an event as JSON and as environment variables; and the event that JSON describes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, assert_never

from turngate.core.constants import IN_HOOK, TEAM_EVENTS, TEAM_FIELDS
from turngate.core.dialect import Dialect
from turngate.core.events.events import OTHER_EVENTS, Event, OtherEvent, StopEvent, Subagent, team_event
from turngate.core.settings import Payload, Settings

# The order of keys in Claude Code 2.1.325; others follow.
_CLAUDE_ORDER = tuple(
    "session_id transcript_path cwd prompt_id permission_mode agent_id agent_type effort "
    "hook_event_name stop_hook_active agent_transcript_path last_assistant_message background_tasks "
    "session_crons".split()
)


_CLAUDE_HEAD = _CLAUDE_ORDER[: _CLAUDE_ORDER.index("hook_event_name") + 1]  # of every event

# Fields that Claude Code 2.1.325 leaves out of an event (measured).
_CLAUDE_ABSENT: Mapping[str, frozenset[str]] = {
    "SessionStart": frozenset({"prompt_id", "permission_mode", "effort", "model"}),
    "UserPromptSubmit": frozenset({"effort"}),
    "SubagentStart": frozenset({"permission_mode", "effort"}),
    "StopFailure": frozenset({"permission_mode"}),
    "PreCompact": frozenset({"permission_mode", "effort"}),
    "SessionEnd": frozenset({"permission_mode", "effort"}),
}


# Fields in which Turngate does not repeat what another agent program says.
_COUNTED_HERE = ("hook_event_name", "stop_hook_active", "continuation_count", "max_continuations")
_DECIDED_HERE = {*_COUNTED_HERE, "agent_transcript_path"}  # that of Qwen Code may be the main agent's
_COMMON_FIELDS = ("session_id", "transcript_path", "cwd", "permission_mode")
_STRICT_FIELDS = (*_COMMON_FIELDS, "hook_event_name", "stop_hook_active")


def encode(event: Event, dialect: Dialect, form: Payload = "full") -> bytes:
    """Return one compact JSON line. Scripts grep it: no blank after `:` and `,`, no boolean after `stop_hook_active`."""
    payload = hook_payload(event, dialect)
    if form == "strict" and isinstance(event, StopEvent):
        payload = {key: payload[key] for key in _STRICT_FIELDS if key in payload}
    return (json.dumps(payload, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")


def hook_payload(event: Event, dialect: Dialect) -> dict[str, Any]:
    if not isinstance(event, StopEvent):
        return _other_payload(event, dialect)
    payload = {
        **{key: getattr(event, key) for key in _COMMON_FIELDS},
        "hook_event_name": event.name,
        "stop_hook_active": event.stop_hook_active,
        "last_assistant_message": last_message(event, dialect),
        "continuation_count": event.continuation_count,
        "max_continuations": event.limit,
        **_subagent_fields(event, dialect),
        **(event.team_fields or {}),
        "prompt_id": event.prompt_id or None,
        "effort": {"level": event.effort} if event.effort else None,
        "usage": event.usage,
        "duration_ms": event.duration_ms,
        "tool_calls": event.tool_calls,
        "background_tasks": list(event.background_tasks) or None,
        "session_crons": list(event.session_crons) or None,
    }
    if dialect.subagent_identity != "claude":
        return {key: value for key, value in payload.items() if value is not None}
    payload["background_tasks"] = list(event.background_tasks)
    payload["session_crons"] = list(event.session_crons)
    order = (*_CLAUDE_ORDER, *(key for key in payload if key not in _CLAUDE_ORDER))
    ordered = {key: payload[key] for key in order if payload.get(key) is not None}
    further = {key: value for key, value in (event.host_fields or {}).items() if key not in _DECIDED_HERE}
    return {**ordered, **further}


def _subagent_fields(event: StopEvent, dialect: Dialect) -> dict[str, Any]:
    subagent = event.subagent
    if subagent is None:
        return {}
    payload: dict[str, Any] = {
        "agent_id": subagent.id,
        "agent_type": subagent.type,
        "agent_transcript_path": subagent.transcript_path,
        "parent_session_id": event.session_id if event.session_id != subagent.id else None,
        "parent_transcript_path": event.transcript_path if event.session_id != subagent.id else None,
        "outcome": subagent.outcome,
    }
    match dialect.subagent_identity:
        case "claude":
            return payload
        case "parent":
            return {"transcript_path": subagent.transcript_path, **payload}
        case "task":
            return {"session_id": subagent.id, "transcript_path": subagent.transcript_path, **payload}
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


def _other_payload(event: OtherEvent, dialect: Dialect) -> dict[str, Any]:
    own = {f.name: getattr(event, f.name) for f in fields(event)}
    common = {key: own.pop(key) for key in _COMMON_FIELDS}
    known = {key: value for key in ("agent_id", "agent_type", "prompt_id") if (value := own.pop(key))}
    if effort := own.pop("effort"):
        known["effort"] = {"level": effort}
    if own.get("duration_ms", 0) is None:
        del own["duration_ms"]
    payload = {**common, "hook_event_name": event.name, **known, **own}
    if dialect.subagent_identity != "claude":
        return payload
    absent = _CLAUDE_ABSENT.get(event.name, frozenset())
    return {key: payload[key] for key in (*_CLAUDE_HEAD, *payload) if key in payload and key not in absent}


def effort_level(settings: Settings, environ: Mapping[str, str]) -> str:
    """Return the effort of the model as hooks are given it; empty if the dialect has none and the user set none."""
    variables = {**environ, **settings.env}
    return variables.get("CLAUDE_CODE_EFFORT_LEVEL") or settings.dialect.default_effort


def environment(event: Event, project: str, dialect: Dialect, *, pid: int) -> dict[str, str]:
    """Return the environment variables that a hook gets besides those it inherits; `pid` is the session's process."""
    values = {
        "PROJECT_DIR": project,
        "STOP_HOOK_ACTIVE": "true" if event.stop_hook_active else "false",
        "STOP_HOOK_COUNT": str(event.continuation_count),
        "TRANSCRIPT_PATH": event.stopping_transcript,
    }
    # Only in its own dialect: with CLAUDECODE set, a hook cannot start `claude`.
    of_claude = {"CLAUDECODE": "1", "CLAUDE_CODE_ENTRYPOINT": "sdk-cli", "CLAUDE_PID": str(pid)}
    of_claude |= {"CLAUDE_EFFORT": event.effort} if event.effort else {}
    return {
        **{f"TURNGATE_{key}": value for key, value in values.items()},
        **{f"MUX_{key}": value for key, value in values.items()},
        "CLAUDE_PROJECT_DIR": project,
        "CLAUDE_CODE_SESSION_ID": event.session_id,
        **(of_claude if dialect.is_claude_code else {}),
        "TURNGATE_EVENT": event.name,
        "TURNGATE_SESSION_ID": event.session_id,
        IN_HOOK: "1",
    }


# What programs need to run at all.
_USUAL_VARIABLES = frozenset("PATH HOME LANG TERM TMPDIR USER LOGNAME SHELL CLAUDE_ENV_FILE".split())
_USUAL_PREFIXES = ("LC_", "TURNGATE_")


def clean_environment(environ: Mapping[str, str], passed: Sequence[str]) -> dict[str, str]:
    names = _USUAL_VARIABLES.union(passed)
    kept = (name for name in environ if name in names or name.startswith(_USUAL_PREFIXES))
    return {name: environ[name] for name in kept}


# The event that `turngate fire` reads

UNNAMED_SESSION = "fire"  # the id of the session if the input has none


def read_event(name: str, payload: dict[str, Any], *, cwd: str) -> Event:
    """Return the event that a JSON object describes; missing fields get a default. Raises ValueError, which names the field."""
    if name not in OTHER_EVENTS:
        return read_stop(name, payload, cwd=cwd)
    kind, values = OTHER_EVENTS[name], _read_values(name, payload)
    common = _read_common(name, values, cwd)
    own = {f.name for f in fields(kind)} - common.keys()
    if "effort" in values:
        values["effort"] = values["effort"].get("level", "")
    return kind(**common, **{key: value for key, value in values.items() if key in own})


def read_stop(name: str, payload: dict[str, Any], *, cwd: str) -> StopEvent:
    """Return the stop that a JSON object describes, as `read_event`."""
    values = _read_values(name, payload)
    common = _read_common(name, values, cwd)
    is_of_teammate = name in TEAM_EVENTS and "agent_id" in values
    team = {key: values[key] for key in TEAM_FIELDS if key in values}
    return StopEvent(
        **common,
        **{key: values[key] for key in _READ_AS_THEY_ARE if key in values},
        limit=values.get("max_continuations"),
        effort=values.get("effort", {}).get("level"),
        background_tasks=tuple(values.get("background_tasks", ())),
        session_crons=tuple(values.get("session_crons", ())),
        subagent=_read_subagent(values) if name == "SubagentStop" or is_of_teammate else None,
        team_event=team_event(name),
        team_fields=team if name in TEAM_EVENTS else None,
    )


_READ_AS_THEY_ARE = (
    *("stop_hook_active", "last_assistant_message", "continuation_count"),
    *("prompt_id", "usage", "duration_ms", "tool_calls"),
)


def _read_values(name: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    check_fields(name, payload)
    return {key: value for key, value in payload.items() if value is not None}


def _read_common(name: str, values: Mapping[str, Any], cwd: str) -> dict[str, Any]:
    common = {
        "session_id": values.get("session_id", UNNAMED_SESSION),
        "transcript_path": values.get("transcript_path", ""),
        "cwd": values.get("cwd", cwd),
        "permission_mode": values.get("permission_mode", "default"),
    }
    if name == "SubagentStop":  # the session and the transcript of the event are the parent's
        for key in ("session_id", "transcript_path"):
            common[key] = values.get(f"parent_{key}", common[key])
    return common


def _read_subagent(values: Mapping[str, Any]) -> Subagent:
    own = values.get("agent_transcript_path", values.get("transcript_path", ""))
    agent_id, agent_type = values.get("agent_id", "fire-agent"), values.get("agent_type", "")
    return Subagent(id=agent_id, type=agent_type, transcript_path=own, outcome=values.get("outcome", "ok"))


_STRING = (str, "a string")
# Field: (type, the type as it appears in a message).
FIELDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys("session_id transcript_path cwd permission_mode hook_event_name".split(), _STRING),
    "stop_hook_active": (bool, "true or false"),
    "last_assistant_message": _STRING,
    **dict.fromkeys(("continuation_count", "max_continuations"), (int, "a whole number")),
    **dict.fromkeys(("agent_id", "agent_type", "agent_transcript_path"), _STRING),
    **dict.fromkeys(("parent_session_id", "parent_transcript_path", *TEAM_FIELDS), _STRING),
    "outcome": (str, '"ok", "error" or "timeout"'),
    "prompt_id": _STRING,
    **dict.fromkeys(("effort", "usage"), (dict, "an object")),
    "duration_ms": ((int, float), "a number"),
    "tool_calls": ((int, list), "a whole number, or at PostToolBatch a list"),
    **dict.fromkeys(("background_tasks", "session_crons"), (list, "a list")),
    "tool_name": _STRING,
    "tool_input": (dict, "an object"),
    "tool_use_id": _STRING,
    "is_interrupt": (bool, "true or false"),
    **dict.fromkeys("prompt source model trigger custom_instructions reason error".split(), _STRING),
}


def check_fields(event: str, fields: object) -> None:
    """Raise ValueError with a message that names the field, unless these can be the fields of the event."""
    if not isinstance(fields, dict):
        raise ValueError(f"an event is a JSON object, not {type(fields).__name__}")
    for name, value in fields.items():
        if name not in FIELDS or value is None:
            continue
        expected, words = FIELDS[name]
        if not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool):
            raise ValueError(f"`{name}` must be {words}, not {str(value)[:60]!r}")
    if fields.get("outcome") not in (None, "ok", "error", "timeout"):
        raise ValueError(f"`outcome` must be {FIELDS['outcome'][1]}, not {fields['outcome']!r}")
    if fields.get("hook_event_name") not in (None, event):
        raise ValueError(f"`hook_event_name` must be {event!r}, not {fields['hook_event_name']!r}")
