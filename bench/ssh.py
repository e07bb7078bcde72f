"""Hooks on another machine: an OpenSSH server on loopback with a home of its own, compared with hooks on this machine.

A login shell that reads a slow `.bashrc` would be measured too; this home has none.
"""

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from tests.support.servers.ssh import HOST, SSHD, ssh_server

from bench.measure import Row
from turngate import CommandHook, LocalShell, Rule, Settings, StopEvent, World, ask_hooks
from turngate.core.answers.report_types import Exited
from turngate.ports import HookRunContext, RemoteMachine
from turngate.shells.ssh.copies import RemoteCopies
from turngate.shells.ssh.files import SshFiles
from turngate.shells.ssh.shell import SshShell

LONG_BYTES = 100_000_000
NEW_BYTES = 1_000_000


def remote_hooks() -> list[Row]:
    """Return no rows, and say so, on a machine without sshd."""
    if SSHD is None:
        print("left out: hooks over SSH, because there is no sshd; install openssh-server")
        return []
    with _server() as folder:
        return asyncio.run(_measure(folder))


@contextmanager
def _server() -> Iterator[Path]:
    home = os.environ.get("HOME")
    with (
        tempfile.TemporaryDirectory(prefix="turngate-bench-") as name,
        ssh_server(Path(name) / "sshd") as server,
    ):
        server.configure_client(Path(name))
        os.environ["HOME"] = name
        try:
            yield Path(name)
        finally:
            os.environ.pop("HOME")
            os.environ.update({} if home is None else {"HOME": home})


class _CountingShell(SshShell):
    """Counts the bytes that commands are sent."""

    sent = 0

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: HookRunContext
    ) -> Exited:
        self.sent += len(stdin)
        return await super().run(hook, cwd=cwd, env=env, stdin=stdin, live=live)

    async def evaluate(self, script: str) -> tuple[int, str] | None:
        self.sent += len(script)
        return await super().evaluate(script)


async def _measure(folder: Path) -> list[Row]:
    shell = _CountingShell(HOST)
    copies = RemoteCopies(shell)
    environ = await shell.environment()
    files = SshFiles(shell, asyncio.get_running_loop(), home="/", environ=environ, machine=f"ssh://{HOST}")
    remote = World(shell, "/tmp", environ=environ, remote=RemoteMachine(files, copies), logs=False)
    local = World(LocalShell(), "/tmp", logs=False)
    transcript = folder / "chat.jsonl"
    rows = [
        *await _latency(remote, local, None, "without a transcript"),
        *await _latency(remote, local, transcript, "1 KB new in the transcript"),
        await _second_stop(remote, shell, folder / "long.jsonl"),
    ]
    await copies.close()
    await shell.close()
    return rows


async def _latency(remote: World, local: World, transcript: Path | None, which: str) -> list[Row]:
    times: tuple[list[float], list[float], list[float]] = ([], [], [])
    for number in range(105):
        worlds = [(remote, 1, times[0]), (local, 1, times[1])]
        for world, count, durations in [*worlds, *([(remote, 50, times[2])] if number % 15 == 0 else [])]:
            _grow(transcript, 1000)
            durations.append(await _stop(world, transcript, count))
    one, here, many = map(median, times)
    return [
        Row(f"a remote hook on a warm connection / a local `sh -c` hook, {which}", one, here, max_ratio=4),
        Row(f"50 remote hooks at once / one, {which}", many, one, max_ratio=25),
    ]


async def _stop(world: World, transcript: Path | None, count: int) -> float:
    """Return how long the hooks of one stop take."""
    rules = tuple(Rule("Stop", CommandHook(f"cat; exit 0 # {number}")) for number in range(count))
    path = "" if transcript is None else str(transcript)
    event = StopEvent(session_id="b", transcript_path=path, cwd="/tmp", last_assistant_message="x" * 800)
    started = time.perf_counter()
    verdict = await ask_hooks(event, Settings(rules=rules), world)
    elapsed = time.perf_counter() - started
    assert all(isinstance(run.report, Exited) and run.report.stdout for run in verdict.runs), verdict.runs
    return elapsed


def _grow(path: Path | None, size: int) -> None:
    if path is not None:
        with path.open("ab") as file:
            file.write(b"x" * (size - 1) + b"\n")


async def _second_stop(world: World, shell: _CountingShell, path: Path) -> Row:
    """Count what is sent, and how much the copy grows; a copy that is another file was written whole."""
    assert world.copies is not None
    _grow(path, LONG_BYTES)
    await _stop(world, path, 1)
    before, sent = os.stat(await world.copies.copy(str(path))), shell.sent
    _grow(path, NEW_BYTES)
    await _stop(world, path, 1)
    sent = shell.sent - sent
    after = os.stat(await world.copies.copy(str(path)))
    written = after.st_size - before.st_size if after.st_ino == before.st_ino else after.st_size
    assert after.st_size == os.stat(path).st_size
    what = "second stop, 100 MB: bytes written to the copy, and sent / bytes that are new"
    return Row(what, max(written, sent), NEW_BYTES, max_ratio=1.1, unit=" B")
