"""The only place where thinking and the world meet: plan → run → conclude."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import assert_never

from turngate.core.dialect import Dialect
from turngate.core.events import Event, StopHookInput
from turngate.core.interpret import interpret
from turngate.core.plan import plan
from turngate.core.reports import Broke, Detached, Report, Skipped, TimedOut
from turngate.core.settings import Rule, Settings
from turngate.core.shorten import long_texts, shortened
from turngate.core.verdict import Continue, HookRun, Stop, Verdict, conclude, ends_asking, warnings
from turngate.core.wire import run_json, verdict_json
from turngate.journal import Journal, state_folder
from turngate.ports import Live, Shell, World
from turngate.runners import run_hook
from turngate.settings.files import load_settings
from turngate.tasks import in_thread, is_cancelled, to_the_end


async def ask_hooks(event: Event, settings: Settings, world: World) -> Verdict:
    """May the agent stop? Asks every hook that is configured for this event, once."""
    planned = plan(settings, event)
    if not planned.ask and not planned.skip:
        return Stop()
    asked = await _ask_in_order(planned.ask, event, settings, world)
    skipped = tuple(_judged(rule, why, settings) for rule, why in planned.skip)
    verdict = conclude(asked + skipped, settings.dialect)
    _remember(verdict, event, settings, world)
    return verdict


async def _ask_in_order(
    rules: tuple[Rule, ...], event: Event, settings: Settings, world: World
) -> tuple[HookRun, ...]:
    """All runs in configured order, whichever way they are started."""
    order = settings.order_of(event.name)
    deadline = None if settings.stop_budget is None else time.monotonic() + settings.stop_budget
    if order == "parallel" and len(rules) > 1:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_attempt(rule, event, settings, world, deadline)) for rule in rules]
        return _ranked(tuple(task.result() for task in tasks))
    runs: list[HookRun] = []
    for place, rule in enumerate(rules):
        run, _ = await _attempt(rule, event, settings, world, deadline)
        runs.append(replace(run, finished=place) if place else run)
        if order == "first_block" and run.mode == "gate" and ends_asking(run, settings.dialect):
            passed = Skipped("an earlier hook refused already", on_purpose=True)
            return (*runs, *(_judged(later, passed, settings) for later in rules[place + 1 :]))
    return tuple(runs)


def _ranked(ended: tuple[tuple[HookRun, float], ...]) -> tuple[HookRun, ...]:
    """Each run learns which of its siblings it was to end."""
    by_end = sorted(range(len(ended)), key=lambda place: ended[place][1])
    rank = {place: number for number, place in enumerate(by_end)}
    return tuple(replace(run, finished=rank[place]) for place, (run, _) in enumerate(ended))


async def _attempt(
    rule: Rule, event: Event, settings: Settings, world: World, deadline: float | None
) -> tuple[HookRun, float]:
    """One run under its time limit, and when it ended. Nothing that a hook does gets past here as an exception."""
    started = time.monotonic()
    limit = settings.timeout_of(rule)
    if deadline is not None:
        limit = min(limit, deadline - started)
    live = Live()
    if world.watch:
        world.watch(rule, None)
    if rule.hook.detached:
        report = _detach(rule, event, settings, world, limit)
    else:
        report = await _report(rule, event, settings, world, limit, live)
    ended = time.monotonic()
    run = _judged(rule, report, settings, seconds=ended - started, timeout=limit, remarks=live.remarks)
    run = await _shortened(run, event, settings, world)
    if world.watch:
        world.watch(rule, run)
    if world.store:
        world.store.record(event.session_id, {"kind": "hook", "event": event.name, **run_json(run)})
    return run, ended


async def _report(
    rule: Rule, event: Event, settings: Settings, world: World, limit: float, live: Live
) -> Report:
    """The one timeout and the one except around foreign code."""
    if limit <= 0:
        return Skipped("the stop budget was used up before its turn")
    try:
        async with asyncio.timeout(limit) as timer:
            live.on_exit = partial(_disarm, timer)
            return await run_hook(rule, event, settings, world, live)
    except TimeoutError as error:
        if not timer.expired():
            return Broke(_named(error))  # the hook's own, not our timer's
        return live.ended or TimedOut(limit, live.stdout.text(), live.stderr.text())
    except asyncio.CancelledError:
        if is_cancelled():
            raise
        return Broke("it cancelled itself")
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - foreign code: its failure is a value
        return Broke(_named(error))


def _disarm(timer: asyncio.Timeout) -> None:
    """The limit is for the hook's own end; reading what its children still hold has a limit of its own."""
    if not timer.expired():
        timer.reschedule(None)


def _named(error: BaseException) -> str:
    said = str(error)[:LONGEST_ERROR]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


LONGEST_ERROR = 1000  # characters


def _detach(rule: Rule, event: Event, settings: Settings, world: World, limit: float) -> Report:
    async def run() -> None:
        live = Live()
        try:
            report = await _report(rule, event, settings, world, limit, live)
        except asyncio.CancelledError:
            report = Skipped("it did not end in time and was ended")
        if world.store:
            late = _judged(rule, report, settings, timeout=limit, remarks=live.remarks)
            world.store.record(
                event.session_id, {"kind": "background", "event": event.name, **run_json(late)}
            )

    task = asyncio.create_task(run())
    world.background.add(task)
    task.add_done_callback(world.background.discard)
    return Detached()


def _judged(
    rule: Rule, report: Report, settings: Settings, *,
    seconds: float = 0.0, timeout: float | None = None, remarks: Sequence[str] = (),
) -> HookRun:  # fmt: skip
    decision = interpret(report, rule, settings.dialect)
    return HookRun(
        rule,
        report,
        replace(decision, warnings=(*decision.warnings, *remarks)) if remarks else decision,
        seconds=seconds,
        timeout=settings.timeout_of(rule) if timeout is None else timeout,
        mode=settings.mode_of(rule),
    )


async def _shortened(run: HookRun, event: Event, settings: Settings, world: World) -> HookRun:
    """No text to a model is longer than the dialect allows; the whole of it is kept in a file."""
    too_long = long_texts(run.decision, settings.dialect)
    if not too_long:
        return run
    kept = {text: await _kept(text, event, world) for text in too_long}
    return replace(run, decision=shortened(run.decision, settings.dialect, kept))


async def _kept(text: str, event: Event, world: World) -> str | None:
    return await in_thread(world.store.keep, event.session_id, text) if world.store else None


def _remember(verdict: Verdict, event: Event, settings: Settings, world: World) -> None:
    if world.store:
        shown = verdict_json(verdict, event.name, settings)
        shown["runs"] = len(verdict.runs)
        world.store.record(event.session_id, {"kind": "verdict", **shown})


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
    settings = await in_thread(partial(load_settings, dialect=dialect), project_dir)
    journal = Journal(state_folder())
    world = World(runtime, project_dir, journal)

    async def ask() -> Verdict:
        verdict = await ask_hooks(input.event(), settings, world)
        await world.close(settings.dialect.background_grace)
        return verdict

    try:
        verdict = await _unless(abort, asyncio.create_task(ask()))
    finally:
        await world.close()
        await to_the_end(in_thread(journal.close))
    told = [*map(str, settings.errors), *([journal.fault] if journal.fault else [])]
    if verdict is None:
        return StopHooksResult(should_stop=True, warnings=[*told, "the stop hooks were aborted"])
    told += warnings(verdict.runs, settings.dialect)
    match verdict:
        case Stop(stop_reason=reason):
            return StopHooksResult(should_stop=True, warnings=told, stop_reason=reason)
        case Continue(prompt=prompt):
            return StopHooksResult(False, _bare(prompt, settings.dialect), told)
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
        await to_the_end(asyncio.gather(asking, aborting, return_exceptions=True))
