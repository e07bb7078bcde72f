"""The fixed words of the contract; imports nothing, so that even the quickest path can have them."""

# Which field a group's matcher is held against; None: the event has nothing to match.
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
JUDGED_EVENTS = STOP_EVENTS  # where a model may be asked: prompt and agent hooks (C-22)
OBSERVED = ("SessionStart", "SubagentStart", "StopFailure", "SessionEnd")  # nothing can be refused there

# Names that Claude Code knows and we do not fire (yet): no reason to call a file wrong.
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
    }
)

# Executables that are hooks without any settings entry, in every family but Claude Code's own.
SCRIPTS = {"Stop": "stop", "SubagentStop": "subagent_stop"}
SCRIPT_FAMILIES = ("mux", "turngate")

# The families of settings files that a dialect reads, weakest first.
FAMILIES = {
    "turngate": ("claude", "mux", "turngate"),
    "mux": ("mux",),
    "claude": ("claude",),
}

LEVELS = ("user", "project", "local")

# In the environment of everything that a hook starts: a session below it asks no hooks, or it would never end.
IN_HOOK = "TURNGATE_IN_HOOK"

# Settings of Claude Code's own whose wrong type makes it ignore the whole file, hooks included.
FOREIGN_SETTINGS: dict[str, type | tuple[type, ...]] = {
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
    """Would Claude Code ignore the whole file because of this setting?"""
    wanted = FOREIGN_SETTINGS.get(name)
    return wanted is not None and (
        not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool)
    )
