"""Event names, families, levels and variables. Imports nothing: every stop needs it."""

# Event: the field that a matcher is applied to; None: matchers are ignored.
EVENTS: dict[str, str | None] = {
    "Stop": None,
    "SubagentStop": "agent_type",
    "TaskCompleted": None,
    "TeammateIdle": None,
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

# Of teams in Claude Code, by the field that names what has its own count: a task is about to be completed, or a teammate idle.
TEAM_EVENTS = {"TaskCompleted": "task_id", "TeammateIdle": "teammate_name"}
TEAM_FIELDS = ("task_id", "task_subject", "task_description", "teammate_name", "team_name")
STOP_EVENTS = ("Stop", "SubagentStop", *TEAM_EVENTS)
# Prompt and agent hooks, which ask a model, run only here (C-22).
JUDGED_EVENTS = (*STOP_EVENTS, "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse")
PERMISSION_EVENTS = ("PreToolUse", "PermissionRequest")  # a hook can deny a tool call
TOOL_EVENTS = ("PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure", "PostToolBatch")
SUBAGENT_EVENTS = ("SubagentStart", *TOOL_EVENTS, "PreCompact", "StopFailure", "SubagentStop")
# The stops of the same agent.
STOPS_OF_START = {"SessionStart": ("Stop", *TEAM_EVENTS), "SubagentStart": ("SubagentStop",)}
OBSERVED_EVENTS = ("SessionStart", "SubagentStart", "StopFailure", "SessionEnd")  # a block has no effect

# Events of Claude Code that Turngate does not fire: a note, not a mistake.
FOREIGN_EVENTS = frozenset(
    "Notification PermissionDenied PostCompact Setup TaskCreated "
    "ConfigChange CwdChanged FileChanged WorktreeCreate WorktreeRemove InstructionsLoaded Elicitation "
    "ElicitationResult UserPromptExpansion MessageDisplay PreModelSwitch PostModelSwitch DirectoryAdded".split()
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
DOCUMENTATION = "https://github.com/turngate/turngate/tree/main/docs"  # also in pyproject.toml
COMMAND_LINE = "command line"  # above these: `--settings`
MANAGED = "managed"  # above all: an administrator's settings, which no other level can switch off

# Set in the environment of every hook: a session that a hook starts runs no hooks, or the recursion would not end.
IN_HOOK = "TURNGATE_IN_HOOK"
# Set in the environment of a command hook: the seconds that it has. A gate's own limit is below it.
HOOK_TIMEOUT = "TURNGATE_HOOK_TIMEOUT"
# Set in the environment of every command of a gate: a gate that it checks waits for no other.
IN_GATE = "TURNGATE_IN_GATE"
# Set by `turngate gates run`: there is no session. The commit that gates compare with; empty: there is none.
GATES_BASE = "TURNGATE_GATES_BASE"
AGENT_KEEPS = "the agent keeps this"  # in the notice of a gate that accepts what the agent says
GATES_RUN_SESSION = "gates-run-"  # the beginning of the id of a session of `turngate gates run`
ENV_FILE_VARIABLES = ("CLAUDE_ENV_FILE", "TURNGATE_ENV_FILE")  # name the file of SessionStart hooks
# Set in the environment of every command of the tool Bash.
IN_TOOL = "TURNGATE_IN_TOOL"
# Set in the environment of an agent behind `turngate acp`: the host whose hooks it runs itself, or empty.
IN_ACP = "TURNGATE_IN_ACP"


def reject_constant(name: str) -> object:
    """Refuse NaN and Infinity, which JSON does not have: the `parse_constant` of `json.loads`."""
    raise ValueError(f"{name} is not a JSON value")
