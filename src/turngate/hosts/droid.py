"""Factory droid: the contract of Claude Code with input in camel case. From its documentation; not run."""

from turngate.hosts.claude import write_answer
from turngate.hosts.host import Host

_RESTART = "restart droid, or review the new hook in `/hooks`: it reads hooks when it starts"

DROID = Host(
    name="droid",
    title="Factory droid",
    version=None,
    events={"Stop": "Stop", "SubagentStop": "SubagentStop", "SessionStart": "SessionStart"},
    files={"user": "~/.factory/settings.json", "project": ".factory/settings.json"},
    default_timeout_s=60,
    limit=None,
    agent_variable=None,
    further_files=(
        ("user", "~/.factory/hooks.json"),
        ("project", ".factory/settings.local.json"),
        ("project", ".factory/hooks.json"),
    ),
    stop_types=("command",),
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
    write_answer=write_answer,
)
