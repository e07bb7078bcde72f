"""How each kind of hook is run. Its time limit, and what its failure means, are the engine's business."""

from importlib import import_module
from typing import assert_never

from turngate.core.events import Event, own_copy
from turngate.core.hooks import AgentHook, CallbackHook, CommandHook, HttpHook, PromptHook
from turngate.core.reports import Report, Returned
from turngate.core.settings import Rule, Settings
from turngate.ports import Live, World
from turngate.runners.agent import run_agent
from turngate.runners.callback import run_callback
from turngate.runners.command import passable, run_command
from turngate.runners.prompt import run_prompt

__all__ = ["passable", "run_hook"]


async def run_hook(rule: Rule, event: Event, settings: Settings, world: World, live: Live) -> Report:
    match rule.hook:
        case CommandHook() as hook:
            return await run_command(hook, event, settings, world, live)
        case CallbackHook(callback):
            return Returned(await run_callback(callback, own_copy(event)))
        case PromptHook() as hook:
            return await run_prompt(hook, event, settings, world, live)
        case AgentHook() as hook:
            return await run_agent(hook, event, world, live)
        case HttpHook() as hook:
            http = import_module("turngate.runners.http")  # few have one, and it takes a while to load
            report: Report = await http.run_http(hook, event, settings, world, live, source=rule.source)
            return report
        case _:
            assert_never(rule.hook)
