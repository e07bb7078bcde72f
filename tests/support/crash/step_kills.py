"""Kills workers at named steps, one after another; then one worker finishes."""

import signal
import time
from collections.abc import Sequence

from tests.support.crash.parents import ParentSpec
from tests.support.crash.steps import PARENT_STEPS, KillPoint
from tests.support.crash.totals import Totals, check_parent, check_subagents, count_recoveries
from tests.support.crash.workers import UNLIMITED, fork_worker, resume_parent, run_subagents, wait_for_worker
from turngate.subagents.limits import SubagentLimits

SUBAGENTS = 5
TWO_SLOTS = SubagentLimits(recoveries=UNLIMITED.recoveries, rapid=UNLIMITED.rapid, at_once=2)


def kill_at_steps(folder: str, kills: Sequence[KillPoint], *, command_gate: bool = False) -> Totals:
    started, totals = time.monotonic(), Totals()
    spec = ParentSpec(folder, "parent", SUBAGENTS, command_gate).create()
    for kill in kills:
        if kill.step not in PARENT_STEPS:
            expect_death(fork_worker(run_subagents, spec, kill, TWO_SLOTS), kill, totals)
    expect_success(fork_worker(run_subagents, spec, None, TWO_SLOTS), totals)
    check_subagents(spec, totals)
    for kill in kills:
        if kill.step in PARENT_STEPS:
            expect_death(fork_worker(resume_parent, spec, kill), kill, totals)
    expect_success(fork_worker(resume_parent, spec), totals)
    check_parent(spec, totals)
    totals.recoveries = count_recoveries(spec)
    totals.seconds = time.monotonic() - started
    return totals


def expect_death(pid: int, kill: KillPoint, totals: Totals) -> None:
    code = wait_for_worker(pid)
    if code == -signal.SIGKILL:
        totals.kills += 1
    else:
        totals.wrong.append(f"the worker did not reach {kill}: exit code {code}")


def expect_success(pid: int, totals: Totals) -> None:
    code = wait_for_worker(pid)
    if code != 0:
        totals.wrong.append(f"a worker that was not killed ended with {code}")
