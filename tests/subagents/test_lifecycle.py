"""Which agent is notified of a change of a subagent."""

from pathlib import Path

import pytest

from turngate.agent.session import Session
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.settings import Settings
from turngate.models.scripted import ScriptedModel


def run_of(parent_agent: str) -> SubagentRun:
    return SubagentRun(id="r", chain="r", agent_id="a", owner="o", parent="s", parent_agent=parent_agent)


@pytest.mark.parametrize(
    ("parent_agent", "notified"), [("", ["main"]), ("sub", ["sub"]), ("elsewhere", ["main"])]
)
def test_the_agent_that_started_it_is_notified_or_else_the_main_agent(
    project: Path, parent_agent: str, notified: list[str]
) -> None:
    calls: list[str] = []
    supervisor = Session(str(project), ScriptedModel({}), Settings())._agent.subagents
    supervisor.listeners[""] = lambda: calls.append("main")
    supervisor.listeners["sub"] = lambda: calls.append("sub")
    supervisor.notify_parent(run_of(parent_agent))
    assert calls == notified
