"""Agent hooks: a small agent with tools that can only look, which answers whether the agent may stop."""

from turngate.core.events import Event
from turngate.core.hooks import AgentHook
from turngate.core.reports import Broke, Report
from turngate.core.settings import Settings
from turngate.ports import Live, World


async def run_agent(hook: AgentHook, event: Event, settings: Settings, world: World, live: Live) -> Report:
    return Broke("agent hooks are not available yet")
