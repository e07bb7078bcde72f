"""Runs one gate: what all gates have in common. Waiting agents, cached results, repeated reasons, failures of our own."""

import asyncio
import contextlib
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from turngate.core.events.events import StopEvent
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import describe_exception
from turngate.core.verdict.decisions import UNCHANGED_RESULT
from turngate.gates.conversation import TranscriptUnreadable, describe_wait, measure_activity
from turngate.gates.gate import (
    CouldNotRun,
    Failed,
    Gate,
    GateContext,
    GateResult,
    InternalError,
    Passed,
    needs_record,
)
from turngate.gates.project_commands import ProjectCommands, ProjectUnreachable
from turngate.gates.project_files import FilesUnreadable
from turngate.gates.stored_state import GateState, gate_definition, state_path
from turngate.gates.tree_state import tree_state
from turngate.ports import Shell

NO_ANSWER = (FilesUnreadable, TranscriptUnreadable, ProjectUnreachable)  # the gate could not run
MAX_PASSED = 8  # trees of a session that are not checked again
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
        commands=ProjectCommands(shell, project, env, timeout),
        state=GateState(path),
        state_folder=state_folder,
        options=options,
        command=command,
        now=time.time(),
        base=base,
        environ=environ,
    )


async def run_gate(gate: Gate, context: GateContext) -> GateResult:
    """Answer for a stop. Only cancellation is raised."""
    try:
        if not gate.is_observer and (wait := describe_wait(context)):
            return Passed(f"not checked, because {wait}")
        return await _run_or_reuse(gate, context)
    except asyncio.CancelledError:
        raise
    except NO_ANSWER as error:
        return CouldNotRun(str(error))
    except Exception as error:  # noqa: BLE001 - a fault of our own must not block an agent forever
        return InternalError(f"internal error: {describe_exception(error)}")


def holds_for_tree(context: GateContext, result: GateResult) -> bool:
    """Return whether the result is a pass that holds while the project's files stay the same."""
    return context.state.holds and isinstance(result, Passed)


async def record_start(gate: Gate, context: GateContext) -> None:
    """Store what is there at the session's start, once in a session."""
    if gate.record and needs_record(gate, context.options) and context.state.start is None:
        context.state.start = dict(await gate.record(context))
        context.state.save()


async def _run_or_reuse(gate: Gate, context: GateContext) -> GateResult:
    state = context.state
    before = state.result
    activity = measure_activity(context.event) if gate.is_cached else None
    tree, tracked = await tree_state(context) or (None, None) if gate.is_cached else (None, None)
    if tree is not None and tree == state.tree:
        reused = _reusable(before, is_idle=activity is not None and activity == state.activity)
        if reused is not None:
            state.holds = True
            return _with_note_on_repetition(reused, before, UNCHANGED_RESULT)
    if tree is not None and tree in state.passed:  # back at a tree that has passed before
        note_before = state.passed[tree]
        return _keep(state, tree, activity, Passed(note_before if isinstance(note_before, str) else None))
    note = STILL if tree != state.tree else UNCHANGED_RESULT
    result = await _check(gate, context)
    _keep(state, tree, activity, result)
    if tracked and isinstance(result, Passed):
        with contextlib.suppress(ProjectUnreachable):  # it has passed; only the next stop checks it again
            await _keep_tree_after(context, tracked, result)
    return _with_note_on_repetition(result, before, note)


async def _keep_tree_after(context: GateContext, tracked: str, result: Passed) -> None:
    """Let the pass hold for the tree after it, if the command has written only files that git does not track.

    Otherwise a report that the command writes would make it run at every stop.
    """
    after = await tree_state(context)
    if after and after[0] != context.state.tree and after[1] == tracked:
        context.state.passed[after[0]] = result.note
        context.state.save()


def _keep(state: GateState, tree: str | None, activity: object, result: GateResult) -> GateResult:
    """Store a result with the tree that it is about."""
    state.tree, state.activity, state.result = tree, activity, _to_json(result)
    if tree is not None:
        state.passed.pop(tree, None)
        if isinstance(result, Passed):
            state.passed[tree] = result.note
            state.passed = dict(list(state.passed.items())[-MAX_PASSED:])
        else:  # its cause may be outside of the project's files, and then the others would fail too
            state.passed = {}
    state.holds = state.save() and tree is not None and state.result is not None
    return result


async def _check(gate: Gate, context: GateContext) -> GateResult:
    try:
        return await gate.check(context)
    except NO_ANSWER as error:
        return CouldNotRun(str(error))


def _reusable(record: dict[str, Any] | None, *, is_idle: bool) -> GateResult | None:
    """Return a stored result that still holds. A failure may have a cause outside of the project's files.

    So it holds only while it is known that neither the agent nor the user has done anything since: one of them may
    have installed what was missing.
    """
    match record:
        case {"outcome": "passed", "note": note}:
            return Passed(note)
        case {"outcome": "failed", "reason": str(reason), "continuations": continuations} if is_idle:
            return Failed(reason, continuations)
        case _:
            return None


def _to_json(result: GateResult) -> dict[str, Any] | None:
    match result:
        case Passed(note):
            return {"outcome": "passed", "note": note}
        case Failed(reason, continuations):
            return {"outcome": "failed", "reason": reason, "continuations": continuations}
        case CouldNotRun(why):
            return {"outcome": "could not run", "reason": why}
        case _:
            return None


def _with_note_on_repetition(result: GateResult, before: dict[str, Any] | None, note: str) -> GateResult:
    """Reasons never repeat word for word without saying so: an agent that reads the same again may give up."""
    match result:
        case Failed(reason, continuations) if before is not None and before.get("reason") == reason:
            return Failed(f"{reason}\n\n{note}", continuations)
        case CouldNotRun(why) if before is not None and before.get("reason") == why:
            return replace(result, repetition=note)
        case _:
            return result
