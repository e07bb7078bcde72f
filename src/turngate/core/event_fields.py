"""The JSON fields of events and their types. Imports nothing: the fast path of `turngate fire` needs it."""

# Field: (type, the type as it appears in a message).
FIELDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    "session_id": (str, "a string"),
    "transcript_path": (str, "a string"),
    "cwd": (str, "a string"),
    "permission_mode": (str, "a string"),
    "hook_event_name": (str, "a string"),
    "stop_hook_active": (bool, "true or false"),
    "last_assistant_message": (str, "a string"),
    "continuation_count": (int, "a whole number"),
    "max_continuations": (int, "a whole number"),
    "agent_id": (str, "a string"),
    "agent_type": (str, "a string"),
    "agent_transcript_path": (str, "a string"),
    "parent_session_id": (str, "a string"),
    "parent_transcript_path": (str, "a string"),
    "outcome": (str, '"ok", "error" or "timeout"'),
    "prompt_id": (str, "a string"),
    "effort": (dict, "an object"),
    "usage": (dict, "an object"),
    "duration_ms": ((int, float), "a number"),
    "tool_calls": ((int, list), "a whole number, or at PostToolBatch a list"),
    "background_tasks": (list, "a list"),
    "session_crons": (list, "a list"),
    "tool_name": (str, "a string"),
    "tool_input": (dict, "an object"),
    "tool_use_id": (str, "a string"),
    "is_interrupt": (bool, "true or false"),
    "prompt": (str, "a string"),
    "source": (str, "a string"),
    "model": (str, "a string"),
    "trigger": (str, "a string"),
    "custom_instructions": (str, "a string"),
    "reason": (str, "a string"),
    "error": (str, "a string"),
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
