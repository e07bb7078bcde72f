"""Two processes share a registry; the first is killed, and the second finishes the work of both."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.support.crash.parents import ParentSpec, read_lines, runs_of
from tests.support.crash.step_kills import expect_death, expect_success
from tests.support.crash.steps import KillPoint, StepCallback
from tests.support.crash.totals import Totals, check_parent, check_subagents
from tests.support.crash.workers import (
    UNLIMITED,
    EchoModel,
    create_session,
    fork_worker,
    resume_parent,
    run_subagents,
    start_subagent,
)
from tests.support.timeouts import HANG_TIMEOUT_S

ANSWER_S = 0.05
DEATH = KillPoint("replaced", 2)


@dataclass(frozen=True)
class Takeover:
    by_both: int  # subagents of one process that the other worked on while both lived
    taken_over: int  # model requests of the survivor for subagents of the dead process
    seconds: float  # from the death until the last announcement for the dead process


def take_over(folder: str, subagents: int, totals: Totals) -> Takeover:
    first, second = (ParentSpec(folder, name, subagents).create() for name in ("first", "second"))
    model = EchoModel(ANSWER_S, first.request_log)
    dying = fork_worker(run_subagents, first, DEATH, UNLIMITED, model)
    survivor = fork_worker(_run_until_all_done, second, None, first, model)
    expect_death(dying, DEATH, totals)
    expect_success(survivor, totals)
    for spec in (first, second):
        check_subagents(spec, totals)
        expect_success(fork_worker(resume_parent, spec), totals)
        check_parent(spec, totals)
    return _takeover(first, second, dying, survivor)


async def _run_until_all_done(
    spec: ParentSpec, on_step: StepCallback, other: ParentSpec, model: EchoModel
) -> None:
    async with asyncio.timeout(HANG_TIMEOUT_S), create_session(spec, on_step, model=model) as session:
        await session.open()
        for label in spec.labels:
            await start_subagent(session, label)
        registry = (await session._agent.subagents.connect()).registry
        expected = {spec.session: spec.subagents, other.session: other.subagents}
        done: Counter[str] = Counter()
        while done != expected:
            await asyncio.sleep(0.02)
            runs = [*runs_of(registry, spec), *runs_of(registry, other)]
            done = Counter(run.parent for run in runs if run.state == "done")


def _takeover(first: ParentSpec, second: ParentSpec, dying: int, survivor: int) -> Takeover:
    death = float(read_lines(first.death_log)[0])
    requests: list[list[Any]] = [json.loads(line) for line in read_lines(first.request_log)]
    begun = [(pid, task, when) for what, pid, task, when in requests if what == "begin"]
    own = {
        pid: {f"task {label}" for label in spec.labels} for pid, spec in ((dying, first), (survivor, second))
    }
    by_both = {task for pid, task, when in begun if task not in own[pid] and (pid == dying or when < death)}
    taken_over = sum(pid == survivor and task in own[dying] for pid, task, _ in begun)
    last = max(run.announced or 0.0 for run in first.read_runs())
    return Takeover(len(by_both), taken_over, last - death)
