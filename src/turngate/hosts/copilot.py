"""Copilot CLI: reads only `decision` and `reason`, and the settings of Claude Code besides its own."""

from turngate.hosts.host import (
    INSTALLED_TIMEOUT_S,
    SAME_NAMES,
    FolderTrust,
    Host,
    HostAnswer,
    HostOutput,
    to_json,
    with_halt_as_notice,
)


def write_answer(answer: HostAnswer) -> HostOutput:
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
    events=SAME_NAMES,
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
    write_answer=write_answer,
)
