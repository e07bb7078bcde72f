"""Subagents and their registry, compared with the bare cost of the disk and of SQLite."""

import asyncio
import contextlib
import gc
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from bench.measure import Row, interleaved
from turngate.agent.session import Session
from turngate.core.conversation.messages import ModelRequest, Reply, Text
from turngate.core.conversation.subagent_run import SubagentRun
from turngate.core.settings import Settings
from turngate.subagents.limits import SubagentLimits, SubagentOptions
from turngate.subagents.registry import Registry
from turngate.subagents.registry.table import new_id

BLOCK = b"x" * 4096
MANY, FEW = 5000, 10
TRANSITIONS = 5  # durable writes of one whole run
WAITING = 1000  # subagents whose memory is measured


def durable_transition() -> Row:
    with tempfile.TemporaryDirectory() as folder, open_registry(folder, FEW) as registry:
        fd = os.open(os.path.join(folder, "raw"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

        def floor() -> None:
            for _ in range(TRANSITIONS):
                os.write(fd, BLOCK)
                os.fdatasync(fd)

        ours, raw = interleaved(lambda: write_whole_run(registry), floor, rounds=301)
        os.close(fd)
    what = "a durable transition of a run / a raw 4 KB append and fdatasync in the same folder"
    return Row(what, ours / TRANSITIONS, raw / TRANSITIONS, max_ratio=2)


def transition_among_many() -> Row:
    with (
        tempfile.TemporaryDirectory() as folder,
        open_registry(os.path.join(folder, "many"), MANY) as many,
        open_registry(os.path.join(folder, "few"), FEW) as few,
    ):
        ours, floor = interleaved(lambda: write_whole_run(many), lambda: write_whole_run(few), rounds=301)
    what = f"the next transition with {MANY} registered subagents / with {FEW}"
    return Row(what, ours / TRANSITIONS, floor / TRANSITIONS, max_ratio=1.5)


def write_whole_run(registry: Registry) -> None:
    identity = new_id()
    run = SubagentRun(id=identity, chain=identity, agent_id=identity, owner="bench", parent=identity)
    registry.register(run, may_run=True, max_running=10**6)
    registry.transition("end", identity, "bench", outcome="ok", reason="complete", result="done")
    final = {"result": "done", "reason": "complete", "announcement": "it is done", "max_steers": 3}
    registry.transition("finish", identity, "bench", **final)
    registry.transition("announce", identity, "bench")
    registry.transition("done", identity, "bench")


@contextlib.contextmanager
def open_registry(state: str, count: int) -> Iterator[Registry]:
    registry = Registry(state)
    registry.store.execute("BEGIN", {})
    for number in range(count):
        registry.register(
            SubagentRun(id=new_id(), chain=f"c{number}", agent_id=f"a{number}", owner="another", parent="s"),
            may_run=False,
            max_running=0,
        )
    registry.store.execute("COMMIT", {})
    try:
        yield registry
    finally:
        registry.close()


# A whole subagent


class InstantModel:
    """Replies at once, or never."""

    name = "bench:instant"
    context = 200_000

    def __init__(self, *, answers: bool = True) -> None:
        self.answers = answers

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        if not self.answers:
            await asyncio.Event().wait()
        return Reply((Text("done"),))

    async def close(self) -> None:
        pass


def whole_subagent() -> list[Row]:
    """Measure from the registration until the announcement is on disk."""
    commits, ours, bare = asyncio.run(_run_subagents(201))
    return [
        Row(
            "commits of a subagent that does nothing, from registration to announcement / 1",
            commits,
            1,
            max_ratio=6,
            unit=" ",
        ),
        Row(f"its whole time / {commits:.0f} bare commits with the same settings", ours, bare, max_ratio=3),
    ]


async def _run_subagents(rounds: int) -> tuple[float, float, float]:
    times: list[float] = []
    bare: list[float] = []
    commits: list[int] = []
    announced = asyncio.Event()

    def step(name: str, _: SubagentRun) -> None:
        if name == "announced":
            announced.set()

    with (
        tempfile.TemporaryDirectory() as folder,
        _open_database(os.path.join(folder, "plain.db")) as database,
    ):
        session = Session(
            folder,
            InstantModel(),
            Settings(),
            state=os.path.join(folder, "state"),
            children=SubagentOptions(on_step=step),
            session_id="s",
        )
        async with session:
            await session.open()
            supervisor = session._agent.subagents
            registry = (await supervisor.connect()).registry
            for _ in range(rounds):
                announced.clear()
                before, started = registry.commits, time.perf_counter()
                await session._agent.task_tool.start({"prompt": "nothing", "run_in_background": True})
                await announced.wait()
                times.append(time.perf_counter() - started)
                commits.append(registry.commits - before)
                await supervisor.wait_until_idle()
                started = time.perf_counter()
                for _ in range(commits[-1]):
                    database.execute("INSERT INTO runs (text) VALUES (?)", ("x" * 500,))
                bare.append(time.perf_counter() - started)
    return max(commits), statistics.median(times), statistics.median(bare)


@contextlib.contextmanager
def _open_database(path: str) -> Iterator[sqlite3.Connection]:
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("CREATE TABLE runs (id INTEGER PRIMARY KEY, text TEXT)")
        yield db
    finally:
        db.close()


# Two processes


def takeover() -> Row:
    """Kill one of two processes in the middle; the model takes 50 ms for an answer."""
    command = [sys.executable, "-m", "tests.support.crash", "takeover", "5"]
    times = [
        json.loads(subprocess.run(command, capture_output=True, check=True).stdout)[0]["seconds"]
        for _ in range(5)
    ]
    what = "a killed process's last subagent is announced by another process / 2 s"
    return Row(what, statistics.median(times), 2.0, max_ratio=1)


# Memory


def memory() -> list[Row]:
    """Measure in processes of their own, which hold nothing else."""
    queued, running = (_measure_memory(at_once) for at_once in (1, WAITING))
    return [
        Row("memory of a subagent that waits for a slot / 1 KB", queued, 1, max_ratio=60, unit=" KB"),
        Row("memory of a subagent that waits for its model / 1 KB", running, 1, max_ratio=60, unit=" KB"),
    ]


def _measure_memory(at_once: int) -> float:
    command = [sys.executable, "-m", "bench.subagents", str(at_once)]
    return float(json.loads(subprocess.run(command, capture_output=True, check=True).stdout))


async def memory_per_subagent(at_once: int) -> float:
    """Return the KB that each subagent adds."""
    with tempfile.TemporaryDirectory() as folder:
        session = Session(
            folder,
            InstantModel(answers=False),
            Settings(),
            state=os.path.join(folder, "state"),
            children=SubagentLimits(at_once=at_once, on_machine=10**6),
        )
        async with session:
            await session.open()
            await _start(session, 50)  # loads what is needed only once
            before = _resident_kb()
            await _start(session, WAITING)
            return (_resident_kb() - before) / WAITING


async def _start(session: Session, count: int) -> None:
    for _ in range(count):
        await session._agent.task_tool.start({"prompt": "nothing", "run_in_background": True})
    await asyncio.sleep(1)


def _resident_kb() -> float:
    gc.collect()
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


def main() -> None:
    print(json.dumps(asyncio.run(memory_per_subagent(int(sys.argv[1])))))


if __name__ == "__main__":
    main()
