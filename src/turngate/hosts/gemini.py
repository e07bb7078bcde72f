"""Gemini CLI: its stop event is `AfterAgent`, its timeouts are milliseconds."""

from dataclasses import replace

from turngate.hosts import claude
from turngate.hosts.host import (
    INSTALLED_TIMEOUT_S,
    FolderTrust,
    Host,
    HostAnswer,
    HostOutput,
    to_command_group,
)


def write_answer(answer: HostAnswer) -> HostOutput:
    """It shows the user `systemMessage` in the place of the reason, so both are in it."""
    if answer.decision != "allow" and answer.notices:
        answer = replace(answer, notices=(answer.reason, *answer.notices))
    return claude.write_answer(answer)


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
    limit=None,
    folder_variable=("GEMINI_CLI_HOME", "~"),
    failed_hook_blocks=True,
    agent_variable="GEMINI_CLI",
    stop_types=("command",),
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
    write_answer=write_answer,
)
