"""Workers on one PostgreSQL, killed, stopped for longer than their lease, and cut off by a server that is killed.

python -m tests.support.crash.cluster worker|parent FOLDER NAME SUBAGENTS LEASE
"""

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import unittest.mock
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Self

from tests.support.crash.parents import ParentSpec
from tests.support.crash.workers import (
    GATE_COMMAND,
    REDIRECTS,
    START_PREFIX,
    EchoModel,
    start_subagent,
)
from tests.support.servers.cutting_proxy import CuttingProxy
from tests.support.servers.postgres import REGISTRY, PostgresServer, postgres_server
from turngate.agent.session import Session
from turngate.core.conversation.subagent_run import OPEN_STATES, SubagentRun
from turngate.core.conversation.tools import ToolFailed
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Rule, Settings
from turngate.errors import RegistryError
from turngate.ports import World
from turngate.shells.local import LocalShell
from turngate.state.paths import main_transcript_path
from turngate.subagents import supervisor
from turngate.subagents.limits import SubagentLimits, SubagentOptions
from turngate.subagents.registry import Registry, postgres_store, store
from turngate.subagents.registry import postgres_schema as schema
from turngate.subagents.workers import project_label
from turngate.transcript.reader import read_records

WORKERS, SLOTS, AT_ONCE = 4, 4, 12
SHORT_LEASE_S = 3.0  # shorter than that of the product, so that more happens
LIMITS = SubagentLimits(recoveries=10**6, rapid=10**6, at_once=AT_ONCE)
FOREGROUND_EVERY = 3
ANSWER_S = 0.5  # so that many attempts are interrupted
SAMPLE_S = 0.1
FAULT_EVERY_S = 2.0  # these are for a short lease; with a longer one, there is more time between faults
SERVER_LIFE_S = 15.0
CUT_EVERY_S = 4.0


@dataclass
class ClusterTotals:
    runs: int = 0
    announced_once: int = 0
    lost: int = 0
    twice: int = 0  # in the registry, or in the parent's transcript
    limits_exceeded: int = 0  # of slots or of a session, in a sample
    samples: int = 0
    kills_of_workers: int = 0
    stops_of_workers: int = 0  # for longer than the lease
    kills_of_the_server: int = 0
    cuts: int = 0  # of all connections of workers and parents
    connections_cut: int = 0
    recoveries: int = 0  # of runs that are still in the registry at the end of a batch
    lease: float = SHORT_LEASE_S
    takeovers: list[float] = field(default_factory=list)  # seconds
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def is_correct(self) -> bool:
        faults = (self.lost, self.twice, self.limits_exceeded, len(self.wrong))
        return self.announced_once == self.runs and not any(faults)

    def __str__(self) -> str:
        return "; ".join(f"{name} {value}" for name, value in self.counts().items())

    def counts(self) -> dict[str, str]:
        counts = {**asdict(self), "wrong": len(self.wrong)}
        takeovers = sorted(counts.pop("takeovers")) or [0.0]
        counts |= {"median takeover": takeovers[len(takeovers) // 2], "longest takeover": takeovers[-1]}
        return {
            name.replace("_", " "): f"{value:.1f}" if isinstance(value, float) else str(value)
            for name, value in counts.items()
        }


def run_cluster(
    programs: Path,
    folder: str,
    runs: int,
    *,
    batch: int,
    lease: float,
    progress: Callable[[ClusterTotals], None],
) -> ClusterTotals:
    totals, started = ClusterTotals(lease=lease), time.monotonic()
    rights = schema.RIGHTS.replace(f"'{store.LEASE_S:g} s'", f"'{lease:g} s'")
    with (
        unittest.mock.patch.object(schema, "RIGHTS", rights),
        postgres_server(programs) as server,
        _proxy(server) as proxy,
        _Cluster(server, proxy, folder, totals) as cluster,
    ):
        while totals.runs < runs:
            name = f"p{totals.runs}"
            size = min(batch, runs - totals.runs)
            spec = ParentSpec(folder, name, size, foreground_every=FOREGROUND_EVERY).create()
            cluster.run_batch(spec, lambda: progress(totals))
            _check(server, spec, totals)
            totals.seconds = time.monotonic() - started
            progress(totals)
    return totals


def _proxy(server: PostgresServer) -> CuttingProxy:
    socket = f".s.PGSQL.{server.port}"
    (server.folder / "proxy").mkdir()
    return CuttingProxy(server.folder / "proxy" / socket, server.folder / socket)


class _Cluster:
    """Starts the workers again as often as they are killed; they and the parents use the server behind a proxy."""

    def __init__(
        self, server: PostgresServer, proxy: CuttingProxy, folder: str, totals: ClusterTotals
    ) -> None:
        self._server, self._proxy, self._folder, self._totals = server, proxy, folder, totals
        self._workers: list[subprocess.Popen[bytes]] = []
        self._killed: dict[int, float] = {}  # when, by process
        self._stopped: dict[int, float] = {}  # until when
        self._lease, self._pace = totals.lease, totals.lease / SHORT_LEASE_S
        self._server_dies = 0.0

    def __enter__(self) -> Self:
        self._workers = [self._start("worker", f"w{number}", 0) for number in range(WORKERS)]
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._workers:
            process.kill()
            process.wait()

    def _start(self, role: str, name: str, subagents: int) -> "subprocess.Popen[bytes]":
        words = [
            "-m",
            "tests.support.crash.cluster",
            role,
            self._folder,
            name,
            str(subagents),
            str(self._lease),
        ]
        url = self._server.url(LOGINS[role]).replace(
            f"host={self._server.folder}", f"host={self._server.folder}/proxy"
        )
        environ = {**os.environ, "TURNGATE_REGISTRY": url, "HOME": self._folder}
        with open(os.path.join(self._folder, f"{role}.log"), "ab") as log:
            return subprocess.Popen([sys.executable, *words], env=environ, stdout=log, stderr=log)

    def run_batch(self, spec: ParentSpec, progress: Callable[[], None]) -> None:
        parent = self._start("parent", spec.session, spec.subagents)
        self._server_dies = time.monotonic() + self._pace * random.uniform(2, SERVER_LIFE_S)
        next_fault = next_cut = time.monotonic() + 2
        try:
            while parent.poll() is None:
                time.sleep(SAMPLE_S)
                self._wake_stopped()
                self._sample()
                progress()
                now = time.monotonic()
                if now > self._server_dies:
                    self._kill_server()
                if now > next_cut:
                    self._totals.cuts += 1
                    self._totals.connections_cut += self._proxy.cut()
                    next_cut = now + self._pace * random.uniform(0, 2 * CUT_EVERY_S)
                if now > next_fault:
                    self._disturb_worker()
                    next_fault = now + self._pace * random.uniform(0.5, 2 * FAULT_EVERY_S - 0.5)
            if parent.returncode:
                self._totals.wrong.append(f"the parent {spec.session} ended with {parent.returncode}")
        finally:
            parent.kill()
            parent.wait()

    def _disturb_worker(self) -> None:
        number = random.randrange(WORKERS)
        process = self._workers[number]
        if process.pid in self._stopped:
            return
        if random.random() < 0.25:
            process.send_signal(signal.SIGSTOP)
            self._stopped[process.pid] = time.monotonic() + self._lease + random.uniform(0.5, 3)
            self._totals.stops_of_workers += 1
            return
        if process.poll() is not None:
            self._totals.wrong.append(f"worker {number} ended with {process.returncode}")
        process.kill()
        process.wait()
        self._killed[process.pid] = time.monotonic()
        self._totals.kills_of_workers += 1
        self._workers[number] = self._start("worker", f"w{number}", 0)

    def _wake_stopped(self) -> None:
        for process in self._workers:
            if self._stopped.get(process.pid, float("inf")) < time.monotonic():
                del self._stopped[process.pid]
                process.send_signal(signal.SIGCONT)

    def _kill_server(self) -> None:
        self._server.stop(kill=True)
        self._totals.kills_of_the_server += 1
        self._server.start()
        self._server_dies = time.monotonic() + self._pace * random.uniform(SERVER_LIFE_S / 2, SERVER_LIFE_S)

    def _sample(self) -> None:
        with self._server.connect(REGISTRY) as db:
            rows = db.execute(
                # Not `now()`: it may be earlier than what the query sees, such as claims after a lease has lapsed.
                "SELECT owner, parent, o.id IS NOT NULL AND o.seen > clock_timestamp() - make_interval(secs => %s), state "
                "FROM turngate.runs LEFT JOIN turngate.owners o ON o.id = owner "
                "WHERE state NOT IN ('done', 'replaced', 'given_up')",
                [self._lease],
            ).fetchall()
        running = [(owner, parent, lives) for owner, parent, lives, state in rows if state in WITH_SLOT]
        by_owner = Counter(owner for owner, *_ in running if owner)
        by_parent = Counter(parent for _, parent, lives in running if lives)
        counts = (*(n > SLOTS for n in by_owner.values()), *(n > AT_ONCE for n in by_parent.values()))
        self._totals.limits_exceeded += sum(counts)
        self._totals.samples += 1
        owned = {int(owner.split("-")[1]) for owner, *_ in rows if owner}
        for pid in self._killed.keys() - owned:
            self._totals.takeovers.append(time.monotonic() - self._killed.pop(pid))


WITH_SLOT = ("running", "ended", "steering")
LOGINS = {"parent": "alice", "worker": "worker"}  # each has only the rights of its role


def _check(server: PostgresServer, spec: ParentSpec, totals: ClusterTotals) -> None:
    os.environ["TURNGATE_REGISTRY"] = server.url(LOGINS["parent"])
    with contextlib.closing(Registry("")) as registry:
        runs = [run for run in registry.read("all") if run.parent == spec.session]
        waiting = registry.inbox(spec.session)
    by_label: dict[str, list[SubagentRun]] = {label: [] for label in spec.labels}
    for run in runs:
        by_label.setdefault(run.label, []).append(run)
    chains = {run.chain for run in runs}
    path = main_transcript_path(spec.state, spec.session, "turngate")
    keys = Counter(record["key"] for record in read_records(path) if record.get("key") in chains)
    totals.runs += spec.subagents
    for label, each in by_label.items():
        announced = sum(run.announced is not None for run in each)
        in_transcript = keys[each[0].chain] if each else 0
        totals.announced_once += announced == in_transcript == 1
        totals.lost += not (announced and in_transcript)
        totals.twice += announced > 1 or in_transcript > 1
        last = next((run for run in each if run.state != "replaced"), None)
        if last and (last.state, last.outcome, last.steer_count) != ("done", "ok", REDIRECTS):
            totals.wrong.append(f"{label} is {last.state}, {last.outcome}, {last.steer_count}: {last.error}")
    totals.recoveries += sum(run.recoveries for run in runs)
    totals.wrong += [f"{run.label} waits in the inbox" for run in waiting]


# Processes


def _shorten_lease(lease: float) -> None:
    if lease < store.LEASE_S:
        vars(supervisor).update(BEAT_S=lease / 6, HELD_S=lease - 0.5, REGISTRY_ERROR_PAUSE_S=0.5)
        vars(postgres_store).update(LEASE_S=lease)


def _session(spec: ParentSpec, state: str, children: SubagentOptions) -> Session:
    rules = (Rule("SubagentStop", CommandHook(GATE_COMMAND), source="user"),)
    options = {"session_id": spec.session, "state": state, "children": children}
    return Session(spec.project, EchoModel(ANSWER_S), Settings(rules=rules), max_turns=10**6, **options)  # type: ignore[arg-type]


async def _work(spec: ParentSpec) -> None:
    """Claim runs until the process is killed, with a state folder of its own, as on a machine of its own."""
    labels = (project_label(World(LocalShell(), spec.project)),)
    options = SubagentOptions(limits=LIMITS, slots=SLOTS, labels=labels)
    workers = _session(spec, os.path.join(spec.folder, f"state-{spec.session}"), options)._agent.subagents
    while True:
        with contextlib.suppress(RegistryError):  # the server is down
            await workers.connect()
            await asyncio.Event().wait()
        await asyncio.sleep(0.2)


async def _run_parent(spec: ParentSpec) -> None:
    async with _session(spec, spec.state, SubagentOptions(limits=LIMITS, runs="workers")) as session:
        await session.open()
        foreground = {*spec.foreground_labels}
        while missing := await _missing(session, spec):
            with contextlib.suppress(ToolFailed):  # the server is down
                for label in missing:
                    if label not in foreground:
                        await start_subagent(session, label)
                if wanted := [label for label in missing if label in foreground]:
                    await session.send(START_PREFIX + " ".join(wanted))
        while any(run.state in OPEN_STATES for run in await _runs(session, spec)):
            await asyncio.sleep(0.1)
        await session.send("go on")


async def _missing(session: Session, spec: ParentSpec) -> Sequence[str]:
    registered = {run.label for run in await _runs(session, spec)}
    return [label for label in spec.labels if label not in registered]


async def _runs(session: Session, spec: ParentSpec) -> list[SubagentRun]:
    while True:
        with contextlib.suppress(RegistryError, RuntimeError):
            context = await session._agent.subagents.connect()
            runs = await context.call(context.registry.read, "all")
            return [run for run in runs if run.parent == spec.session]
        await asyncio.sleep(0.2)


def main() -> None:
    role, folder, name, subagents, lease = sys.argv[1:]
    _shorten_lease(float(lease))
    spec = ParentSpec(folder, name, int(subagents), foreground_every=FOREGROUND_EVERY).create()
    asyncio.run(_work(spec) if role == "worker" else _run_parent(spec))


if __name__ == "__main__":
    main()
