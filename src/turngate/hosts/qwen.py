"""Qwen Code: `continue: false` continues the turn there, so it is never sent."""

from turngate.hosts.host import (
    SAME_NAMES,
    FolderTrust,
    Host,
    HostAnswer,
    HostOutput,
    notice_field,
    with_halt_as_notice,
    write_json,
)


def write_answer(answer: HostAnswer) -> HostOutput:
    answer = with_halt_as_notice(answer)
    block = {"decision": "block", "reason": answer.reason} if answer.decision == "block" else {}
    return write_json({**block, **notice_field(answer)})


QWEN = Host(
    name="qwen",
    title="Qwen Code",
    version="0.24.4",
    events=SAME_NAMES,
    files={"user": "~/.qwen/settings.json", "project": ".qwen/settings.json"},
    default_timeout_s=60,
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
        "The main agent can stop while a subagent runs in the background; its hooks run again when that has ended.",
        "If folder trust is switched on, it does not run the hooks of a project in a folder that is not trusted, without a message.",
        "It reads a timeout of 1000 and more as milliseconds.",
    ),
    documentation="https://github.com/QwenLM/qwen-code/blob/main/docs/users/features/hooks.md",
    steps_by_hand={"project": "if Qwen Code asks, trust the folder: hooks of a project do not run before"},
    write_answer=write_answer,
)
