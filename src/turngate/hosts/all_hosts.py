"""Every host that Turngate knows, as data, and the answers for one that it does not know.

Hosts whose settings have a format of their own are in `file_formats.py`.
"""

from collections.abc import Mapping
from dataclasses import replace

from turngate.core.constants import IN_ACP, IN_HOOK, IN_TOOL, TEAM_EVENTS
from turngate.errors import UsageError
from turngate.hosts.file_formats import KIMI, KIRO, OPENCODE
from turngate.hosts.host import (
    INSTALLED_TIMEOUT_S,
    SAME_NAMES,
    FolderTrust,
    Host,
    HostAnswer,
    HostOutput,
    to_command_group,
    to_json,
    with_halt_as_notice,
    write_claude_answer,
    write_json,
    write_portable_answer,
)

# Claude Code: the contract that most other hosts follow, each in its own way.
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
    write_answer=write_claude_answer,
)

# Codex: rejects an answer with a key that it does not know, and then the agent stops.
CODEX = Host(
    name="codex",
    title="Codex",
    version="0.166.0",
    acp_programs=("codex-acp",),
    files={"user": "~/.codex/hooks.json", "project": ".codex/hooks.json"},
    default_timeout_s=600,
    folder_variable=("CODEX_HOME", "~/.codex"),
    agent_variable="CODEX_THREAD_ID",
    further_files=(("user", "~/.codex/config.toml"), ("project", ".codex/config.toml")),
    stop_types=("command", "mcp_tool"),
    has_async=True,
    reads_exit_codes=True,
    rejects_specific_output=True,
    switches={"features.hooks": False, "features.codex_hooks": False},
    only_keys=("description", "hooks"),
    has_plain_json=True,
    not_shown="with `codex exec`, which prints only that a hook ran",
    limitations=(
        "It silently skips a hook that is new or changed, until you trust it in `/hooks`.",
        "It discards an answer with a key that it does not know, and the agent stops.",
    ),
    documentation="https://developers.openai.com/codex/hooks",
    steps_by_hand={
        "user": "open Codex and trust the hook in `/hooks`: until then Codex skips it",
        "project": "open Codex in this project and trust the hook in `/hooks`: until then Codex skips it",
    },
    write_answer=write_claude_answer,
)

# Gemini CLI: its stop event is `AfterAgent`, its timeouts are milliseconds.


def _write_gemini_answer(answer: HostAnswer) -> HostOutput:
    """It shows the user `systemMessage` in the place of the reason, so both are in it."""
    if answer.decision != "allow" and answer.notices:
        answer = replace(answer, notices=(answer.reason, *answer.notices))
    return write_claude_answer(answer)


GEMINI = Host(
    name="gemini",
    title="Gemini CLI",
    version="0.61.0",
    acp_programs=("gemini", "gemini-cli"),
    events={"Stop": "AfterAgent", "SessionStart": "SessionStart"},
    files={"user": "~/.gemini/settings.json", "project": ".gemini/settings.json"},
    entry=lambda command: to_command_group(command, INSTALLED_TIMEOUT_S * 1000),
    timeout_unit="ms",
    default_timeout_s=60,
    adds_heading=False,
    folder_variable=("GEMINI_CLI_HOME", "~"),
    failed_hook_blocks=True,
    agent_variable="GEMINI_CLI",
    switches={"hooksConfig.enabled": False},
    list_of_disabled="hooksConfig.disabled",
    folder_trust=FolderTrust(
        file="~/.gemini/trustedFolders.json", variable="GEMINI_CLI_TRUST_WORKSPACE", needed_for_user=True
    ),
    limitations=(
        "It has no event for the stop of a subagent, so subagents are not checked.",
        "It gives a hook all answers of the turn as one text, so the last message cannot be told apart from earlier ones.",
        "It runs no hooks in a folder that is not trusted, and with `--skip-trust` only those in the user's settings; the environment variable `GEMINI_CLI_TRUST_WORKSPACE=true` makes it trust the folder.",
    ),
    documentation="https://geminicli.com/docs/hooks/reference",
    steps_by_hand={
        "user": "trust each folder when Gemini CLI asks: hooks do not run until then",
        "project": "trust the folder when Gemini CLI asks: hooks do not run until then",
    },
    write_answer=_write_gemini_answer,
)

# Qwen Code: `continue: false` continues the turn there, so it is never sent.
QWEN = Host(
    name="qwen",
    title="Qwen Code",
    version="0.24.4",
    acp_programs=("qwen", "qwen-code"),
    files={"user": "~/.qwen/settings.json", "project": ".qwen/settings.json"},
    default_timeout_s=60,
    longest_hook_s=60,
    entry=lambda command: to_command_group(command, 60),
    adds_heading=False,
    limit=7,
    folder_variable=("QWEN_HOME", "~/.qwen"),
    agent_variable="QWEN_CODE",
    ms_from=1000,
    stop_types=("command", "http", "prompt"),
    has_async=True,
    reads_exit_codes=True,
    on_continue_false="continues the turn then",
    switches={"disableAllHooks": True},
    folder_trust=FolderTrust(
        file="~/.qwen/trustedFolders.json", file_variable="QWEN_CODE_TRUSTED_FOLDERS_PATH", is_asked=False
    ),
    not_shown="with `--output-format json` or `stream-json`",
    limitations=(
        "It has no answer that ends a turn: `continue: false` makes its agent continue.",
        "The main agent can stop while a subagent runs in the background; its hooks run again when the subagent has ended.",
        "If folder trust is switched on, it silently skips the hooks of a project in a folder that is not trusted.",
        "It reads a timeout of 1000 or more as milliseconds.",
        "It gives up on a hook after 60 seconds, whatever the `timeout` says, and ends the turn with an error; so Turngate answers after 55 seconds, and a gate that takes longer is not enforced.",
    ),
    documentation="https://github.com/QwenLM/qwen-code/blob/main/docs/users/features/hooks.md",
    steps_by_hand={"project": "if Qwen Code asks, trust the folder: a project's hooks do not run until then"},
    write_answer=lambda answer: write_claude_answer(with_halt_as_notice(answer)),
)

# Copilot CLI: reads only `decision` and `reason`, and the settings of Claude Code besides its own.


def _write_copilot_answer(answer: HostAnswer) -> HostOutput:
    """A progress line is how a hook reports to the user. An older version would lose a block that follows one."""
    answer = with_halt_as_notice(answer)
    if answer.decision == "block":
        return HostOutput(stdout=to_json({"decision": "block", "reason": answer.reason}))
    lines = [to_json({"type": "progress", "message": notice}) for notice in answer.notices]
    return HostOutput(stdout="\n".join(lines))


COPILOT = Host(
    name="copilot",
    title="Copilot CLI",
    version="1.0.102",
    acp_programs=("copilot",),
    files={"user": "~/.copilot/hooks/turngate.json", "project": ".github/hooks/turngate.json"},
    entry=lambda command: {"type": "command", "bash": command, "timeoutSec": INSTALLED_TIMEOUT_S},
    timeout_key="timeoutSec",
    default_timeout_s=30,
    adds_heading=False,
    limit=8,
    new_file={"version": 1},
    agent_variable="COPILOT_CLI",
    reads_files_of={"claude": ("project",)},
    further_files=(
        ("user", "~/.copilot/hooks/*.json"),
        ("user", "~/.copilot/settings.json"),
        ("project", ".github/hooks/*.json"),
        ("project", ".github/copilot/settings.json"),
        ("project", ".github/copilot/settings.local.json"),
    ),
    further_events={
        "agentStop": "Stop",
        "subagentStop": "SubagentStop",
        "sessionStart": "SessionStart",
        "subagentStart": "SubagentStart",
    },
    stop_types=("command", "http"),
    ignores_exit_2=True,
    on_continue_false="ignores it",
    rejected_types=("prompt", "agent"),
    folder_trust=FolderTrust(
        file="~/.copilot/config.json", lists=("trustedFolders", "trusted_folders"), is_asked=None
    ),
    subagents_in_transcript=True,
    not_shown="with `--output-format json`, and at a stop that is blocked: an older version would lose the block",
    limitations=(
        "It has no answer that ends a turn: it ignores `continue: false`.",
        "If several hooks block, the agent reads only the reason of the last one.",
        "It does not give a hook the last message of the main agent.",
        "It reports the stop of a subagent as `Stop` too; Turngate answers only `SubagentStop`.",
        "It does not run the hooks of a project in a folder that is not trusted, and with `-p` prints no message about it.",
    ),
    steps_by_hand={
        "project": "trust the folder when Copilot CLI asks: a project's hooks do not run until then"
    },
    documentation="https://docs.github.com/en/copilot/reference/hooks-reference",
    write_answer=_write_copilot_answer,
)

# Cursor: a block is a `followup_message`. From its documentation; not run.


CURSOR = Host(
    name="cursor",
    title="Cursor",
    events={
        "Stop": "stop",
        "SubagentStop": "subagentStop",
        "SessionStart": "sessionStart",
        "SubagentStart": "subagentStart",
    },
    files={"user": "~/.cursor/hooks.json", "project": ".cursor/hooks.json"},
    entry=lambda command: {"command": command, "timeout": INSTALLED_TIMEOUT_S},
    adds_heading=False,
    limit=5,
    new_file={"version": 1},
    programs=("cursor-agent", "cursor"),
    agent_variable="CURSOR_AGENT",
    reads_files_of={"claude": ("user", "project")},
    reads_them_if="`Third-party skills` is switched on",
    stop_types=("command", "prompt"),
    ignores_exit_2=True,
    on_continue_false="ignores it",
    not_shown="at a stop: the answer of a stop hook has no field for it",
    limitations=(
        "It has no answer that ends a turn: a hook that halts allows the stop.",
        "It ignores the answer at a stop after an error or an interruption; Turngate does not ask the gates then.",
        "It does not give a hook the last message of the main agent.",
        "It reads the settings of Claude Code only if third-party configuration is switched on.",
    ),
    documentation="https://cursor.com/docs/hooks",
    write_answer=lambda answer: write_json(
        {"followup_message": answer.reason} if answer.decision == "block" else {}
    ),
)

# Factory droid: the contract of Claude Code with input in camel case. From its documentation; not run.
_RESTART = "restart droid, or review the new hook in `/hooks`: it reads hooks when it starts"
DROID = Host(
    name="droid",
    title="Factory droid",
    events={"Stop": "Stop", "SubagentStop": "SubagentStop", "SessionStart": "SessionStart"},
    files={"user": "~/.factory/settings.json", "project": ".factory/settings.json"},
    default_timeout_s=60,
    further_files=(
        ("user", "~/.factory/hooks.json"),
        ("project", ".factory/settings.local.json"),
        ("project", ".factory/hooks.json"),
    ),
    reads_exit_codes=True,
    limitations=(
        "It does not read the hooks of `settings.json` if there is a `hooks.json` in the same folder; `turngate install` writes nothing then.",
        "It does not give a hook the last message of the agent.",
    ),
    documentation="https://docs.factory.ai/reference/hooks-reference",
    steps_by_hand={"user": _RESTART, "project": _RESTART},
    # Which shape that file has is not documented, so `turngate install` does not write it.
    ignored_beside="hooks.json",
    how_to_be_read="add the line `turngate hook` in droid with `/hooks`, or move the hooks to settings.json and remove hooks.json",
    write_answer=write_claude_answer,
)

# VS Code: reads the settings of Claude Code, but wants a block in `hookSpecificOutput`. From its documentation; not run.


def _write_vscode_answer(answer: HostAnswer) -> HostOutput:
    """Write a block in both forms: the stop of a subagent takes the other one."""
    if answer.decision != "block":
        return write_claude_answer(answer)
    block = {"decision": "block", "reason": answer.reason}
    notices = {"systemMessage": "\n".join(answer.notices)} if answer.notices else {}
    return write_json({**block, "hookSpecificOutput": {"hookEventName": "Stop", **block}, **notices})


VSCODE = Host(
    name="vscode",
    title="VS Code",
    files=CLAUDE_CODE.files,
    entry=CLAUDE_CODE.entry,
    default_timeout_s=30,
    adds_heading=False,
    programs=("code",),
    reads_exit_codes=True,
    limitations=(
        "It reads the files of Claude Code, so `turngate install claude` is the same, and `turngate uninstall vscode` removes the line for both.",
        "It reads those of Copilot CLI too: with the line in both, a stop is checked twice.",
        "It reads no hooks where `chat.hookFilesLocations` or a policy of the organization switches them off.",
        "It does not give a hook the last message of the agent.",
    ),
    documentation="https://code.visualstudio.com/docs/agent-customization/hooks",
    write_answer=_write_vscode_answer,
)

HOSTS: Mapping[str, Host] = {
    host.name: host
    for host in (
        *(CLAUDE_CODE, CODEX, GEMINI, QWEN, COPILOT, OPENCODE, KIMI),
        *(CURSOR, DROID, KIRO, VSCODE),
    )
}
# Variables of processes that a hook or an agent has started: a person does not type there. A terminal inside an editor
# has none of them.
AGENT_MARKERS = (
    IN_HOOK,
    IN_TOOL,
    IN_ACP,
    *(host.agent_variable for host in HOSTS.values() if host.agent_variable),
)


def find_host(name: str) -> Host:
    """Return the host with this name. Raises UsageError."""
    if name == ACP.name:
        return ACP
    if name not in HOSTS:
        raise UsageError(f"unknown host {name!r}, expected one of {', '.join(HOSTS)}")
    return HOSTS[name]


# A host that is not known. It is not in HOSTS: it has no settings file to install into.
PORTABLE = Host(
    name="portable",
    title="another program",
    events={},
    files={},
    stop_types=(),
    write_answer=write_portable_answer,
)

# `turngate acp`, which is between an agent and its editor: it gets everything that is known, and tells both.
ACP = replace(
    PORTABLE,
    name="acp",
    title="an agent behind `turngate acp`",
    adds_heading=False,
    write_answer=lambda answer: HostOutput(stdout=to_json(vars(answer))),
)
