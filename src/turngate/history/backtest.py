"""Asks gates about stops of the past, as if the agent stopped again: from the transcript as it was then, without the files."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Literal, NamedTuple

from turngate._frozen_dataclass import frozen
from turngate.core.answers.report_types import Exited
from turngate.core.events.events import StopEvent
from turngate.core.hooks.kinds import CommandHook, GateHook, Hook, label
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault, Halt
from turngate.gates.arguments import GateCall, read_gate_hook
from turngate.gates.conversation import known_records
from turngate.gates.run_commands import ProjectUnreachable
from turngate.gates.run_gate import make_context, run_gate
from turngate.history.past_stops import PastSession, PastStop, read_past_session
from turngate.ports import HookRunContext

Outcome = Literal["would block", "would pass", "cannot say"]

NO_TREE = "it needs the files of that stop, which are not known"
NO_MODEL = "it asks a model"
NOT_READY_MADE = "only ready-made gates can be asked about the past"
WITH_EFFECTS = ("notify", "archive", "log")  # observers, which would act again
MAX_KNOWN_BYTES = 16 * 1024 * 1024  # of a transcript whose records are kept in memory
FOLDER = "/"  # in place of the project: no command runs there


class PastDecision(NamedTuple):
    """What a gate would have decided. `reason`: of a block, or why nothing can be said."""

    gate: str
    outcome: Outcome
    reason: str = ""


@frozen
class JudgedSession:
    """A transcript with what each gate would have decided at each of its stops; `error`: why it could not be read."""

    path: str
    host: str
    folder: str = ""
    stops: tuple[tuple[PastStop, tuple[PastDecision, ...]], ...] = ()
    error: str = ""


class NoFiles:
    """A shell without a machine: the files of that time are not known."""

    async def run(  # the parameters are those of `Shell`
        self,
        hook: CommandHook,  # noqa: ARG002
        *,
        cwd: str,  # noqa: ARG002
        env: Mapping[str, str],  # noqa: ARG002
        stdin: bytes,  # noqa: ARG002
        live: HookRunContext,  # noqa: ARG002
    ) -> Exited:
        raise ProjectUnreachable(NO_TREE)

    def slot(self, *, background: bool = False) -> AbstractAsyncContextManager[None]:  # noqa: ARG002
        return nullcontext()


def judge_transcript(
    path: str, host: str, hooks: Sequence[Hook], project: str | None, since: float
) -> JudgedSession:
    """Ask the hooks at each stop of a transcript, if it is of this project; None: of any."""
    try:
        past = read_past_session(path, host)
    except OSError as error:
        return JudgedSession(path, host, error=error.strerror or str(error))
    if past is None:
        return JudgedSession(path, host, error="the format is not known")
    stops = [stop for stop in past.stops if stop.time is None or stop.time >= since]
    if not stops or (project is not None and not _is_below(past.folder, project)):
        return JudgedSession(path, past.host, past.folder)
    with tempfile.TemporaryDirectory(prefix="turngate-") as folder:
        copy = os.path.join(folder, "transcript.jsonl")
        shutil.copyfile(path, copy)
        judged = asyncio.run(_judge_stops(past, stops, copy, hooks))
    return JudgedSession(path, past.host, past.folder, tuple(judged))


def _is_below(folder: str, project: str) -> bool:
    return f"{folder}/".startswith(f"{project.rstrip('/')}/")


async def _judge_stops(
    past: PastSession, stops: Sequence[PastStop], copy: str, hooks: Sequence[Hook]
) -> list[tuple[PastStop, tuple[PastDecision, ...]]]:
    """Cut the copy at each stop, from the last to the first, and ask the hooks."""
    judged = []
    known_records.set({} if stops[-1].end <= MAX_KNOWN_BYTES else None)
    for stop in reversed(stops):
        os.truncate(copy, stop.end)
        event = past_event(stop, copy, past.folder)
        judged.append((stop, tuple([await _judge(hook, event) for hook in hooks])))
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
    if call.gate.asks_model:
        return PastDecision(name, "cannot say", NO_MODEL)
    if call.gate.is_cached:
        return PastDecision(name, "cannot say", NO_TREE)
    context = make_context(call.gate, event, NoFiles(), FOLDER, options=call.options, env={}, environ={})
    return as_past(name, await run_gate(call.gate, context))


def as_past(name: str, decision: Decision) -> PastDecision:
    match decision:
        case Block(reason):
            return PastDecision(name, "would block", reason)
        case Halt(reason):
            return PastDecision(name, "would block", reason or "")
        case Allow():
            return PastDecision(name, "would pass")
        case Fault(error, kind="waiting"):
            return PastDecision(name, "would pass", error)
        case Fault(error):
            return PastDecision(name, "cannot say", error)
        case _:
            return PastDecision(name, "would pass")


def changed_decisions(
    now: Sequence[PastDecision], before: Sequence[PastDecision]
) -> tuple[list[PastDecision], list[PastDecision]]:
    """Return the decisions that block now and did not with the other settings, and those for which it is the other way round."""
    blocks, blocked = ([each for each in found if each.outcome == "would block"] for found in (now, before))
    names, names_before = ({each.gate for each in found} for found in (blocks, blocked))
    return (
        [each for each in blocks if each.gate not in names_before],
        [each for each in blocked if each.gate not in names],
    )
