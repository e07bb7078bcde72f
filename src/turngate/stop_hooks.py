"""Run hooks once, without a session: open a world, ask the hooks, close it."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import field
from functools import partial
from typing import assert_never

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import finish_despite_cancel, run_in_thread
from turngate.core.dialect import Dialect
from turngate.core.events.events import StopHookInput
from turngate.core.hooks.kinds import AgentHook
from turngate.core.settings import Settings
from turngate.core.verdict.hook_run import HookOutput
from turngate.core.verdict.verdict import Continue, Stop, Verdict, warnings
from turngate.engine import IN_HOOK_REASON, ask_hooks
from turngate.errors import UsageError
from turngate.ports import Shell, World, describe_killed, on_machine
from turngate.settings.load import report_unreachable
from turngate.shells.local import LocalShell
from turngate.state.journal import Journal
from turngate.state.paths import state_folder
from turngate.trust.load import load_reviewed


@frozen
class StopHooksResult:
    """The result of `run_stop_hooks`: whether the agent may stop, or the reason why it has to continue."""

    should_stop: bool
    continue_reason: str | None = None
    warnings: list[str] = field(default_factory=list)
    stop_reason: str | None = None  # for the user, when a hook halted the turn
    unenforced: tuple[HookOutput, ...] = field(default=(), repr=False, compare=False)  # as in `Verdict`

    @property
    def shouldStop(self) -> bool:  # noqa: N802 - document 000
        """The same as `should_stop`."""
        return self.should_stop

    @property
    def continueReason(self) -> str | None:  # noqa: N802 - document 000
        """The same as `continue_reason`."""
        return self.continue_reason


@asynccontextmanager
async def open_world(
    project: str | World, settings: Settings, *, state: str | None = None
) -> AsyncIterator[World]:
    """Yield what hooks need outside of a session. Then wait for hooks in the background, and close models and journal.

    `project`: its folder on this machine, or its workspace. `state`: the folder of the journal, by default the state folder.
    """
    place = project if isinstance(project, World) else World(LocalShell(), project)
    journal = Journal(state or state_folder(), place.location)
    world, judges = World(place.shell, place.project, journal, place.environ, remote=place.remote), None
    if any(rule.hook.asks == "model" for rule in settings.rules):
        from turngate.models.resolve import JudgeModels  # noqa: PLC0415 # lazy: most hooks ask no model

        judges = JudgeModels(settings.judge, environ=settings.environ_of_models(os.environ))
        world.judge = judges
    if judges and any(isinstance(rule.hook, AgentHook) for rule in settings.rules):
        # lazy: most projects have no agent hook, and the agent is slow to import
        from turngate.agent.hook_agent import HookAgentRunner  # noqa: PLC0415

        world.inspect = HookAgentRunner(world, settings, state_folder(), judges, world.environ)
    grace = 0.0
    try:
        yield world
        grace = settings.dialect.background_grace
    finally:
        try:
            await world.close(grace)
        finally:
            if judges:
                await finish_despite_cancel(judges.close())
            await finish_despite_cancel(run_in_thread(journal.close))
            world.store_fault = journal.fault


def trouble_of(world: World) -> list[str]:
    """Return what the user of a closed world has to know: hooks that were ended, and what could not be stored."""
    return [*([describe_killed(world)] if world.killed else ()), *filter(None, [world.store_fault])]


async def run_stop_hooks(
    runtime: Shell | World,
    project_dir: str,
    input: StopHookInput,  # noqa: A002 - the name is fixed
    *,
    abort: asyncio.Event | None = None,
    dialect: str = "turngate",
    trust: bool = False,
) -> StopHooksResult:
    """Load the project's settings and run its stop hooks once. `abort` ends running hooks: the agent stops.

    `runtime` is where the project is: `LocalShell()` for this machine, or a workspace, such as that of `Workspace.ssh`, or
    its shell. Settings, approvals and folders are those of that machine; a relative `project_dir` begins at the folder of
    the workspace, and `transcript_path` is a file of this machine, which is copied there. A hook of the project runs only
    if it is approved; `trust` accepts all hooks as they are now. Raises UsageError if the machine does not answer, and for
    a shell that does not say where the files are.
    """
    place = _workspace(runtime, project_dir)
    files, project = place.files, place.project
    load = partial(load_reviewed, dialect=dialect, trust=trust, files=files)
    settings = await run_in_thread(load, project)
    with report_unreachable(files):
        exists = await run_in_thread(files.isdir, project)

    async def ask() -> Verdict:
        verdict = await ask_hooks(input.event(), settings, world)
        await world.close(settings.dialect.background_grace)
        return verdict

    async with open_world(place, settings) as world:
        verdict = await _unless_aborted(abort, asyncio.create_task(ask()))
        await world.close()
    texts = [*map(str, settings.not_loaded), *([world.store_fault] if world.store_fault else [])]
    if not exists:
        what = f"the project folder {project} does not exist{on_machine(place)}"
        texts.insert(0, f"{what}, so only your user settings were read")
    if world.in_hook:
        texts.append(IN_HOOK_REASON)
    return _result(verdict, texts, settings.dialect)


def _workspace(runtime: Shell | World, project: str) -> World:
    """Return the workspace of the project. Raises UsageError for a shell whose files are not known."""
    if isinstance(runtime, World):
        place = runtime
    elif (known := getattr(runtime, "workspace", None)) is not None:
        place = known
    elif getattr(runtime, "is_local", False):
        return World(runtime, project)
    else:
        raise UsageError(
            f"{type(runtime).__name__} does not say where the project's files are; pass the workspace of "
            "`await Workspace.ssh(…)`, or `World(shell, project)` if they are on this machine"
        )
    folder = os.path.normpath(os.path.join(place.project, place.files.expand_home(project)))
    return World(place.shell, folder, environ=place.environ, remote=place.remote)


def _result(verdict: Verdict | None, texts: list[str], dialect: Dialect) -> StopHooksResult:
    if verdict is None:
        return StopHooksResult(should_stop=True, warnings=[*texts, "the stop hooks were aborted"])
    texts = [*texts, *warnings(verdict.runs, dialect)]
    match verdict:
        case Stop(stop_reason=reason):
            return StopHooksResult(True, None, texts, reason, verdict.unenforced)
        case Continue(prompt=prompt):
            bare = prompt if dialect.prefix_each else prompt.removeprefix(dialect.prefix)
            return StopHooksResult(False, bare, texts, unenforced=verdict.unenforced)
        case _:
            assert_never(verdict)


async def _unless_aborted(abort: asyncio.Event | None, asking: "asyncio.Task[Verdict]") -> Verdict | None:
    aborting = asyncio.create_task(abort.wait() if abort else asyncio.Event().wait())
    try:
        await asyncio.wait({asking, aborting}, return_when=asyncio.FIRST_COMPLETED)
        return asking.result() if asking.done() else None
    finally:
        aborting.cancel()
        asking.cancel()
        await finish_despite_cancel(asyncio.gather(asking, aborting, return_exceptions=True))
