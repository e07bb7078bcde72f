"""Event names, families and levels. Imports nothing: the fast path of `turngate fire` needs it."""

# Event: the field that a matcher is applied to; None: matchers are ignored.
EVENTS: dict[str, str | None] = {
    "Stop": None,
    "SubagentStop": "agent_type",
    "SessionStart": "source",
    "UserPromptSubmit": None,
    "PreToolUse": "tool_name",
    "PermissionRequest": "tool_name",
    "PostToolUse": "tool_name",
    "PreCompact": "trigger",
    "SubagentStart": "agent_type",
    "StopFailure": None,
    "SessionEnd": "reason",
}

STOP_EVENTS = ("Stop", "SubagentStop")
# Prompt and agent hooks, which ask a model, run only here (C-22).
JUDGED_EVENTS = (*STOP_EVENTS, "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse")
OBSERVED_EVENTS = ("SessionStart", "SubagentStart", "StopFailure", "SessionEnd")  # a block has no effect

# Events of Claude Code that Turngate does not fire: a note, not a mistake.
FOREIGN_EVENTS = frozenset(
    {
        "Notification",
        "PostToolUseFailure",
        "PermissionDenied",
        "PostCompact",
        "Setup",
        "TeammateIdle",
        "TaskCreated",
        "TaskCompleted",
        "ConfigChange",
        "CwdChanged",
        "FileChanged",
        "WorktreeCreate",
        "WorktreeRemove",
        "InstructionsLoaded",
        "Elicitation",
        "ElicitationResult",
        "UserPromptExpansion",
        "PostToolBatch",
        "MessageDisplay",
        "PreModelSwitch",
        "PostModelSwitch",
        "DirectoryAdded",
    }
)

# Executables that are hooks without a settings entry, in every family except Claude Code's.
SCRIPTS = {"Stop": "stop", "SubagentStop": "subagent_stop"}
SCRIPT_FAMILIES = ("mux", "turngate")

# The families of settings files that a dialect reads, weakest first.
FAMILIES = {
    "turngate": ("claude", "mux", "turngate"),
    "mux": ("mux",),
    "claude": ("claude",),
}

LEVELS = ("user", "project", "local")
MANAGED = "managed"  # above these: an administrator's settings, which no other level can switch off

# Set in the environment of every hook: a session that a hook starts runs no hooks, or the recursion would not end.
IN_HOOK = "TURNGATE_IN_HOOK"

# Claude Code: a wrong type of one of its settings makes it ignore the whole file, hooks included (measured).
CLAUDE_SETTING_TYPES: dict[str, type | tuple[type, ...]] = {
    "cleanupPeriodDays": (int, float),
    "env": dict,
    "permissions": dict,
    "includeCoAuthoredBy": bool,
    "model": str,
    "outputStyle": str,
    "statusLine": dict,
    "apiKeyHelper": str,
    "enableAllProjectMcpServers": bool,
    "enabledMcpjsonServers": list,
    "disabledMcpjsonServers": list,
}


def voids_claude_file(name: str, value: object) -> bool:
    """Return whether Claude Code ignores the whole file because of this setting."""
    expected = CLAUDE_SETTING_TYPES.get(name)
    return expected is not None and (
        not isinstance(value, expected) or (isinstance(value, bool) and expected is not bool)
    )
