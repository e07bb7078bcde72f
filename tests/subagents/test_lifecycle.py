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


def test_only_an_agent_that_runs_here_and_started_none_has_no_subagents() -> None:
    listeners = ChangeListeners()
    listeners.add("idle", lambda: None)
    listeners.add("parent", lambda: None)
    listeners.add_parent("parent")
    agents = ("idle", "parent", "elsewhere")
    assert [listeners.may_have_subagents(agent) for agent in agents] == [False, True, True]
