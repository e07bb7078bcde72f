"""The only place where thinking and the world meet: plan → run → conclude."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

from turngate.aio.cancellation import current_task_cancelled
from turngate.aio.foreign import CallbackCancelledItself
from turngate.aio.threads import run_in_thread
from turngate.core.decisions import Decision, Fault
from turngate.core.events import Event
from turngate.core.hooks import CallbackHook, CommandHook
from turngate.core.interpret import interpret
from turngate.core.json_output import run_json, verdict_json
from turngate.core.plan import plan
from turngate.core.reports import Detached, Report, RunFailed, Skipped, TimedOut
from turngate.core.settings import Rule, Settings
from turngate.core.text import describe_exception
from turngate.core.text_limits import oversized_texts, truncate_decision
from turngate.core.verdict import HookRun, Stop, Verdict, conclude, stops_sequence
from turngate.ports import RunContext, World
from turngate.runners import run_hook


async def ask_hooks(event: Event, settings: Settings, world: World) -> Verdict:
    """May the agent stop? Asks every hook that is configured for this event, once."""
    planned = plan(settings, event)
    if not planned.ask and not planned.skip:
        return Stop()
    if world.in_hook:
        below = Skipped("this was started from a hook, so no hook is asked", on_purpose=True)
        return Stop(tuple(_judged(rule, below, settings) for rule in planned.ask))
    asked = await _ask_in_order(planned.ask, event, settings, world)
    if planned.skip:
        asked += tuple(_judged(rule, why, settings) for rule, why in planned.skip)
    verdict = conclude(asked, settings.dialect)
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
        if order == "first_block" and run.mode == "gate" and stops_sequence(run, settings.dialect):
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
    """Run one hook, a command as soon as the shell has a slot for it; the wait does not count against its timeout."""
    if isinstance(rule.hook, CommandHook) and not rule.hook.detached:
        async with world.shell.slot():
            return await _run(rule, event, settings, world, deadline)
    return await _run(rule, event, settings, world, deadline)


async def _run(
    rule: Rule, event: Event, settings: Settings, world: World, deadline: float | None
) -> tuple[HookRun, float]:
    """One run under its time limit, and when it ended. Nothing that a hook does gets past here as an exception."""
    started = time.monotonic()
    limit = settings.timeout_of(rule)
    if deadline is not None:
        limit = min(limit, deadline - started)
    live = RunContext()
    if world.watch:
        world.watch(rule, None)
    if rule.hook.detached:
        report = _detach(rule, event, settings, world, limit)
    else:
        try:
            report = await _report(rule, event, settings, world, limit, live)
        except asyncio.CancelledError:
            _remember_cost(rule, event, settings, world, live)
            raise
    ended = time.monotonic()
    run = _judged(rule, report, settings, live, seconds=ended - started, timeout=limit)
    if too_long := oversized_texts(run.decision, settings.dialect):
        run = await _truncate_texts(run, too_long, event, settings, world)
    if world.watch:
        world.watch(rule, run)
    if world.store:
        world.store.record(event.session_id, {"kind": "hook", "event": event.name, **run_json(run)})
    return run, ended


async def _report(
    rule: Rule, event: Event, settings: Settings, world: World, limit: float, live: RunContext
) -> Report:
    """The one timeout and the one except around foreign code. What comes after the limit does not count."""
    if limit <= 0:
        return Skipped("the stop budget was used up before its turn")
    report: Report
    try:
        async with asyncio.timeout(limit) as timer:
            live.until = timer.when()
            if isinstance(rule.hook, CommandHook):
                live.on_exit = partial(_disarm, timer)
            report = await run_hook(rule, event, settings, world, live)
    except CallbackCancelledItself:
        report = RunFailed("it cancelled itself")
    except asyncio.CancelledError:
        if current_task_cancelled():
            raise
        report = RunFailed("it cancelled itself")
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # noqa: BLE001 - foreign code: its failure is a value
        report = RunFailed(describe_exception(error))
    late = isinstance(rule.hook, CallbackHook) and (timer.when() or 0.0) < asyncio.get_running_loop().time()
    if timer.expired() or late:  # a function that holds up the loop holds up the timer too
        return live.ended or TimedOut(limit, live.stdout.text(), live.stderr.text())
    return report


def _remember_cost(rule: Rule, event: Event, settings: Settings, world: World, live: RunContext) -> None:
    """Of a hook that was interrupted: its model was paid all the same."""
    if live.evaluation and world.store:
        run = _judged(rule, Skipped("it was interrupted", on_purpose=True), settings, live)
        world.store.record(event.session_id, {"kind": "hook", "event": event.name, **run_json(run)})


def _disarm(timer: asyncio.Timeout) -> None:
    """The limit is for the hook's own end; reading what its children still hold has a limit of its own."""
    if not timer.expired():
        timer.reschedule(None)


def _detach(rule: Rule, event: Event, settings: Settings, world: World, limit: float) -> Report:
    is_command = isinstance(rule.hook, CommandHook)

    async def run() -> None:
        live = RunContext()
        try:
            async with world.shell.slot(background=True) if is_command else nullcontext():
                report = await _report(rule, event, settings, world, limit, live)
        except asyncio.CancelledError:
            report = Skipped("it did not end in time and was ended")
        if world.store:
            late = _judged(rule, report, settings, live, timeout=limit)
            world.store.record(
                event.session_id, {"kind": "background", "event": event.name, **run_json(late)}
            )

    task = asyncio.create_task(run())
    world.background.add(task)
    task.add_done_callback(world.background.discard)
    return Detached()


def _judged(
    rule: Rule,
    report: Report,
    settings: Settings,
    live: RunContext | None = None,
    *,
    seconds: float = 0.0,
    timeout: float | None = None,
) -> HookRun:
    remarks = live.remarks if live else ()
    decision: Decision
    try:
        decision = interpret(report, rule, settings.dialect)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - what foreign code gave us may itself be foreign code
        decision = Fault(f"what it answered can not be read: {describe_exception(error)}")
    return HookRun(
        rule,
        report,
        replace(decision, warnings=(*decision.warnings, *remarks)) if remarks else decision,
        seconds=seconds,
        timeout=settings.timeout_of(rule) if timeout is None else timeout,
        mode=settings.mode_of(rule),
        evaluation=live.evaluation if live else None,
    )


async def _truncate_texts(
    run: HookRun, texts: Sequence[str], event: Event, settings: Settings, world: World
) -> HookRun:
    """Save each text that is too long for a model in a file, and truncate it in the decision."""
    saved_as = {text: await _save_text(text, event, world) for text in texts}
    return replace(run, decision=truncate_decision(run.decision, settings.dialect, saved_as))


async def _save_text(text: str, event: Event, world: World) -> str | None:
    return await run_in_thread(world.store.keep, event.session_id, text) if world.store else None


def _remember(verdict: Verdict, event: Event, settings: Settings, world: World) -> None:
    if world.store:
        shown = verdict_json(verdict, event.name, settings)
        shown["runs"] = len(verdict.runs)
        world.store.record(event.session_id, {"kind": "verdict", **shown})
