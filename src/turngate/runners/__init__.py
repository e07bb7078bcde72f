"""Run one hook, by its kind. The engine sets the timeout and decides what a failure means."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, assert_never

from turngate.core.answers.report_types import HookFailed, Report, Returned, Skipped
from turngate.core.events.events import Event, copy_event
from turngate.core.hooks.kinds import AgentHook, CallbackHook, CommandHook, GateHook, HttpHook, PromptHook
from turngate.core.settings import Rule, Settings
from turngate.core.verdict.hints import IN_SESSION
from turngate.ports import CallbackScope, HookRunContext, World, in_callback
from turngate.project.files import Files, MachineUnreachable
from turngate.runners.command import run_command, with_own_bytecode
from turngate.trust.covered_files import CoveredFiles, compare_files

NO_AGENT = (
    "it is unavailable: this World has no `inspect`; a Session, run_stop_hooks and `turngate fire` set one"
)
WRITES_ITSELF = (
    "if the hook writes this file itself, let it write to one like `x.log`, or into a folder `logs`"
)


async def run_hook(
    rule: Rule, event: Event, settings: Settings, world: World, live: HookRunContext
) -> Report:
    if settings.guarded:
        rule, settings = settings.as_seen_by(rule)
    live.redactor = world.redactor(settings.env)  # a command and an endpoint add what they are given
    match rule.hook:
        case CommandHook() as hook:
            hook = with_own_bytecode(hook, rule.files, settings, world)
            passed = settings.passed_variables(rule)
            run = partial(run_command, hook, event, settings, world, live, pass_env=passed)
            return await _run_reviewed(rule, world, live, run)
        case CallbackHook(callback):
            return Returned(await run_callback(callback, copy_event(event)))
        case AgentHook() as hook:
            return await world.inspect(hook, event, live) if world.inspect else HookFailed(NO_AGENT)
        case PromptHook() as hook:
            # lazy: it reads transcripts, which no other hook needs
            from turngate.runners.prompt import run_prompt  # noqa: PLC0415

            return await run_prompt(hook, event, settings, world, live)
        case HttpHook() as hook:
            # lazy: few projects have an http hook, and ssl and socket are slow to import
            from turngate.runners.http import run_http  # noqa: PLC0415

            return await run_http(hook, event, settings, world, live, source=rule.source)
        case GateHook() as hook:
            # lazy: few projects have a gate
            from turngate.runners.gate import run_gate_hook  # noqa: PLC0415

            run = partial(run_gate_hook, rule, hook, event, settings, world, live)
            return await _run_reviewed(rule, world, live, run)
        case _:
            assert_never(rule.hook)


async def run_callback(callback: Callable[[Any], Any], event: Any) -> Any:
    """Return what a function in this process returns. A session that it opens runs no hooks, or it would never end."""
    from turngate.aio.foreign_code import call_callback  # noqa: PLC0415 # lazy: only a Python program has callbacks

    scope = CallbackScope()
    token = in_callback.set(scope)
    try:
        return await call_callback(callback, event)
    finally:
        scope.ended = True
        in_callback.reset(token)


async def _run_reviewed(
    rule: Rule, world: World, live: HookRunContext, run: Callable[[], Awaitable[Report]]
) -> Report:
    """Run a command only while its files are what was approved; they are compared again at its end, since one may be replaced before it starts."""
    try:
        if why := await _describe_change(rule, world):
            return Skipped(f"{why} {IN_SESSION}", is_change=True)
    except MachineUnreachable as error:
        return HookFailed(f"its files could not be compared with those that were approved: {error}")
    report = await run()
    try:
        if why := await _describe_change(rule, world):
            lost = f"{why} while it ran, so its answer does not count ({WRITES_ITSELF})"
            return Skipped(lost, is_change=True) if rule.held else HookFailed(lost)
    except MachineUnreachable as error:  # a block is not lost with the connection
        what = (
            "its files could not be compared once more after it ran, so they may have been changed meanwhile"
        )
        live.warnings.append(f"{what}: {error}")
    return report


async def _describe_change(rule: Rule, world: World) -> str | None:
    return await world.with_files(_compare, rule, world.project) if rule.files else None


def _compare(rule: Rule, project: str, files: Files) -> str | None:
    return compare_files(
        rule.files, CoveredFiles(files, project if files.machine else files.realpath(project))
    )
