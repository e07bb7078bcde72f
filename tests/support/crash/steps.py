"""The steps of a subagent's run at which a worker can be killed, and the callback that kills it there."""

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from tests.support.crash.parents import ParentSpec, append_line
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.registry import Registry
from turngate.subagents.supervisor import Supervisor

START_STEPS = ("registered", "started", "recovered")
COMPLETION_STEPS = (
    "worked",
    "ended",
    "checking",
    "checked",
    "final",
    "stop_notified",
    "announced",
    "end_notified",
    "done",
)
RESTART_STEPS = ("redirect_requested", "aborted", "cleared", "synced", "sent", "replaced")
UNSENT_STEPS = ("redirect_cancelled",)  # the new prompt could not be sent
PARENT_STEPS = ("taking", "taken")  # before and after the registry records that the parent took a report
STEPS = (*START_STEPS, *COMPLETION_STEPS, *RESTART_STEPS, *UNSENT_STEPS, *PARENT_STEPS)
COUNTED_PER_CHAIN = frozenset((*RESTART_STEPS, *COMPLETION_STEPS[:4]))
FAILING_STEPS = {"redirect_cancelled": "cleared", "lost": "checking"}  # reached only if the other step raises

StepCallback = Callable[[str, SubagentRun], None]


class KillPoint(NamedTuple):
    step: str
    occurrence: int = 1


def kill_sequences(step: str) -> list[list[KillPoint]]:
    """Return the sequences of kills that cover a step: first time, second time, three workers in a row."""
    if step in FAILING_STEPS:  # the worker fails every run that reaches the step, so only the first counts
        return [[KillPoint(step)], [KillPoint(step)] * 3]
    # Several runs must be open before a worker can recover them.
    before = [KillPoint("registered", 4)] if step == "recovered" else []
    return [[*before, KillPoint(step)], [*before, KillPoint(step, 2)], [*before, *[KillPoint(step)] * 3]]


def step_callback(spec: ParentSpec, kill: KillPoint | None = None) -> StepCallback:
    """Return a callback that logs recoveries and kills this process at the kill point.

    Steps that one chain passes more than once are counted for each chain.
    """
    counts: Counter[tuple[str, str]] = Counter()

    def on_step(name: str, run: SubagentRun) -> None:
        if name == "recovered":
            append_line(spec.recovery_log, run.id)
        if kill and name == kill.step:
            key = (name, run.chain if name in COUNTED_PER_CHAIN else "")
            counts[key] += 1
            if counts[key] == kill.occurrence:
                append_line(spec.death_log, str(time.time()))
                die()
        if kill and name == FAILING_STEPS.get(kill.step):
            raise OSError("chaos")

    if kill:
        _patch_for(kill)
    return on_step


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)  # the signal may arrive a moment later


def _patch_for(kill: KillPoint) -> None:
    """Kill at points that are not steps of the lifecycle. The process is a fork, so the patch dies with it."""
    if kill.step in PARENT_STEPS:
        _die_while_parent_takes(kill)
    elif kill.step == "killed":
        _die_after_kill_is_recorded()
    elif kill.step == "kept":
        _die_before_hand_over_is_recorded()


def _die_while_parent_takes(kill: KillPoint) -> None:
    take, calls = Registry.mark_delivered, Counter[str]()

    def die_in_mark_delivered(self: Registry, run: str) -> SubagentRun | None:
        calls["take"] += 1
        if calls["take"] == kill.occurrence and kill.step == "taking":
            die()
        taken = take(self, run)
        if calls["take"] == kill.occurrence:
            die()
        return taken

    Registry.mark_delivered = die_in_mark_delivered  # type: ignore[method-assign]


def _die_after_kill_is_recorded() -> None:
    """The registry has the kill; no handler has been called."""
    kill = Registry.kill

    def die_in_kill(self: Registry, scope: str | tuple[str, str], reason: str) -> list[SubagentRun]:
        kill(self, scope, reason)
        die()
        raise AssertionError("the process is dead")

    Registry.kill = die_in_kill  # type: ignore[method-assign]


def _die_before_hand_over_is_recorded() -> None:
    """The parent's transcript has the tool result; the registry does not know it yet."""

    def die_in_result_delivered(self: Supervisor, chain: str) -> None:
        die()

    Supervisor.result_delivered = die_in_result_delivered  # type: ignore[method-assign]
