"""The answer for `turngate acp`, which is between an editor and an agent and runs `turngate hook` at a stop."""

from turngate.hosts.host import Host, HostAnswer, HostOutput, to_json


def write_answer(answer: HostAnswer) -> HostOutput:
    """Write everything that is known: the proxy itself tells the agent and the user."""
    return HostOutput(stdout=to_json(vars(answer)))


# It is not in HOSTS: it has no settings file to install into.
ACP = Host(
    name="acp",
    title="an agent behind `turngate acp`",
    version=None,
    events={},
    files={},
    default_timeout_s=None,
    limit=None,
    agent_variable=None,
    stop_types=(),
    adds_heading=False,
    write_answer=write_answer,
)
