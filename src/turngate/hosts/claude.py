"""Claude Code: the contract that most other hosts follow, each in its own way."""

from turngate.core.constants import TEAM_EVENTS
from turngate.hosts.host import (
    INSTALLED_TIMEOUT_S,
    SAME_NAMES,
    Host,
    HostAnswer,
    HostOutput,
    to_command_group,
    write_json,
)


def write_answer(answer: HostAnswer) -> HostOutput:
    notices = {"systemMessage": "\n".join(answer.notices)} if answer.notices else {}
    match answer.decision:
        case "block":
            return write_json({"decision": "block", "reason": answer.reason, **notices})
        case "halt":
            return write_json({"continue": False, "stopReason": answer.reason, **notices})
        case "allow":
            return write_json(notices)


CLAUDE_CODE = Host(
    name="claude",
    title="Claude Code",
    version="2.1.325",
    acp_programs=("claude-agent-acp", "claude-code-acp"),
    events={**SAME_NAMES, **{name: name for name in TEAM_EVENTS}},
    files={"user": "~/.claude/settings.json", "project": ".claude/settings.json"},
    entry=lambda command: to_command_group(command, INSTALLED_TIMEOUT_S, statusMessage="Turngate gates"),
    default_timeout_s=600,
    limit=8,
    folder_variable=("CLAUDE_CONFIG_DIR", "~/.claude"),
    agent_variable="CLAUDECODE",
    further_files=(("project", ".claude/settings.local.json"),),
    stop_types=("command", "prompt", "agent", "http", "mcp_tool"),
    has_async=True,
    reads_exit_codes=True,
    switches={"disableAllHooks": True},
    has_plain_json=True,
    checks_types=True,
    not_shown="when a subagent or a teammate stops or a task is completed, and with `claude -p` unless its output format is `stream-json`",
    limitations=(
        "Its own limit counts blocks in a row: a tool call between two blocks resets it.",
        "A comment, or a wrong type in any key, switches off all hooks of a settings file.",
        "`claude --bare` runs no hooks.",
        "A hook that halts at SubagentStop ends only the subagent, and the main agent continues.",
        "`claude -p` does not print the reason of a hook that halts.",
    ),
    documentation="https://code.claude.com/docs/en/hooks",
    write_answer=write_answer,
)
