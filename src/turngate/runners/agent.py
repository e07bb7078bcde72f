"""Agent hooks: a small agent with tools that can only look, which answers whether the agent may stop."""

from turngate.core.events import Event
from turngate.core.hooks import AgentHook
from turngate.core.reports import Report, RunFailed
from turngate.ports import RunContext, World


async def run_agent(hook: AgentHook, event: Event, world: World, live: RunContext) -> Report:
    if world.inspect is None:
        return RunFailed(
            "it is unavailable: this world has no `inspect`; a Session, run_stop_hooks and `turngate fire` have one"
        )
    return await world.inspect(hook, event, live)
