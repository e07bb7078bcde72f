"""The input of a hook of any host → the names and types that Turngate uses. Imports nothing: every stop needs it."""

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


def normalise(fields: dict[str, object]) -> dict[str, object]:
    """Return the fields that Turngate knows, under its names; one that is missing or has a wrong type is left out."""
    known = {
        name: value
        for name, names in _TEXTS.items()
        for value in [next((fields[each] for each in names if fields.get(each)), None)]
        if isinstance(value, str)
    }
    known["hook_event_name"] = EVENT_NAMES.get(str(known.get("hook_event_name")), "")
    active = fields.get("stop_hook_active", fields.get("stopHookActive", fields.get("loop_count")))
    return {**known, "stop_hook_active": bool(active)}


def recognise(fields: dict[str, object]) -> str | None:
    """Return the name of the host that gives its hooks this input, or None for one that is not known."""
    raise NotImplementedError
