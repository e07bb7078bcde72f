"""One stop without a session: the settings are read, a world is made, and the hooks are asked."""

import asyncio
import os
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import assert_never

from turngate.aio.cancellation import finish_despite_cancel
from turngate.aio.threads import run_in_thread
from turngate.core.dialect import Dialect
from turngate.core.events import StopHookInput
from turngate.core.hooks import AgentHook
from turngate.core.settings import Settings
from turngate.core.verdict import Continue, Stop, Verdict, warnings
from turngate.engine import ask_hooks
from turngate.models.resolve import JudgeModels
from turngate.ports import Shell, World
from turngate.settings.load import load_settings
from turngate.state.journal import Journal
from turngate.state.paths import state_folder


@dataclass(frozen=True)
class StopHooksResult:
    should_stop: bool
    continue_reason: str | None = None
    warnings: list[str] = field(default_factory=list)
    stop_reason: str | None = None  # for the user, when a hook ended the turn


async def run_stop_hooks(
    runtime: Shell,
    project_dir: str,
    input: StopHookInput,  # noqa: A002 - the name is fixed
    *,
    abort: asyncio.Event | None = None,
    dialect: str = "turngate",
) -> StopHooksResult:
    """Reads the project's settings and asks its stop hooks once. `abort` ends a running hook: the agent stops."""
    settings = await run_in_thread(partial(load_settings, dialect=dialect), project_dir)
    there = await run_in_thread(os.path.isdir, project_dir)
    journal = Journal(state_folder())
    judges = JudgeModels(settings.judge)
    world = make_world(runtime, project_dir, settings, journal, judges)

    async def ask() -> Verdict:
        verdict = await ask_hooks(input.event(), settings, world)
        await world.close(settings.dialect.background_grace)
        return verdict

    try:
        verdict = await _unless(abort, asyncio.create_task(ask()))
    finally:
        await world.close()
        await finish_despite_cancel(judges.close())
        await finish_despite_cancel(run_in_thread(journal.close))
    notes = [*map(str, settings.not_loaded), *([journal.fault] if journal.fault else [])]
    if not there:
        notes.insert(0, f"there is no project folder {project_dir}, so only your user settings were read")
    if world.in_hook:
        notes.append("turngate was started from a hook, so no hooks run")
    if verdict is None:
        return StopHooksResult(should_stop=True, warnings=[*notes, "the stop hooks were aborted"])
    notes += warnings(verdict.runs, settings.dialect)
    match verdict:
        case Stop(stop_reason=reason):
            return StopHooksResult(should_stop=True, warnings=notes, stop_reason=reason)
        case Continue(prompt=prompt):
            return StopHooksResult(False, _bare(prompt, settings.dialect), notes)
        case _:
            assert_never(verdict)


def _bare(prompt: str, dialect: Dialect) -> str:
    """What the hooks said, without our own heading."""
    return prompt if dialect.prefix_each else prompt.removeprefix(dialect.prefix)


async def _unless(abort: asyncio.Event | None, asking: "asyncio.Task[Verdict]") -> Verdict | None:
    """The verdict, or None when the abort comes first."""
    aborting = asyncio.create_task(abort.wait() if abort else asyncio.Event().wait())
    try:
        await asyncio.wait({asking, aborting}, return_when=asyncio.FIRST_COMPLETED)
        return asking.result() if asking.done() else None
    finally:
        aborting.cancel()
        asking.cancel()
        await finish_despite_cancel(asyncio.gather(asking, aborting, return_exceptions=True))


def make_world(
    shell: Shell, project: str, settings: Settings, journal: Journal, judges: JudgeModels
) -> World:
    """The agent of agent hooks is loaded only where there is one: most stops are cheap."""
    world = World(shell, project, journal, judge=judges)
    if any(isinstance(rule.hook, AgentHook) for rule in settings.rules):
        agents = import_module("turngate.agent.hook_agent")
        world.inspect = agents.HookAgent(project, settings, state_folder(), judges, world.environ, journal)
    return world
