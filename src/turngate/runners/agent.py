"""Agent hooks: a small agent with read-only tools judges whether the agent may stop."""

from turngate.core.answers.reports import HookFailed, Report
from turngate.core.events.events import Event
from turngate.core.hooks.kinds import AgentHook
from turngate.ports import HookRunContext, World

UNAVAILABLE = (
    "it is unavailable: this World has no `inspect`; a Session, run_stop_hooks and `turngate fire` set one"
)


async def run_agent(hook: AgentHook, event: Event, world: World, live: HookRunContext) -> Report:
    if world.inspect is None:
        return HookFailed(UNAVAILABLE)
    return await world.inspect(hook, event, live)
