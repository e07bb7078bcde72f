"""The input of a hook of any host → the names and types that Turngate uses. Imports nothing heavy: every stop needs it."""

import os
from collections.abc import Mapping

# The name of an event in a host: ours.
EVENT_NAMES = {
    "Stop": "Stop",
    "agentStop": "Stop",
    "AfterAgent": "Stop",
    "stop": "Stop",
    "SubagentStop": "SubagentStop",
    "subagentStop": "SubagentStop",
    "SessionStart": "SessionStart",
    "sessionStart": "SessionStart",
    "SubagentStart": "SubagentStart",
    "subagentStart": "SubagentStart",
}

# Our field: its names in the hosts, and its type.
_TEXTS = {
    "hook_event_name": ("hook_event_name", "hookEventName", "event"),
    "session_id": ("session_id", "sessionId", "conversation_id"),
    "transcript_path": ("transcript_path", "transcriptPath"),
    "cwd": ("cwd", "working_dir"),
    "permission_mode": ("permission_mode", "permissionMode"),
    "prompt_id": ("prompt_id", "turn_id", "generation_id"),
    "last_assistant_message": ("last_assistant_message", "prompt_response", "response"),
    "agent_id": ("agent_id", "agentId"),
    "agent_type": ("agent_type", "subagent_type", "agentType", "agent_name", "agentName"),
    "agent_transcript_path": ("agent_transcript_path", "agentTranscriptPath"),
}


# Fields that only this host has; all of a group are there. The first host that fits.
_MARKS = {
    "cursor": (("conversation_id",), ("generation_id",), ("cursor_version",)),
    "droid": (("sessionId", "hookEventName"), ("stopHookActive",)),
    "codex": (("turn_id", "model"),),
    "gemini": (("prompt_response",),),
    "qwen": (("crons",), ("context_usage",), ("timestamp", "permission_mode")),
    "copilot": (
        ("stop_reason", "timestamp"),
        ("parent_agent_id",),
        ("agent_name", "timestamp"),
        ("sessionId", "timestamp"),
    ),
    "claude": (("prompt_id",), ("effort",), ("session_crons",)),
}

# Variables that a host sets for its hooks. Qwen Code sets those of Gemini CLI too, and both that of Claude Code.
_VARIABLES = {
    "CURSOR_VERSION": "cursor",
    "FACTORY_PROJECT_DIR": "droid",
    "QWEN_PROJECT_DIR": "qwen",
    "GEMINI_PROJECT_DIR": "gemini",
    "CLAUDE_PROJECT_DIR": "claude",
}

# Lists of objects, at a stop.
_LISTS = {
    "background_tasks": ("background_tasks", "backgroundTasks"),
    "session_crons": ("session_crons", "crons"),
}


def normalise(fields: dict[str, object]) -> dict[str, object]:
    """Return the fields that Turngate knows, under its names; one that is missing or has a wrong type is left out."""
    known: dict[str, object] = {
        name: value for name, names in _TEXTS.items() if (value := _first(fields, names, str))
    }
    known.update(
        (name, [each for each in value if isinstance(each, dict)])
        for name, names in _LISTS.items()
        if isinstance(value := _first(fields, names, list), list)
    )
    if isinstance(effort := fields.get("effort"), dict) and isinstance(effort.get("level"), str):
        known["effort"] = effort
    event = EVENT_NAMES.get(str(known.get("hook_event_name", _unnamed_event(fields))), "")
    if event == "Stop" and known.get("agent_id"):  # Copilot: the stop of a subagent, which has its own event
        event = ""
    return {**known, "hook_event_name": event, "stop_hook_active": _is_active(fields)}


def _first(fields: dict[str, object], names: tuple[str, ...], kind: type) -> object:
    """Return the first value of this type that is not empty under one of the names."""
    return next((fields[name] for name in names if isinstance(fields.get(name), kind) and fields[name]), None)


def _unnamed_event(fields: dict[str, object]) -> str:
    """Copilot, for hooks with names in camel case, does not name the event."""
    if "stopReason" not in fields:
        return ""
    return "subagentStop" if "agentName" in fields or "agentId" in fields else "agentStop"


def _is_active(fields: dict[str, object]) -> bool:
    """Cursor counts instead: `loop_count` is 0 at the first stop."""
    loops = fields.get("loop_count")
    return (
        fields.get("stop_hook_active") is True
        or fields.get("stopHookActive") is True
        or (isinstance(loops, int) and loops > 0)
    )


def recognise(fields: dict[str, object], environ: Mapping[str, str] | None = None) -> str | None:
    """Return the name of the host that gives its hooks this input, or None for one that is not known."""
    return _by_input(fields) or _by_environment(os.environ if environ is None else environ)


def _by_input(fields: dict[str, object]) -> str | None:
    for host, marks in _MARKS.items():
        if any(all(name in fields for name in each) for each in marks):
            return host
    return "gemini" if fields.get("hook_event_name") == "AfterAgent" else None


def _by_environment(environ: Mapping[str, str]) -> str | None:
    return next((host for variable, host in _VARIABLES.items() if environ.get(variable)), None)
