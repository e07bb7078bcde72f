"""Http hooks: an endpoint is told what happened, and answers as a command would on its stdout."""

from turngate.core.events import Event
from turngate.core.hooks import HttpHook
from turngate.core.reports import Broke, Report
from turngate.core.settings import Settings
from turngate.ports import Live, World


async def run_http(hook: HttpHook, event: Event, settings: Settings, world: World, live: Live) -> Report:
    return Broke("http hooks are not available yet")
