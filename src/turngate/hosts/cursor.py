"""Cursor: a block is a `followup_message`. From its documentation; not run."""

from turngate.hosts.host import INSTALLED_TIMEOUT_S, Host, HostAnswer, HostOutput, write_json


def write_answer(answer: HostAnswer) -> HostOutput:
    return write_json({"followup_message": answer.reason} if answer.decision == "block" else {})


CURSOR = Host(
    name="cursor",
    title="Cursor",
    version=None,
    events={
        "Stop": "stop",
        "SubagentStop": "subagentStop",
        "SessionStart": "sessionStart",
        "SubagentStart": "subagentStart",
    },
    files={"user": "~/.cursor/hooks.json", "project": ".cursor/hooks.json"},
    entry=lambda command: {"command": command, "timeout": INSTALLED_TIMEOUT_S},
    default_timeout_s=None,
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
    write_answer=write_answer,
)
