"""Runs one gate: what all gates have in common. Waiting agents, cached results, repeated reasons, failures of our own, the answer."""

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, assert_never

from turngate.core.constants import IN_GATE
from turngate.core.events.events import StopEvent
from turngate.core.hooks.kinds import CommandHook
from turngate.core.redaction import Redactor
from turngate.core.text import describe_exception, quote_name
from turngate.core.verdict.decisions import UNCHANGED_RESULT, Advise, Allow, Block, Decision, Fault, Halt
from turngate.gates.conversation import TranscriptUnreadable, describe_wait, measure_activity
from turngate.gates.gate import Gate, GateContext, needs_record
from turngate.gates.gate_lock import open_gate_lock
from turngate.gates.run_commands import FilesUnreadable, ProjectCommands, ProjectUnreachable
from turngate.gates.stored_state import GateState, gate_definition, state_path
from turngate.gates.tree_state import tree_state
from turngate.ports import Shell

NO_ANSWER = (FilesUnreadable, TranscriptUnreadable, ProjectUnreachable)  # the gate could not run
MAX_PASSED = 8  # trees of a session that are not checked again
FOR_SAME_GATE = "for the same gate, which another agent checked in this project"
STILL = "This is the same result as at the last stop, although files have changed since."


def make_context(
    gate: Gate,
    event: StopEvent,
    shell: Shell,
    project: str,
    *,
    options: Mapping[str, Any],
    command: CommandHook | None = None,
    timeout: float | None = None,  # None: no limit
    state_folder: str | None = None,  # None: nothing is kept
    base: str | None = None,  # see `GateContext.base`
    env: Mapping[str, str] = os.environ,  # of commands
    redactor: Redactor | None = None,  # of its secrets
    environ: Mapping[str, str] = os.environ,
) -> GateContext:
    """Return what one run of a gate is given; the state is that of this session, agent and gate."""
    path = None
    if state_folder is not None:
        agent = event.subagent.id if event.subagent else ""
        definition = gate_definition(gate.name, options, repr(command), project)
        path = state_path(state_folder, event.session_id, agent, definition)
    return GateContext(
        project=project,
        event=event,
        commands=ProjectCommands(shell, project, {**env, IN_GATE: "1"}, timeout, redactor),
        state=GateState(path),
        state_folder=state_folder,
        options=options,
        command=command,
        redactor=redactor,
        now=time.time(),
        base=base,
        environ=environ,
    )


async def run_gate(gate: Gate, context: GateContext, *, strict: bool = False) -> Decision:
    """Answer for a stop; `strict`: block if the gate could not run. Only cancellation is raised."""
    try:
        if not gate.is_observer and (wait := describe_wait(context)):
            return Fault(wait, "waiting", may_block=False)
        decision = await _run_or_reuse(gate, context, strict=strict)
    except asyncio.CancelledError:
        raise
    except NO_ANSWER as error:
        decision = _if_strict(gate, Fault(str(error)), strict=strict)
    except Exception as error:  # noqa: BLE001 - a fault of our own must not block an agent forever
        return Fault(f"internal error: {describe_exception(error)}", may_block=False)
    if isinstance(decision, Allow) and decision.reason:
        return Allow(notice=f"gate {quote_name(gate.name)}: {decision.reason}")
    return decision


def passed_tree(context: GateContext, decision: Decision) -> str | None:
    """Return the state of the tree for which the gate passes again, or None if that depends on more."""
    return context.state.tree if context.state.holds and isinstance(decision, Allow) else None


def answer_json(name: str, decision: Decision, *, for_turngate: bool = False) -> dict[str, Any]:
    """Return what a hook prints with this decision of a gate. `for_turngate`: with the keys that only our engine reads."""
    answer: dict[str, Any] = {"systemMessage": decision.notice} if decision.notice else {}
    extra: dict[str, Any] = {}
    match decision:
        case Allow() | Advise():
            pass
        case Block(reason):
            answer |= {"decision": "block", "reason": reason}
            extra = {"continuations": decision.continuations}
        case Halt(reason, waits=True) if not for_turngate:
            answer = {"systemMessage": reason}
        case Halt(reason):
            answer |= {"continue": False, **({"stopReason": reason} if reason else {})}
            extra = {"waits": decision.waits or None}
        case Fault(error):
            answer = {"systemMessage": f"{describe_fault(name, decision)}; it was NOT enforced"}
            extra = {"notEnforced": error, "waits": decision.kind == "waiting" or None}
        case _:
            assert_never(decision)
    return {**answer, **{key: value for key, value in extra.items() if for_turngate and value is not None}}


def describe_fault(name: str, fault: Fault) -> str:
    happened = "waits" if fault.kind == "waiting" else "could not run"
    return f"gate {quote_name(name)} {happened}: {fault.error}"


async def record_start(gate: Gate, context: GateContext) -> None:
    """Store what is there at the session's start, once in a session."""
    if gate.record and needs_record(gate, context.options) and context.state.start is None:
        context.state.start = dict(await gate.record(context))
        context.state.save()


async def _run_or_reuse(gate: Gate, context: GateContext, *, strict: bool) -> Decision:
    state = context.state
    before = state.result or {}
    activity = measure_activity(context.event) if gate.is_cached else None
    tree, tracked = await tree_state(context) or (None, None) if gate.is_cached else (None, None)
    note = STILL if tree != state.tree else UNCHANGED_RESULT
    decision = None
    if tree is not None and tree == state.tree:
        decision = _reusable(before, is_idle=activity is not None and activity == state.activity)
        state.holds = decision is not None
    if (
        decision is None and tree in state.passed and tree is not None
    ):  # back at a tree that has passed before
        reason = state.passed[tree]
        decision = _keep(state, tree, activity, Allow(reason if isinstance(reason, str) else None))
    if decision is None:
        tree, decision = await _check_alone(gate, context, tree)
        decision = _keep(state, tree if context.keeps_result else None, activity, decision)
        if tracked and isinstance(decision, Allow):
            with contextlib.suppress(ProjectUnreachable):  # it has passed; only the next stop checks it again
                await _keep_tree_after(context, tracked, decision)
    is_repeated = isinstance(decision, Block | Fault) and _reason(decision) == before.get("reason")
    decision = _if_strict(gate, decision, strict=strict)
    if is_repeated and isinstance(decision, Block):
        # An agent that reads the same again, without being told so, may give up.
        return replace(decision, reason=f"{decision.reason}\n\n{note}")
    return decision


def _reason(decision: Block | Fault) -> str:
    return decision.reason if isinstance(decision, Block) else decision.error


def _if_strict(gate: Gate, decision: Decision, *, strict: bool) -> Decision:
    if strict and isinstance(decision, Fault):
        return Block(describe_fault(gate.name, decision))
    return decision


async def _keep_tree_after(context: GateContext, tracked: str, result: Allow) -> None:
    """Let the pass hold for the tree after it, if the command has written only files that git does not track.

    Otherwise a report that the command writes would make it run at every stop.
    """
    after = await tree_state(context)
    if after and after[0] != context.state.tree and after[1] == tracked:
        context.state.passed[after[0]] = result.reason
        context.state.save()


def _keep(state: GateState, tree: str | None, activity: object, result: Decision) -> Decision:
    """Store a result with the tree that it is about."""
    state.tree, state.activity, state.result = tree, activity, _to_json(result)
    if tree is not None:
        state.passed.pop(tree, None)
        if isinstance(result, Allow):
            state.passed[tree] = result.reason
            state.passed = dict(list(state.passed.items())[-MAX_PASSED:])
        else:  # its cause may be outside of the project's files, and then the others would fail too
            state.passed = {}
    state.holds = state.save() and tree is not None and state.result is not None
    return result


async def _check_alone(gate: Gate, context: GateContext, tree: str | None) -> tuple[str | None, Decision]:
    """Check while no other agent checks this gate in this project. Return the result and the tree that it is about.

    After a wait, the result of the other one counts if the tree is the same, unless it depends on its session.
    """
    if not gate.is_cached:
        return tree, await _check(gate, context)
    with open_gate_lock(context) as lock:
        if not await lock.acquire(context.commands):
            return tree, Fault(f"its time was up after it waited {lock.waited:.3g} s {FOR_SAME_GATE}")
        if lock.waited:
            tree = (await tree_state(context) or (None, None))[0]
            is_same = tree is not None and tree == lock.shared.get("tree")
            if is_same and (result := _reusable(lock.shared.get("result") or {}, is_idle=True)):
                return tree, result
        decision = await _check(gate, context)
        if context.keeps_result and not needs_record(gate, context.options):
            lock.share({"tree": tree, "result": _to_json(decision)})
    if lock.waited and isinstance(decision, Fault) and context.commands.is_out_of_time:
        error = f"{decision.error}, of which it waited {lock.waited:.3g} s {FOR_SAME_GATE}"
        return tree, replace(decision, error=error)
    return tree, decision


async def _check(gate: Gate, context: GateContext) -> Decision:
    """Ask the gate. What it answers is shown, sent to a model and stored: secrets are hidden here."""
    try:
        decision = await gate.check(context)
    except NO_ANSWER as error:
        decision = Fault(str(error))
    return context.redactor.decision(decision) if context.redactor else decision


def _reusable(record: Mapping[str, Any], *, is_idle: bool) -> Decision | None:
    """Return a stored result that still holds. A failure may have a cause outside of the project's files.

    So it holds only while it is known that neither the agent nor the user has done anything since: one of them may
    have installed what was missing.
    """
    match record:
        case {"outcome": "passed", "note": note}:
            return Allow(note)
        case {"outcome": "failed", "reason": str(reason), "continuations": continuations} if is_idle:
            return Block(reason, continuations=continuations)
        case _:
            return None


def _to_json(result: Decision) -> dict[str, Any] | None:
    match result:
        case Allow(note):
            return {"outcome": "passed", "note": note}
        case Block(reason):
            return {"outcome": "failed", "reason": reason, "continuations": result.continuations}
        case Fault(why):
            return {"outcome": "could not run", "reason": why}
        case _:
            return None
