"""Kills workers at random moments, again and again, until all of their subagents are done."""

import mmap
import os
import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tests.support.crash.parents import ParentSpec
from tests.support.crash.step_kills import expect_success
from tests.support.crash.totals import Totals, check_parent, check_subagents, count_recoveries
from tests.support.crash.workers import fork_worker, resume_parent, run_subagents, wait_for_worker
from turngate.core.conversation.subagent_run import SubagentRun

FOREGROUND_EVERY = 3
MAX_FAILED_WORKERS = 20
MIN_LIFE_S, MAX_LIFE_S = 0.03, 0.6
POLL_INTERVAL_S = 0.002

Progress = Callable[[Totals], None]


def kill_at_random(folder: str, runs: int, *, batch: int, progress: Progress, parents: int = 2) -> Totals:
    """Run subagents in batches; the parents of a batch share a registry and a project."""
    totals, started, number = Totals(), time.monotonic(), 0
    while totals.runs < runs:
        specs = _batch(folder, number, min(batch, runs - totals.runs), parents)
        part = _run_batch(specs, lambda now: progress(totals + now))  # noqa: B023 - called before the next round
        totals, number = totals + part, number + 1
        totals.recoveries = count_recoveries(specs[0])
        totals.seconds = time.monotonic() - started
        progress(totals)
    return totals


def _batch(folder: str, number: int, size: int, parents: int) -> list[ParentSpec]:
    share = -(-size // parents)
    sizes = [min(share, size - index * share) for index in range(parents)]
    return [
        ParentSpec(folder, f"p{number}-{index}", size, foreground_every=FOREGROUND_EVERY).create()
        for index, size in enumerate(sizes)
        if size > 0
    ]


def _run_batch(specs: Sequence[ParentSpec], progress: Progress) -> Totals:
    totals = Totals()
    _kill_until_done(specs, totals, progress)
    for spec in specs:
        check_subagents(spec, totals)
        totals.kills += _kill_after_a_while(fork_worker(resume_parent, spec))
        expect_success(fork_worker(resume_parent, spec), totals)
        check_parent(spec, totals)
    return totals


def _kill_after_a_while(pid: int) -> bool:
    time.sleep(random.uniform(MIN_LIFE_S, MAX_LIFE_S))
    os.kill(pid, signal.SIGKILL)  # the pid stays ours until we wait for it
    return wait_for_worker(pid) == -signal.SIGKILL


@dataclass
class _Lane:
    """The workers of one parent, one after another.

    A worker that finishes no run lives twice as long the next time, so the work ends on any machine.
    """

    spec: ParentSpec
    pid: int = 0
    deadline: float = 0.0
    max_life: float = MAX_LIFE_S
    finished: mmap.mmap = field(default_factory=lambda: mmap.mmap(-1, 1))  # shared with the worker

    def start(self) -> None:
        self.finished[0] = 0
        self.pid = fork_worker(run_subagents, self.spec, on_step=self._on_step)
        self.deadline = time.monotonic() + random.uniform(MIN_LIFE_S, self.max_life)

    def _on_step(self, name: str, _: SubagentRun) -> None:
        if name == "done":
            self.finished[0] = 1

    def poll(self) -> int | None:
        """Kill the worker if it is due. Return its exit code, or None while it runs."""
        if time.monotonic() > self.deadline:
            os.kill(self.pid, signal.SIGKILL)
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if not pid:
            return None
        self.max_life = MAX_LIFE_S if self.finished[0] else 2 * self.max_life
        return os.waitstatus_to_exitcode(status)


def _kill_until_done(specs: Sequence[ParentSpec], totals: Totals, progress: Progress) -> None:
    lanes = [_Lane(spec) for spec in specs]
    for lane in lanes:
        lane.start()
    while lanes:
        time.sleep(POLL_INTERVAL_S)
        progress(totals)
        for lane in list(lanes):
            code = lane.poll()
            if code is None:
                continue
            if code == -signal.SIGKILL:
                totals.kills += 1
            elif code:
                totals.wrong.append(f"a worker ended with {code}")
            if code and len(totals.wrong) < MAX_FAILED_WORKERS:
                lane.start()
            else:
                lanes.remove(lane)
