"""Hooks run by the engine, compared with bare processes and awaits that do the same work."""

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine
from typing import Any

from bench.measure import Row, interleaved
from turngate import CallbackHook, CommandHook, LocalShell, Rule, Settings, StopEvent, World, ask_hooks
from turngate.core.verdict.verdict import Verdict
from turngate.shells.process_tree import KILL_GRACE_S

PROGRAM = "/bin/cat"  # 1 KB in, 1 KB out
EVENT = StopEvent(session_id="bench", transcript_path="/t", cwd="/tmp", last_assistant_message="x" * 800)


def direct_command(loop: asyncio.AbstractEventLoop) -> Row:
    ours, floor = _compare(loop, CommandHook(PROGRAM), _spawn_and_wait, rounds=400)
    return Row(
        "a direct command hook / raw posix_spawn with pipes, 1 KB in and out", ours, floor, max_ratio=1.5
    )


def shell_command(loop: asyncio.AbstractEventLoop) -> Row:
    command = "cat; exit 0"

    def run() -> None:
        subprocess.run(["/bin/sh", "-c", command], input=DATA, capture_output=True, check=True)

    ours, floor = _compare(loop, CommandHook(command), run, rounds=400)
    return Row("a shell command hook / subprocess.run of /bin/sh -c", ours, floor, max_ratio=1.15)


def plain_command(loop: asyncio.AbstractEventLoop) -> Row:
    def run() -> None:
        subprocess.run(["/bin/sh", "-c", "cat"], input=DATA, capture_output=True, check=True)

    ours, floor = _compare(loop, CommandHook("cat"), run, rounds=400)
    return Row(
        "a plain command hook without a path / subprocess.run of /bin/sh -c", ours, floor, max_ratio=1.0
    )


def parallel_hooks(loop: asyncio.AbstractEventLoop) -> Row:
    # Different arguments make different hooks; identical commands would be deduplicated.
    configured = _settings(*(CommandHook(PROGRAM, args=("-u",) * n) for n in range(100)))
    ours, floor = interleaved(
        lambda: loop.run_until_complete(_ask(configured)), lambda: _spawn_many(100), rounds=15
    )
    what = "100 hooks in parallel, per second / posix_spawn with pipes, 64 at once"
    return Row(what, 100 / ours, 100 / floor, min_ratio=0.6, unit="/s")


def async_callback(loop: asyncio.AbstractEventLoop) -> Row:
    async def callback(_: StopEvent) -> None:
        return None

    configured = _settings(CallbackHook(callback))
    ours, floor = _compare_awaits(loop, lambda: _ask(configured), lambda: callback(EVENT))
    most, which = (150, "3.12+") if sys.version_info >= (3, 12) else (300, "3.11")
    what = f"an async callback through ask_hooks / a plain await (on 3.11 ≤ 300, on 3.12+ ≤ 150; this is {which})"
    return Row(what, ours, floor, max_ratio=most)


def no_hook(loop: asyncio.AbstractEventLoop) -> Row:
    async def callback(_: StopEvent) -> None:
        return None

    configured = _settings()
    ours, floor = _compare_awaits(loop, lambda: _ask(configured), lambda: callback(EVENT))
    return Row("ask_hooks with no hook configured / a plain await", ours, floor, max_ratio=60)


def hook_that_ignores_sigterm(loop: asyncio.AbstractEventLoop) -> Row:
    """`ask_hooks` returns once the processes are gone; an ignored signal stays ignored after `exec`."""
    timeout = 0.2
    configured = _settings(CommandHook("trap '' TERM; exec sleep 60", timeout=timeout))

    def run() -> float:
        started = time.perf_counter()
        loop.run_until_complete(_ask(configured))
        return time.perf_counter() - started - timeout

    ours = statistics.median(run() for _ in range(5))
    what = "a hook that ignores SIGTERM: from its timeout until it is gone / the kill grace"
    return Row(what, ours, KILL_GRACE_S, max_ratio=1.5)


def _compare(
    loop: asyncio.AbstractEventLoop, hook: CommandHook, floor: Callable[[], None], *, rounds: int
) -> tuple[float, float]:
    """Measure inside a running loop, as a session does, in turns with a floor that blocks it."""
    configured = _settings(hook)

    async def turns() -> tuple[float, float]:
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(rounds):
            started = time.perf_counter()
            await _ask(configured)
            between = time.perf_counter()
            floor()
            times[0].append(between - started)
            times[1].append(time.perf_counter() - between)
        return statistics.median(times[0]), statistics.median(times[1])

    return loop.run_until_complete(turns())


WORLD = World(LocalShell(), "/tmp", logs=False)  # one benchmark is about a hook that times out


def _settings(*hooks: CommandHook | CallbackHook) -> Settings:
    return Settings(rules=tuple(Rule("Stop", hook) for hook in hooks))


def _ask(settings: Settings) -> Coroutine[Any, Any, Verdict]:
    return ask_hooks(EVENT, settings, WORLD)


def _compare_awaits(loop: asyncio.AbstractEventLoop, ours: Any, floor: Any) -> tuple[float, float]:
    """Await both inside a running loop, many times, so that the start of the loop is not measured."""

    async def times(make: Any, count: int) -> float:
        started = time.perf_counter()
        for _ in range(count):
            await make()
        return (time.perf_counter() - started) / count

    pairs = [
        (loop.run_until_complete(times(ours, 200)), loop.run_until_complete(times(floor, 5000)))
        for _ in range(31)
    ]
    return sorted(a for a, _ in pairs)[15], sorted(b for _, b in pairs)[15]


DATA = b"x" * 1000


def _spawn() -> tuple[int, int, int, int]:
    in_r, in_w = os.pipe()
    out_r, out_w = os.pipe()
    err_r, err_w = os.pipe()
    actions = [
        (os.POSIX_SPAWN_DUP2, in_r, 0),
        (os.POSIX_SPAWN_DUP2, out_w, 1),
        (os.POSIX_SPAWN_DUP2, err_w, 2),
    ]
    pid = os.posix_spawn(PROGRAM, [PROGRAM], os.environ, file_actions=actions)
    for fd in (in_r, out_w, err_w):
        os.close(fd)
    os.write(in_w, DATA)
    os.close(in_w)
    return pid, out_r, err_r, in_w


def _finish(pid: int, out_r: int, err_r: int) -> None:
    for fd in (out_r, err_r):
        while os.read(fd, 65536):
            pass
        os.close(fd)
    os.waitpid(pid, 0)


def _spawn_and_wait() -> None:
    pid, out_r, err_r, _ = _spawn()
    _finish(pid, out_r, err_r)


def _spawn_many(count: int) -> None:
    living: list[tuple[int, int, int]] = []
    for _ in range(count):
        if len(living) == 64:
            _finish(*living.pop(0))
        pid, out_r, err_r, _ = _spawn()
        living.append((pid, out_r, err_r))
    for process in living:
        _finish(*process)
