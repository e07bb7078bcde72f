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
    project_variable="FACTORY_PROJECT_DIR",
    limitations=(
        "It does not read the hooks of `settings.json` if there is a `hooks.json` in the same folder; `turngate install` writes nothing then.",
        "It does not give a hook the last message of the agent.",
    ),
    documentation="https://docs.factory.ai/reference/hooks-reference",
    steps_by_hand={"user": _RESTART, "project": _RESTART},
    ignored_beside="hooks.json",
    write_answer=write_answer,
)
