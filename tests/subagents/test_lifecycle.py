"""Which agent is notified of a change of a subagent."""

import pytest

from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.lifecycle import ChangeListeners


def run_of(parent_agent: str) -> SubagentRun:
    return SubagentRun(id="r", chain="r", agent_id="a", owner="o", parent="s", parent_agent=parent_agent)


@pytest.mark.parametrize(
    ("parent_agent", "notified"), [("", ["main"]), ("sub", ["sub"]), ("elsewhere", ["main"])]
)
def test_the_agent_that_started_it_is_notified_or_else_the_main_agent(
    parent_agent: str, notified: list[str]
) -> None:
    calls: list[str] = []
    listeners = ChangeListeners()
    listeners.add("", lambda: calls.append("main"))
    listeners.add("sub", lambda: calls.append("sub"))
    listeners.notify(run_of(parent_agent))
    assert calls == notified
