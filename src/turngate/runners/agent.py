"""Agent hooks: a small agent with tools that can only look, which answers whether the agent may stop."""

import asyncio

from turngate.core.events import Event
from turngate.core.hooks import AgentHook
from turngate.core.reports import Broke, Report
from turngate.ports import World
from turngate.tasks import STUBBORN


async def run_agent(hook: AgentHook, event: Event, world: World) -> Report:
    """A model is foreign code: one that does not mind its cancellation holds up nobody for long."""
    if world.inspect is None:
        return Broke("it is unavailable: no model is there to answer it")
    looking = asyncio.ensure_future(world.inspect(hook, event))
    looking.add_done_callback(_heard)
    try:
        await asyncio.wait({looking})
    finally:
        if not looking.done():
            looking.cancel()
            await asyncio.wait({looking}, timeout=STUBBORN)
    return looking.result()


def _heard(looking: "asyncio.Future[Report]") -> None:
    """What it raises after we have gone is nobody's business."""
    if not looking.cancelled():
        looking.exception()
