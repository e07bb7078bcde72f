"""Run the hooks of one event: plan → run → conclude. Decisions are core's, the outside is in `World`."""

import asyncio
import logging
import os
import time
from contextlib import AsyncExitStack, nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

from turngate.aio.threads import CallbackCancelledItself, current_task_cancelled, run_in_thread
from turngate.core.answers.interpret import Interpretation, interpret
from turngate.core.answers.report_types import Detached, HookFailed, Report, Skipped, TimedOut
from turngate.core.constants import STOPS_OF_START
from turngate.core.events.events import Event, SessionStart, StopEvent, StopOutcome
from turngate.core.hooks.kinds import CommandHook, GateHook, label
from turngate.core.hooks.selection import Locate, Plan, plan
from turngate.core.settings import Rule, Settings
from turngate.core.text import describe_exception, truncate
from turngate.core.verdict.decisions import Fault, oversized_texts, truncate_decision
from turngate.core.verdict.hook_run import HookRun, outcome
from turngate.core.verdict.json_output import MAX_ANSWER_CHARS, agent_json, hook_json, run_json, verdict_json
from turngate.core.verdict.loop_guard import EndTurn, LoopGuard
from turngate.core.verdict.verdict import (
    Stop,
    Verdict,
    blocking_hooks,
    conclude,
    stops_sequence,
    unenforced_warnings,
)
from turngate.ports import HookRunContext, Store, World
from turngate.project.files import Files, MachineUnreachable
from turngate.runners import run_hook
from turngate.state.paths import state_folder
from turngate.state.process_stat import this_process
from turngate.tracing import open_hook_span

LOG = logging.getLogger("turngate")
START_RECORD_S = 0.1  # a hook that runs longer has a record of its start
COPY_TIMEOUT_S = 10.0  # of a long text to another machine
_USES_SHELL = (CommandHook, GateHook)  # they wait for a slot of the shell
_RUN_LAST = frozenset({"notify"})  # gates that are told what the others have decided
IN_HOOK_REASON = "turngate was started from a hook, so no hooks run"


async def ask_hooks(
    event: Event, settings: Settings, world: World, guard: LoopGuard | None = None
) -> Verdict:
    """Run every hook that is configured for this event once, and return the verdict.

    `guard` is the loop guard of the turn; it tells the gates that run last whether the turn ends.
    """
    planned = await world.with_files(_plan, event, settings)
    if not planned.ask and not planned.skip:
        return Stop()
    if world.in_hook:
        skipped = Skipped(IN_HOOK_REASON, on_purpose=True)
        return Stop(tuple(_hook_run(rule, skipped, settings) for rule in planned.ask))
    begun = time.monotonic()
    tree = await _record_tree(event, settings, world)
    if world.time_limit is not None:  # of a host, which ends this process
        world.time_limit -= time.monotonic() - begun
    last = tuple(
        rule for rule in planned.ask if isinstance(rule.hook, GateHook) and rule.hook.gate in _RUN_LAST
    )
    runs = await _run_all(tuple(rule for rule in planned.ask if rule not in last), event, settings, world)
    if planned.skip:
        runs += tuple(_hook_run(rule, skipped, settings) for rule, skipped in planned.skip)
    verdict = conclude(runs, settings.dialect)
    if last:
        known = replace(event, outcome=_outcome(verdict, guard)) if isinstance(event, StopEvent) else event
        verdict = conclude((*runs, *await _run_all(last, known, settings, world)), settings.dialect)
        runs = verdict.runs
    if verdict.unenforced and world.logs:
        for text in unenforced_warnings(runs, settings.dialect):
            LOG.warning("%s", text)
    _record_verdict(verdict, event, settings, world, tree)
    return verdict


async def _record_tree(event: Event, settings: Settings, world: World) -> dict[str, Any] | None:
    """Keep the files of a stop, or of the session's start, if the user wants it, and return what the journal says. A failure is only recorded."""
    is_wanted = settings.record_trees and world.records_trees and isinstance(event, StopEvent | SessionStart)
    if not (is_wanted and world.store):
        return None
    # lazy: few users record trees
    from turngate.gates.recorded_trees import RECORD_TIMEOUT_S, NoTree, record_tree  # noqa: PLC0415

    place = world.project, state_folder(world.own_environ), event.session_id
    try:
        if world.machine:
            raise NoTree("the project is on another machine")  # noqa: TRY301 - as what `record_tree` raises
        async with asyncio.timeout(RECORD_TIMEOUT_S):
            is_start = isinstance(event, SessionStart)
            ref = await run_in_thread(lambda: record_tree(*place, is_start=is_start))
    except Exception as error:  # noqa: BLE001 - see above
        why = "it took too long" if isinstance(error, TimeoutError) else describe_exception(error)
        why = str(error) if isinstance(error, NoTree) else why
        text = f"the files are not recorded: {why}"
        world.store.record(event.session_id, {"kind": "notice", "event": event.name, "text": text})
        return None
    return _tree_json(event, ref) if isinstance(event, StopEvent) else None


def _tree_json(event: StopEvent, ref: str) -> dict[str, Any]:
    path, agent = event.stopping_transcript, event.subagent
    size = os.path.getsize(path) if os.path.isfile(path) else 0
    of_agent = {"agent_type": agent.type, "agent_outcome": agent.outcome} if agent else {}
    return {"ref": ref, "transcript": path, "bytes": size, "answer": event.last_text, **of_agent}


def _outcome(verdict: Verdict, guard: LoopGuard | None) -> StopOutcome:
    if isinstance(verdict, Stop):
        return "done"
    step = guard and guard.after(verdict)
    if isinstance(step, EndTurn):
        return "done" if step.ended_by == "allowed" else "gave-up"
    return "blocked"


def _plan(event: Event, settings: Settings, files: Files) -> Plan:
    """Return which rules run; paths that conditions name are looked up."""
    try:
        return _plan_with(files.snapshot().locate, event, settings)
    except MachineUnreachable:
        return _plan_with(None, event, _without_unknown_conditions(settings, event, files))


def _plan_with(locate: Locate | None, event: Event, settings: Settings) -> Plan:
    """Return which rules run; at the start of an agent, also the gates of its stop that record what is there."""
    planned = plan(settings, event, locate)
    stops = STOPS_OF_START.get(event.name, ())
    gates = [rule for rule in settings.rules if rule.event in stops and isinstance(rule.hook, GateHook)]
    if not gates:
        return planned
    from turngate.runners.gate import recording_rules  # noqa: PLC0415  # lazy: few projects have a gate

    recording = replace(settings, rules=recording_rules(gates, event.name))
    return Plan((*planned.ask, *plan(recording, event, locate).ask), planned.skip)


def _without_unknown_conditions(settings: Settings, event: Event, files: Files) -> Settings:
    """Leave out the conditions about paths of a machine that does not answer, so that their hooks run and report that."""
    rules = []
    for rule in settings.rules:
        try:
            plan(replace(settings, rules=(rule,)), event, files.locate)
            rules.append(rule)
        except MachineUnreachable:
            rules.append(replace(rule, hook=replace(rule.hook, condition=None)))
    return replace(settings, rules=tuple(rules))


async def _run_all(
    rules: tuple[Rule, ...], event: Event, settings: Settings, world: World
) -> tuple[HookRun, ...]:
    """Return all runs in configured order, whichever way they are started."""
    order = settings.order_of(event.name)
    begun = time.monotonic()
    if order == "parallel" and len(rules) > 1:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(_run_in_slot(rule, event, settings, world, begun)) for rule in rules]
        ended = [task.result() for task in tasks]
        by_end = sorted(range(len(ended)), key=lambda place: ended[place][1])
        rank = {place: number for number, place in enumerate(by_end)}
        return tuple(replace(run, finished=rank[place]) for place, (run, _) in enumerate(ended))
    runs: list[HookRun] = []
    for place, rule in enumerate(rules):
        run, _ = await _run_in_slot(rule, event, settings, world, begun)
        runs.append(replace(run, finished=place) if place else run)
        if order == "first_block" and run.mode == "gate" and stops_sequence(run, settings.dialect):
            skipped = Skipped("an earlier hook blocked", on_purpose=True)
            return (*runs, *(_hook_run(later, skipped, settings) for later in rules[place + 1 :]))
    return tuple(runs)


async def _run_in_slot(
    rule: Rule, event: Event, settings: Settings, world: World, begun: float
) -> tuple[HookRun, float]:
    """Run one hook in a span of the user's trace, a command as soon as the shell has a slot: the wait does not count against its timeout."""
    name, redactor = label(rule.hook), world.redactor({})
    name = redactor.text(name) if redactor else name
    with open_hook_span(event.name, event.session_id, name) as set_outcome:
        async with AsyncExitStack() as stack:
            try:
                if isinstance(rule.hook, _USES_SHELL) and not rule.hook.detached:
                    await stack.enter_async_context(world.shell.slot())
            except Exception as error:  # noqa: BLE001 - a user's shell is foreign code
                failed = HookFailed(f"the shell gave it no slot: {describe_exception(error)}")
                run, ended = _hook_run(rule, failed, settings), time.monotonic()
            else:
                run, ended = await _run(rule, event, settings, world, begun)
        set_outcome(outcome(run))
    return run, ended


async def _run(
    rule: Rule, event: Event, settings: Settings, world: World, begun: float
) -> tuple[HookRun, float]:
    """Run one hook under its timeout. Return the run and the time of its end; a hook's failure is not raised."""
    started = time.monotonic()
    limit = settings.timeout_of(rule)
    for budget in (settings.stop_budget_of(rule), world.time_limit):
        limit = limit if budget is None else min(limit, begun + budget - started)
    live = HookRunContext()
    if world.watch:
        world.watch(rule, None)
    if rule.hook.detached:
        report = _detach(rule, event, settings, world, limit)
    else:
        try:
            report = await _report(rule, event, settings, world, limit, live)
        except asyncio.CancelledError:
            skipped, seconds = Skipped("", on_purpose=True), time.monotonic() - started
            run = _hook_run(rule, skipped, settings, live, seconds=seconds, timeout=limit)
            _record_run("hook", run, event, world, live, outcome="interrupted")
            raise
    ended = time.monotonic()
    if isinstance(report, TimedOut) and limit < settings.timeout_of(rule):
        report = replace(report, of_budget=True)
    run = _hook_run(rule, report, settings, live, seconds=ended - started, timeout=limit)
    if texts := oversized_texts(run.decision, settings.dialect):
        saved_as = {text: await _save_text(text, event, world) for text in texts}
        run = replace(run, decision=truncate_decision(run.decision, settings.dialect, saved_as))
    if world.watch:
        world.watch(rule, run)
    _record_run("hook", run, event, world, live)
    return run, ended


async def _report(
    rule: Rule, event: Event, settings: Settings, world: World, limit: float, live: HookRunContext
) -> Report:
    """Run the hook inside the one timeout and the one `except` around foreign code."""
    if limit <= 0:
        return Skipped("the stop budget was used up by earlier hooks")
    report: Report
    loop = asyncio.get_running_loop()
    starting = None
    world.running[live] = rule
    if world.store:
        starting = loop.call_later(START_RECORD_S, _record_start, rule, event, limit, world.store, live)
    try:
        async with asyncio.timeout(limit) as timer:
            live.deadline, live.limit = timer.when(), limit
            if isinstance(rule.hook, CommandHook):
                live.on_exit = partial(_disarm, timer)
            report = await run_hook(rule, event, settings, world, live)
    except CallbackCancelledItself:
        report = HookFailed("it cancelled itself")
    except asyncio.CancelledError:
        if current_task_cancelled():
            raise
        report = HookFailed("it cancelled itself")
    except (KeyboardInterrupt, GeneratorExit):
        raise
    except BaseException as error:  # foreign code: its failure is a value
        LOG.debug("hook %s raised", label(rule.hook), exc_info=error)
        report = HookFailed(describe_exception(error))
    finally:
        del world.running[live]
        if starting:
            starting.cancel()
    # Code that blocks the event loop also delays the timer, so compare with the clock.
    is_command = isinstance(rule.hook, CommandHook)
    late = not is_command and (timer.when() or 0.0) < loop.time()
    if timer.expired() or late:
        return live.ended or TimedOut(limit, live.stdout.text(), live.stderr.text())
    return report


def _disarm(timer: asyncio.Timeout) -> None:
    """Stop the timeout when the command exits; reading from pipes that its child processes hold has its own limit."""
    if not timer.expired():
        timer.reschedule(None)


def _detach(rule: Rule, event: Event, settings: Settings, world: World, limit: float) -> Report:
    """Start a hook in the background; its run is only recorded."""
    uses_shell = isinstance(rule.hook, _USES_SHELL)

    async def run_detached() -> None:
        live, ended, started = HookRunContext(), True, time.monotonic()
        try:
            async with world.shell.slot(background=True) if uses_shell else nullcontext():
                report = await _report(rule, event, settings, world, limit, live)
        except asyncio.CancelledError:
            ended, report = False, Skipped("it was still running in the background and was ended")
        except Exception as error:  # noqa: BLE001 - a user's shell is foreign code
            report = HookFailed(f"the shell gave it no slot: {describe_exception(error)}")
        run = _hook_run(rule, report, settings, live, seconds=time.monotonic() - started, timeout=limit)
        if ended and world.on_background_end:
            world.on_background_end(event, run)
        _record_run("background", run, event, world, live)

    task = asyncio.create_task(run_detached(), name=label(rule.hook))
    for tasks in (world.background, world.awaited) if rule.hook.rewake else (world.background,):
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    return Detached()


def _hook_run(
    rule: Rule,
    report: Report,
    settings: Settings,
    live: HookRunContext | None = None,
    *,
    seconds: float = 0.0,
    timeout: float | None = None,
) -> HookRun:
    try:
        decision, answer = interpret(report, rule, settings.dialect)
    except Exception as error:  # noqa: BLE001 - the object that a callback returned is foreign code too
        decision, answer = Interpretation(Fault(f"its answer cannot be read: {describe_exception(error)}"))
    if live and live.warnings:
        decision = replace(decision, warnings=(*decision.warnings, *live.warnings))
    if live and live.redactor and live.redactor.is_needed(report, decision):
        report, decision = live.redactor.report(report), live.redactor.decision(decision)
        answer = live.redactor.answer(answer) if answer else None
    return HookRun(
        rule,
        report,
        decision,
        seconds=seconds,
        timeout=settings.timeout_of(rule) if timeout is None else timeout,
        mode=settings.mode_of(rule),
        evaluation=live.evaluation if live else None,
        answer=answer,
    )


async def _save_text(text: str, event: Event, world: World) -> str | None:
    """Save a text that is too long for a model. Return its path on the machine of the agent's tools, or None."""
    path = await run_in_thread(world.store.keep, event.session_id, text) if world.store else None
    if path is None or world.copies is None:
        return path
    try:
        async with asyncio.timeout(COPY_TIMEOUT_S):
            return await world.copies.copy(path)
    except OSError:
        return None


def _record_start(rule: Rule, event: Event, limit: float, store: Store, live: HookRunContext) -> None:
    """Record that a hook runs. If no record of its end follows, this process was killed."""
    live.run_id = os.urandom(8).hex()
    entry = {"hook": hook_json(rule.hook, limit), "run": live.run_id, "process": this_process()}
    store.record(event.session_id, {"kind": "start", "event": event.name, **agent_json(event), **entry})


def _record_run(
    kind: str, run: HookRun, event: Event, world: World, live: HookRunContext, **changed: str
) -> None:
    if world.store:
        entry = {"kind": kind, "event": event.name, **agent_json(event), **run_json(run), **changed}
        world.store.record(event.session_id, {**entry, "run": live.run_id} if live.run_id else entry)


def _record_verdict(
    verdict: Verdict, event: Event, settings: Settings, world: World, tree: dict[str, Any] | None
) -> None:
    if world.store:
        entry = verdict_json(verdict, event.name, settings)
        del entry["context"], entry["not_loaded"]  # the records of the hooks have the context
        if entry["permission"] is None:
            del entry["permission"]
        entry["runs"] = len(verdict.runs)
        if names := blocking_hooks(verdict, settings.dialect):
            entry["blocked_by"] = names
        if tree:
            entry["tree"] = {**tree, "outcomes": {label(run.rule.hook): outcome(run) for run in verdict.runs}}
        if isinstance(event, StopEvent) and (answer := truncate(event.last_text, MAX_ANSWER_CHARS)):
            redactor = world.redactor({})
            entry["answer"] = redactor.truncated(answer) if redactor else answer
        host = {"host": world.host} if world.host else {}
        world.store.record(event.session_id, {"kind": "verdict", **host, **agent_json(event), **entry})
