"""Agent hooks: a small agent with read-only tools judges whether the agent may stop."""

from turngate.core.events import Event
from turngate.core.hooks import AgentHook
from turngate.core.reports import Report, RunFailed
from turngate.ports import RunContext, World

UNAVAILABLE = (
    "it is unavailable: this World has no `inspect`; a Session, run_stop_hooks and `turngate fire` set one"
)


async def run_agent(hook: AgentHook, event: Event, world: World, live: RunContext) -> Report:
    if world.inspect is None:
        return RunFailed(UNAVAILABLE)
    return await world.inspect(hook, event, live)
