"""Event names and the JSON fields of events, families and levels. Imports nothing: every stop needs it."""

# Event: the field that a matcher is applied to; None: matchers are ignored.
EVENTS: dict[str, str | None] = {
    "Stop": None,
    "SubagentStop": "agent_type",
    "SessionStart": "source",
    "UserPromptSubmit": None,
    "PreToolUse": "tool_name",
    "PermissionRequest": "tool_name",
    "PostToolUse": "tool_name",
    "PostToolUseFailure": "tool_name",
    "PostToolBatch": None,
    "PreCompact": "trigger",
    "SubagentStart": "agent_type",
    "StopFailure": None,
    "SessionEnd": "reason",
}

STOP_EVENTS = ("Stop", "SubagentStop")
# Prompt and agent hooks, which ask a model, run only here (C-22).
JUDGED_EVENTS = (*STOP_EVENTS, "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse")
PERMISSION_EVENTS = ("PreToolUse", "PermissionRequest")  # a hook can deny a tool call
STOP_OF_START = {"SessionStart": "Stop", "SubagentStart": "SubagentStop"}  # the stop of the same agent
OBSERVED_EVENTS = ("SessionStart", "SubagentStart", "StopFailure", "SessionEnd")  # a block has no effect

# Events of Claude Code that Turngate does not fire: a note, not a mistake.
FOREIGN_EVENTS = frozenset(
    "Notification PermissionDenied PostCompact Setup TeammateIdle TaskCreated TaskCompleted "
    "ConfigChange CwdChanged FileChanged WorktreeCreate WorktreeRemove InstructionsLoaded Elicitation "
    "ElicitationResult UserPromptExpansion MessageDisplay PreModelSwitch PostModelSwitch DirectoryAdded".split()
)

# Those at which a block has no effect (Claude Code's documentation).
FOREIGN_OBSERVED_EVENTS = frozenset(
    "Notification PermissionDenied PostCompact Setup CwdChanged FileChanged WorktreeRemove "
    "InstructionsLoaded".split()
)

# Executables that are hooks without a settings entry, in every family except Claude Code's.
SCRIPTS = {"Stop": "stop", "SubagentStop": "subagent_stop"}
SCRIPT_FAMILIES = ("mux", "turngate")

# The families of settings files that a dialect reads, weakest first.
FAMILIES = {
    "turngate": ("claude", "mux", "turngate"),
    "mux": ("mux",),
    "claude": ("claude",),
    # For `turngate hook`: the other agent program runs the hooks of `.claude` itself.
    "host": ("mux", "turngate"),
}
# Those that a user can choose.
DIALECT_NAMES = ("turngate", "mux", "claude")

LEVELS = ("user", "project", "local")
COMMAND_LINE = "command line"  # above these: `--settings`
MANAGED = "managed"  # above all: an administrator's settings, which no other level can switch off

# Set in the environment of every hook: a session that a hook starts runs no hooks, or the recursion would not end.
IN_HOOK = "TURNGATE_IN_HOOK"
# Set in the environment of a command hook: the seconds that it has. A gate's own limit is below it.
HOOK_TIMEOUT = "TURNGATE_HOOK_TIMEOUT"
# Set by `turngate gates run`: there is no session. The commit that gates compare with; empty: there is none.
GATES_BASE = "TURNGATE_GATES_BASE"
ENV_FILE_VARIABLES = ("CLAUDE_ENV_FILE", "TURNGATE_ENV_FILE")  # name the file of SessionStart hooks
# Set in the environment of every command of the tool Bash.
IN_TOOL = "TURNGATE_IN_TOOL"

# Claude Code: a wrong type of one of its settings makes it ignore the whole file, hooks included (measured). A dict is
# an object whose keys have these types, where they are present; a list is a list of such items.
CLAUDE_SETTING_TYPES: dict[str, object] = {
    "cleanupPeriodDays": (int, float),
    "env": dict,
    "permissions": {"allow": list},
    "includeCoAuthoredBy": bool,
    "model": str,
    "outputStyle": str,
    "statusLine": dict,
    "apiKeyHelper": str,
    "enableAllProjectMcpServers": bool,
    "disabledMcpjsonServers": list,
    "language": str,
    "fileSuggestion": dict,
    "spinnerTipsEnabled": bool,
    "attribution": dict,
    "sandbox": {"credentials": {"files": [dict]}},
    "enabledPlugins": dict,
    "alwaysThinkingEnabled": bool,
    "allowedHttpHookUrls": list,
    "autoUpdatesChannel": str,
}


def wrong_claude_setting(name: str, value: object) -> tuple[str, object] | None:
    """Return the part of this setting because of which Claude Code ignores the whole file, and its value."""
    return _wrong_part(name, value, CLAUDE_SETTING_TYPES[name]) if name in CLAUDE_SETTING_TYPES else None


def _wrong_part(path: str, value: object, expected: object) -> tuple[str, object] | None:
    parts: list[tuple[str, object, object]] = []
    if isinstance(expected, dict) and isinstance(value, dict):
        parts = [(f"{path}.{key}", value[key], each) for key, each in expected.items() if key in value]
    elif isinstance(expected, list) and isinstance(value, list):
        parts = [(f"{path}[{number}]", item, expected[0]) for number, item in enumerate(value)]
    elif isinstance(expected, dict | list) or not _is_of(value, expected):
        return path, value
    return next((wrong for part in parts if (wrong := _wrong_part(*part))), None)


def _is_of(value: object, expected: object) -> bool:
    types = expected if isinstance(expected, tuple) else (expected,)
    return isinstance(value, types) and (not isinstance(value, bool) or bool in types)


_STRING = (str, "a string")
# Field: (type, the type as it appears in a message).
FIELDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys("session_id transcript_path cwd permission_mode hook_event_name".split(), _STRING),
    "stop_hook_active": (bool, "true or false"),
    "last_assistant_message": _STRING,
    **dict.fromkeys(("continuation_count", "max_continuations"), (int, "a whole number")),
    **dict.fromkeys(("agent_id", "agent_type", "agent_transcript_path"), _STRING),
    **dict.fromkeys(("parent_session_id", "parent_transcript_path"), _STRING),
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


def reject_constant(name: str) -> object:
    """Refuse NaN and Infinity, which JSON does not have: the `parse_constant` of `json.loads`."""
    raise ValueError(f"{name} is not a JSON value")
