"""A registry on PostgreSQL, compared with a file: one subagent, many workers, and many open rows.

`python -m bench.workers`; it is not a part of `make bench`, since it needs the programs of PostgreSQL. Sessions and workers have
logins with their own role, so that the rules for rows count.
"""

import asyncio
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import psycopg

from bench.measure import Row, interleaved, processor_time, show
from bench.subagents import InstantModel
from turngate.agent.session import Session
from turngate.cli.commands.worker.local_postgres import local_postgres
from turngate.core.conversation.messages import ModelRequest, Reply
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Rule, Settings
from turngate.ports import World
from turngate.shells.local import LocalShell
from turngate.subagents.limits import SubagentLimits, SubagentOptions
from turngate.subagents.registry import Registry
from turngate.subagents.registry.postgres_store import create_schema
from turngate.subagents.registry.table import new_id
from turngate.subagents.workers import project_label

WARM_UP = 12  # runs, in which PostgreSQL plans each statement of a new connection
BLOCKS, BLOCK_RUNS = 5, WARM_UP + 20  # in turns; the medians of the blocks are shown
GATE = Rule("SubagentStop", CommandHook("true"), source="user")
WORK_S = 0.1  # of the model of a subagent
IDLE_S = 0.1  # between two subagents, so that nothing is left of the one before
ROUNDS = 101
MANY, FEW = 10_000, 10
RUNS = 300  # for the throughput
SLOTS = 4
WORKERS = (1, 2, 4, 8)
LOGINS = {"session": "turngate_session", "worker": "turngate_worker"}


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="turngate-bench-") as folder, local_postgres() as url:
        with psycopg.connect(url, autocommit=True) as db:
            for login, role in LOGINS.items():
                db.execute(f"CREATE ROLE {login} LOGIN IN ROLE {role}")
        show(one_subagent(folder, url))
        show(claims_among_many(url))
        show(throughput(folder, url))


def _as(login: str, url: str) -> str:
    return url.replace("turngate@", f"{login}@")


# One subagent


class WorkingModel(InstantModel):
    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        await asyncio.sleep(WORK_S)
        return await super().ask(request, tell)


def one_subagent(folder: str, url: str) -> list[Row]:
    """Measure from the registration until the announcement is durable, and the processor time of all processes."""
    kinds = ("a file", "PostgreSQL", "a worker")
    cases = {
        f"{WORK_S:g} s of work": (WorkingModel(), ()),
        "no work": (InstantModel(), ()),
        "a gate": (InstantModel(), (GATE,)),
        f"{WORK_S:g} s of work and a gate": (WorkingModel(), (GATE,)),
    }
    times: dict[tuple[str, str], list[tuple[float, float]]] = {
        (kind, name): [] for kind in kinds for name in cases
    }
    for _ in range(BLOCKS):
        for (kind, name), figures in times.items():
            figures.append(asyncio.run(_block(folder, url, kind, *cases[name])))
    rows = []
    for place, what in enumerate(("from registration to announcement", "processor time")):
        medians = {
            each: statistics.median(each[place] for each in figures) for each, figures in times.items()
        }
        for name in cases:
            for kind, limit in (("PostgreSQL", (1.5, 2)[place]), ("a worker", (1.5, 2)[place])):
                ours, floor = medians[kind, name], medians["a file", name]
                rows.append(Row(f"{what}, {name}, {kind} / a file", ours, floor, max_ratio=limit))
    return rows


async def _block(
    folder: str, url: str, kind: str, model: InstantModel, rules: tuple[Rule, ...]
) -> tuple[float, float]:
    """Return the median time of some subagents, and the processor time for each."""
    announced, server, times = asyncio.Event(), url.partition("host=")[2], list[float]()
    is_worker, registry = kind == "a worker", None if kind == "a file" else _as("session", url)
    options = SubagentOptions(on_step=_when_announced(announced), runs="workers" if is_worker else "here")
    given = (model, rules)
    async with _session(folder, os.path.join(folder, kind), registry, options, *given) as session:
        await session.open()
        runner = session._agent
        if is_worker:
            labels = (project_label(World(LocalShell(), folder)),)
            options = SubagentOptions(slots=1, labels=labels, on_step=_when_announced(announced))
            state = os.path.join(folder, "other machine")
            runner = _session(folder, state, _as("worker", url), options, *given)._agent
            await runner.subagents.connect()
        before = _processor_time(server)
        for number in range(BLOCK_RUNS):
            before = _processor_time(server) if number == WARM_UP else before
            await asyncio.sleep(IDLE_S)
            announced.clear()
            started = time.perf_counter()
            await session._agent.task_tool.start({"prompt": "nothing", "run_in_background": True})
            await announced.wait()
            times.append(time.perf_counter() - started)
            await runner.subagents.wait_until_idle()
        processor = (_processor_time(server) - before) / (BLOCK_RUNS - WARM_UP)
        if is_worker:
            await runner.close_unopened()
    return statistics.median(times[WARM_UP:]), processor


def _when_announced(event: asyncio.Event) -> Callable[[str, SubagentRun], None]:
    return lambda name, _: event.set() if name == "announced" else None


def _session(
    folder: str,
    state: str,
    registry: str | None,
    options: SubagentOptions,
    model: InstantModel | None = None,
    rules: tuple[Rule, ...] = (),
) -> Session:
    settings = Settings(registry=registry, rules=rules)
    return Session(folder, model or InstantModel(), settings, state=state, children=options)


def _used(process: int | str) -> float:
    """Return the seconds of processor time that a process has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(") ")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def _processor_time(server: str) -> float:
    """Return the seconds that this process, its hooks, and the processes of the server have used."""
    used = 0.0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str((process / "cwd").readlink()).startswith(server):  # its data
                used += _used(process.name)
    return time.process_time() + processor_time() + used


# Claims


def claims_among_many(url: str) -> list[Row]:
    """Other runs wait for workers with other labels, or for these, or their session has all that it may."""
    rows = []
    with _database(url, "few", FEW, label="other") as few:
        for name, what, given in (
            ("others", "for other projects", {"label": "other"}),
            ("fitting", "that it may claim too", {"label": "mine"}),
            ("full", "of a session at its limit", {"label": "mine", "parent": "full", "at_once": 0}),
        ):
            with _database(url, name, MANY, **given) as many:
                ours, floor = interleaved(partial(_claim, *many), partial(_claim, *few), rounds=ROUNDS)
            limit = 15 if name == "full" else 1.5
            rows.append(
                Row(f"a claim among {MANY} open runs {what} / among {FEW}", ours, floor, max_ratio=limit)
            )
    return rows


def _claim(session: Registry, worker: Registry, owner: str) -> None:
    identity = new_id()
    session.register(_waiting(identity, "mine", created=1e9), may_run=False, max_running=10**6)
    run = worker.claim(owner, ["mine"], max_running=10**6)
    assert run
    for transition in ("lost", "announce", "done"):
        worker.transition(transition, run.id, owner, announcement="")


def _waiting(
    identity: str, label: str, *, parent: str = "", at_once: int = 10**6, created: float = 0.0
) -> SubagentRun:
    launch = {"workers": {"labels": [label], "at_once": at_once}, "project": "/p"}
    agent = {"agent_id": identity, "parent": parent or identity, "created": created}
    return SubagentRun(id=identity, chain=identity, launch=launch, **agent)  # type: ignore[arg-type]


@contextlib.contextmanager
def _database(url: str, name: str, count: int, **given: Any) -> Iterator[tuple[Registry, Registry, str]]:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE of_{name}")
    own = url.replace("/postgres?", f"/of_{name}?")
    create_schema(own)
    with (
        contextlib.closing(Registry("", setting=_as("session", own))) as session,
        contextlib.closing(Registry("", setting=_as("worker", own))) as worker,
    ):
        session.store.execute("BEGIN", {})
        for number in range(count):
            session.register(_waiting(new_id(), **given, created=number), may_run=False, max_running=0)
        session.store.execute("COMMIT", {})
        with psycopg.connect(own, autocommit=True) as db:
            db.execute("ANALYZE turngate.runs")  # as the server itself does within a minute
        owner = worker.join(slots=1)
        yield session, worker, owner
        worker.leave(owner)


# Throughput


def throughput(folder: str, url: str) -> list[Row]:
    """Let workers take subagents of one session as fast as they can, whose model works or answers at once.

    For comparison, the session runs them itself with a file, as many at once as one worker.
    """
    rows = []
    for what, model in ((f"{WORK_S:g} s of work", WorkingModel()), ("no work", InstantModel())):
        file_seconds, file_processor = asyncio.run(_play(f"{folder}/file {what}", folder, None, model))
        figures = {count: _run_all(folder, url, count, model) for count in WORKERS}
        for count, (seconds, processor) in figures.items():
            name = f"one of {RUNS} subagents, {what}, on {count} workers"
            rows += [
                Row(f"{name} / on 1", seconds, figures[1][0], max_ratio=1.2),
                Row(f"{name} / with a file", seconds, file_seconds, max_ratio=2),
                Row(f"processor time of {name} / with a file", processor, file_processor, max_ratio=2),
            ]
    return rows


def _run_all(folder: str, url: str, count: int, model: InstantModel) -> tuple[float, float]:
    script = Path(folder, "model.json")
    delay = WORK_S if isinstance(model, WorkingModel) else 0
    script.write_text(json.dumps({"sub": [{"text": "done", "delay": delay}]}))
    environ = {**os.environ, "TURNGATE_REGISTRY": _as("worker", url)}
    words = ["worker", "--slots", str(SLOTS), "--model", f"scripted:{script}", "--project", folder]
    command = [sys.executable, "-m", "turngate", *words]
    workers = [
        subprocess.Popen(
            command,
            env={**environ, "TURNGATE_STATE": f"{folder}/worker{number}"},
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(count)
    ]
    for each in workers:
        assert each.stderr
        assert "worker ready" in each.stderr.readline()
    try:
        before = [_used(each.pid) for each in workers]
        seconds, processor = asyncio.run(_play(f"{folder}/parent{count}", folder, url))
        used = sum(_used(each.pid) for each in workers) - sum(before)
        return seconds, processor + used / RUNS
    finally:
        for each in workers:
            each.kill()
            each.communicate()


async def _play(
    state: str, folder: str, url: str | None, model: InstantModel | None = None
) -> tuple[float, float]:
    """Return the seconds and the processor time of one subagent, without that of workers."""
    limits = SubagentLimits(at_once=10**6 if url else SLOTS, on_machine=10**6)
    options = SubagentOptions(runs="workers" if url else "here", limits=limits)
    server = url.partition("host=")[2] if url else "/nowhere"
    async with _session(folder, state, url and _as("session", url), options, model) as session:
        await session.open()
        registry = (await session._agent.subagents.connect()).registry
        left = "SELECT 1 AS left FROM $runs WHERE parent = $parent AND announced IS NULL LIMIT 1"
        started, before = time.perf_counter(), _processor_time(server)
        for _ in range(RUNS):
            await session._agent.task_tool.start({"prompt": "nothing", "run_in_background": True})
        while await asyncio.to_thread(registry.store.execute, left, {"parent": session.id}):
            await asyncio.sleep(0.05)
        return (time.perf_counter() - started) / RUNS, (_processor_time(server) - before) / RUNS


if __name__ == "__main__":
    main()
