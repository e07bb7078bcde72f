"""Which agents of this process want to know when their subagents change."""

from collections.abc import Callable

from turngate.core.conversation.subagent_run import SubagentRun


class ChangeListeners:
    """One listener per agent: the main agent, whose id is empty, and each subagent that runs here."""

    def __init__(self) -> None:
        self._listeners: dict[str, Callable[[], None]] = {}
        self._parents: set[str] = set()

    def add(self, agent_id: str, on_change: Callable[[], None]) -> None:
        self._listeners[agent_id] = on_change

    def remove(self, agent_id: str) -> None:
        self._listeners.pop(agent_id, None)

    def notify(self, run: SubagentRun) -> None:
        """Notify the agent that started the run, or the main agent if that one is gone."""
        listener = self._listeners.get(run.parent_agent) or self._listeners.get("")
        if listener:
            listener()

    def add_parent(self, agent_id: str) -> None:
        """Remember that this agent has started a subagent."""
        self._parents.add(agent_id)

    def may_have_subagents(self, agent_id: str) -> bool:
        """Return False only for an agent that runs here and has started none: it may have run elsewhere."""
        return agent_id not in self._listeners or agent_id in self._parents
