"""A registry on PostgreSQL, compared with a file: one subagent, many workers, and many open rows.

`python -m bench.workers`; it is not a part of `make bench`, since it needs the programs of PostgreSQL.
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
from pathlib import Path

import psycopg

from bench.measure import Row, interleaved, show
from bench.subagents import InstantModel
from turngate.agent.session import Session
from turngate.cli.commands.worker.local_postgres import local_postgres
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.settings import Settings
from turngate.ports import World
from turngate.shells.local import LocalShell
from turngate.subagents.limits import SubagentLimits, SubagentOptions
from turngate.subagents.registry import Registry
from turngate.subagents.registry.postgres_store import create_schema
from turngate.subagents.registry.table import new_id
from turngate.subagents.workers import project_label

ROUNDS = 101
MANY, FEW = 10_000, 10
RUNS = 300  # for the throughput
SLOTS = 4
WORKERS = (1, 2, 4, 8)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="turngate-bench-") as folder, local_postgres() as url:
        show(asyncio.run(one_subagent(folder, url)))
        show([claims_among_many(url)])
        show(throughput(folder, url))


# One subagent


async def one_subagent(folder: str, url: str) -> list[Row]:
    """Measure from the registration until the announcement is durable, and the processor time of all processes."""
    server = url.partition("host=")[2]
    places = {"a file": None, "PostgreSQL": url}
    times: dict[str, list[float]] = {name: [] for name in (*places, "worker")}
    used: dict[str, list[float]] = {name: [] for name in (*places, "worker")}
    async with contextlib.AsyncExitStack() as stack:
        sessions: dict[str, tuple[Session, asyncio.Event]] = {}
        for name, setting in (*places.items(), ("worker", url)):
            state, announced = os.path.join(folder, name), asyncio.Event()
            options = SubagentOptions(
                on_step=_when_announced(announced), runs="workers" if name == "worker" else "here"
            )
            session = _session(folder, state, setting, options)
            sessions[name] = (await stack.enter_async_context(session), announced)
            await session.open()
        labels = (project_label(World(LocalShell(), folder)),)
        options = SubagentOptions(slots=1, labels=labels, on_step=_when_announced(sessions["worker"][1]))
        worker = _session(folder, os.path.join(folder, "other machine"), url, options)._agent
        await worker.subagents.connect()
        stack.push_async_callback(worker.close_unopened)
        for _ in range(ROUNDS):
            for name, (session, announced) in sessions.items():
                announced.clear()
                before, started = _processor_time(server), time.perf_counter()
                await session._agent.task_tool.start({"prompt": "nothing", "run_in_background": True})
                await announced.wait()
                times[name].append(time.perf_counter() - started)
                await (worker if name == "worker" else session._agent).subagents.wait_until_idle()
                used[name].append(_processor_time(server) - before)
    elapsed = {name: statistics.median(each) for name, each in times.items()}
    means = {name: statistics.mean(each) for name, each in used.items()}  # the clock of /proc is coarse
    return [
        Row(
            "from registration to announcement with PostgreSQL / with a file",
            elapsed["PostgreSQL"],
            elapsed["a file"],
            max_ratio=1.5,
        ),
        Row(
            "the same on a worker, with its claim / with a file",
            elapsed["worker"],
            elapsed["a file"],
            max_ratio=3,
        ),
        Row(
            "processor time of one subagent with PostgreSQL and its server / with a file",
            means["PostgreSQL"],
            means["a file"],
            max_ratio=2,
        ),
    ]


def _when_announced(event: asyncio.Event) -> Callable[[str, SubagentRun], None]:
    return lambda name, _: event.set() if name == "announced" else None


def _session(folder: str, state: str, registry: str | None, options: SubagentOptions) -> Session:
    return Session(folder, InstantModel(), Settings(registry=registry), state=state, children=options)


def _processor_time(server: str) -> float:
    """Return the seconds that this process and the processes of the server have used, whose current folder is its data."""
    ticks = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if str((process / "cwd").readlink()).startswith(server):
                ticks += sum(map(int, (process / "stat").read_text().rpartition(") ")[2].split()[11:13]))
    return time.process_time() + ticks / os.sysconf("SC_CLK_TCK")


# Claims


def claims_among_many(url: str) -> Row:
    """The runs wait for workers with other labels, and for these."""
    with _database(url, "few", FEW) as few, _database(url, "many", MANY) as many:
        ours, floor = interleaved(lambda: _claim(many), lambda: _claim(few), rounds=ROUNDS)
    return Row(f"a claim among {MANY} open runs / among {FEW}", ours, floor, max_ratio=1.5)


def _claim(registry: Registry) -> None:
    identity = new_id()
    registry.register(_waiting(identity, "mine"), may_run=False, max_running=10**6)
    run = registry.claim("bench", ["mine"], max_running=10**6)
    assert run
    assert run.id == identity
    for transition in ("lost", "announce", "done"):
        registry.transition(transition, identity, "bench", announcement="")


def _waiting(identity: str, label: str) -> SubagentRun:
    launch = {"workers": {"labels": [label], "at_once": 10**6}, "project": "/p"}
    return SubagentRun(id=identity, chain=identity, agent_id=identity, parent=identity, launch=launch)


@contextlib.contextmanager
def _database(url: str, name: str, count: int) -> Iterator[Registry]:
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name}")
    own = url.replace("/postgres?", f"/{name}?")
    create_schema(own)
    with contextlib.closing(Registry("", setting=own)) as registry:
        registry.store.execute("BEGIN", {})
        for _ in range(count):
            registry.register(_waiting(new_id(), "other"), may_run=False, max_running=0)
        registry.store.execute("COMMIT", {})
        yield registry


# Throughput


def throughput(folder: str, url: str) -> list[Row]:
    """Let workers with a model that answers at once take subagents of one session as fast as they can."""
    seconds = {count: _run_all(folder, url, count) for count in WORKERS}
    return [
        Row(
            f"one of {RUNS} subagents on {count} workers / on 1",
            took / RUNS,
            seconds[1] / RUNS,
            max_ratio=1.2,
        )
        for count, took in seconds.items()
    ]


def _run_all(folder: str, url: str, count: int) -> float:
    script = Path(folder, "model.json")
    script.write_text(json.dumps({"sub": ["done"]}))
    environ = {**os.environ, "TURNGATE_REGISTRY": url}
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
        return asyncio.run(_play(folder, url, count))
    finally:
        for each in workers:
            each.kill()
            each.communicate()


async def _play(folder: str, url: str, count: int) -> float:
    limits = SubagentLimits(at_once=10**6, on_machine=10**6)
    options = SubagentOptions(runs="workers", limits=limits)
    async with _session(folder, f"{folder}/parent{count}", url, options) as session:
        await session.open()
        supervisor = session._agent.subagents
        registry = (await supervisor.connect()).registry
        started = time.perf_counter()
        for _ in range(RUNS):
            await session._agent.task_tool.start({"prompt": "nothing", "run_in_background": True})
        while (
            sum(run.announced is not None for run in registry.read("all") if run.parent == session.id) < RUNS
        ):
            await asyncio.sleep(0.05)
        return time.perf_counter() - started


if __name__ == "__main__":
    main()
