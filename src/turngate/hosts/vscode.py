"""VS Code: reads the settings of Claude Code, but wants a block in `hookSpecificOutput`. From its documentation; not run."""

from turngate.hosts import claude
from turngate.hosts.claude import CLAUDE_CODE
from turngate.hosts.host import SAME_NAMES, Host, HostAnswer, HostOutput, write_json


def write_answer(answer: HostAnswer) -> HostOutput:
    """Write a block in both forms: the stop of a subagent takes the other one."""
    if answer.decision != "block":
        return claude.write_answer(answer)
    block = {"decision": "block", "reason": answer.reason}
    notices = {"systemMessage": "\n".join(answer.notices)} if answer.notices else {}
    return write_json({**block, "hookSpecificOutput": {"hookEventName": "Stop", **block}, **notices})


VSCODE = Host(
    name="vscode",
    title="VS Code",
    version=None,
    events=SAME_NAMES,
    files=CLAUDE_CODE.files,
    entry=CLAUDE_CODE.entry,
    default_timeout_s=30,
    adds_heading=False,
    limit=None,
    programs=("code",),
    agent_variable=None,
    stop_types=("command",),
    reads_exit_codes=True,
    limitations=(
        "It reads the files of Claude Code, so `turngate install claude` is the same, and `turngate uninstall vscode` removes the line for both.",
        "It reads those of Copilot CLI too: with the line in both, a stop is checked twice.",
        "It reads no hooks where `chat.hookFilesLocations` or a policy of the organization switches them off.",
        "It does not give a hook the last message of the agent.",
    ),
    documentation="https://code.visualstudio.com/docs/agent-customization/hooks",
    write_answer=write_answer,
)
