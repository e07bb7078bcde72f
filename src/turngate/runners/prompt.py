"""Prompt hooks: a question to a small model, which answers whether the agent may stop."""

from turngate.core.events import Event
from turngate.core.hooks import PromptHook
from turngate.core.reports import Broke, Report
from turngate.core.settings import Settings
from turngate.ports import Live, World


async def run_prompt(hook: PromptHook, event: Event, settings: Settings, world: World, live: Live) -> Report:
    return Broke("prompt hooks are not available yet")
