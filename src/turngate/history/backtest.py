"""Asks gates about stops of the past, as if the agent stopped again: from the transcript as it was then, without the files."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any, NoReturn

from turngate.core.events.events import StopEvent
from turngate.core.hooks.kinds import CommandHook, GateHook, Hook, label
from turngate.core.verdict.decisions import Block, Decision, Fault, Halt
from turngate.gates.arguments import GateCall, read_gate_hook
from turngate.gates.conversation import known_records
from turngate.gates.run_commands import ProjectUnreachable
from turngate.gates.run_gate import make_context, run_gate
from turngate.history.past_stops import PastDecision, PastSession, PastStop, read_past_session

NO_TREE = "it needs the files of that stop, which are not known"
NO_MODEL = "it asks a model"
NOT_READY_MADE = "only ready-made gates can be asked about the past"
WITH_EFFECTS = ("notify", "archive", "log")  # observers, which would act again
MAX_KNOWN_BYTES = 16 * 1024 * 1024  # of a transcript whose records are kept in memory
FOLDER = "/"  # in place of the project: no command runs there


class NoFiles:
    """A shell without a machine: the files of that time are not known."""

    async def run(self, *_: Any, **__: Any) -> NoReturn:
        raise ProjectUnreachable(NO_TREE)

    def slot(self, **_: Any) -> AbstractAsyncContextManager[None]:
        return nullcontext()


def judge_transcript(
    path: str, host: str, hooks: Sequence[Hook], project: str | None, since: float
) -> PastSession:
    """Ask the hooks at each stop of a transcript, if it is of this project; None: of any."""
    past = read_past_session(path, host)
    stops = [stop for stop in past.stops if stop.time is None or stop.time >= since]
    if not stops or (project is not None and not f"{past.folder}/".startswith(f"{project.rstrip('/')}/")):
        return replace(past, stops=())
    with tempfile.TemporaryDirectory(prefix="turngate-") as folder:
        copy = shutil.copyfile(path, os.path.join(folder, "transcript.jsonl"))
        judged = asyncio.run(_judge_stops(stops, copy, past.folder, hooks))
    return replace(past, stops=tuple(judged))


async def _judge_stops(
    stops: Sequence[PastStop], copy: str, folder: str, hooks: Sequence[Hook]
) -> list[PastStop]:
    """Cut the copy at each stop, from the last to the first, and ask the hooks."""
    judged = []
    known_records.set({} if stops[-1].end <= MAX_KNOWN_BYTES else None)
    for stop in reversed(stops):
        os.truncate(copy, stop.end)
        event = past_event(stop, copy, folder)
        judged.append(replace(stop, decisions=tuple([await _judge(hook, event) for hook in hooks])))
    return judged[::-1]


def past_event(stop: PastStop, transcript: str, folder: str) -> StopEvent:
    return StopEvent(
        session_id="", transcript_path=transcript, cwd=folder, last_assistant_message=stop.answer
    )


async def _judge(hook: Hook, event: StopEvent) -> PastDecision:
    name = label(hook)
    call = read_gate_hook(hook) if isinstance(hook, GateHook) else None
    if isinstance(hook, CommandHook):
        return PastDecision(name, "cannot say", NO_TREE)
    if not isinstance(call, GateCall) or call.gate.name in WITH_EFFECTS:
        return PastDecision(name, "cannot say", NO_MODEL if hook.asks == "model" else NOT_READY_MADE)
    if call.gate.asks_model or call.gate.is_cached:
        return PastDecision(name, "cannot say", NO_MODEL if call.gate.asks_model else NO_TREE)
    context = make_context(call.gate, event, NoFiles(), FOLDER, options=call.options, env={}, environ={})
    return as_past(name, await run_gate(call.gate, context))


def as_past(name: str, decision: Decision) -> PastDecision:
    match decision:
        case Block(reason) | Halt(reason):
            return PastDecision(name, "would block", reason or "")
        case Fault(error, kind=kind):
            return PastDecision(name, "would pass" if kind == "waiting" else "cannot say", error)
        case _:
            return PastDecision(name, "would pass")
