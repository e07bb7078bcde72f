"""Every host that Turngate knows, and the answers for one that it does not know."""

from collections.abc import Mapping
from dataclasses import replace

from turngate.core.constants import IN_ACP, IN_HOOK, IN_TOOL
from turngate.errors import UsageError
from turngate.hosts.claude import CLAUDE_CODE
from turngate.hosts.codex import CODEX
from turngate.hosts.copilot import COPILOT
from turngate.hosts.cursor import CURSOR
from turngate.hosts.droid import DROID
from turngate.hosts.gemini import GEMINI
from turngate.hosts.host import Host, HostOutput, to_json, write_portable_answer
from turngate.hosts.kimi import KIMI
from turngate.hosts.kiro import KIRO
from turngate.hosts.opencode import OPENCODE
from turngate.hosts.qwen import QWEN
from turngate.hosts.vscode import VSCODE

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
    version=None,
    events={},
    files={},
    default_timeout_s=None,
    limit=None,
    agent_variable=None,
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
