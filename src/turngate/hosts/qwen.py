"""Qwen Code: `continue: false` continues the turn there, so it is never sent."""

from turngate.hosts import claude
from turngate.hosts.host import SAME_NAMES, FolderTrust, Host, to_command_group, with_halt_as_notice

QWEN = Host(
    name="qwen",
    title="Qwen Code",
    version="0.24.4",
    acp_programs=("qwen", "qwen-code"),
    events=SAME_NAMES,
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
    write_answer=lambda answer: claude.write_answer(with_halt_as_notice(answer)),
)
