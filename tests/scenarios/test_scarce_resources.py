"""Too few descriptors or threads: hooks wait for a slot, and no process is left behind."""

import asyncio
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import ask, settings, stop_event, world
from tests.support.sessions import lines
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S, TIMEOUT_SCALES
from turngate.core.answers.report_types import HookFailed, TimedOut
from turngate.core.hooks.kinds import CallbackHook, CommandHook
from turngate.core.verdict.hook_run import outcome
from turngate.engine import ask_hooks
from turngate.shells import process_tree as tree
from turngate.shells.local import FDS_PER_PROCESS, RESERVED_FDS


@contextmanager
def descriptors(most: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_hooks_than_descriptors_wait_for_a_slot_before_their_timeout_starts(project: Path) -> None:
    """Twenty run at once, 0.3 s each: all together take longer than the time limit of one."""
    for scale in TIMEOUT_SCALES:
        command, timeout = f"sleep {0.3 * scale}; :", 1.5 * scale
        hooks = [CommandHook(f"{command} {number}", timeout=timeout) for number in range(120)]
        with descriptors(RESERVED_FDS + 20 * FDS_PER_PROCESS):
            verdict = asyncio.run(ask(project, *hooks))
        if [outcome(run) for run in verdict.runs] == ["allow"] * 120:
            return
    pytest.fail("the hooks waited on their own time")


def test_background_hooks_take_no_slots_from_foreground_hooks(project: Path) -> None:
    late = [CommandHook(f"sleep 60; : {number}", detached=True) for number in range(40)]

    async def stop() -> list[str]:
        here = world(project)
        verdict = await ask_hooks(stop_event(), settings(*late, "true"), here)
        await here.close()
        return [outcome(run) for run in verdict.runs]

    with descriptors(RESERVED_FDS + 20 * FDS_PER_PROCESS):
        assert asyncio.run(asyncio.wait_for(stop(), HANG_TIMEOUT_S)) == ["allow"] * 41


def test_a_hook_that_hangs_is_ended_without_a_free_descriptor(project: Path) -> None:
    async def stop(limit: float) -> Any:
        asking = asyncio.create_task(ask(project, CommandHook("echo $$ > pid; sleep 3600", timeout=limit)))
        while not lines(project / "pid"):
            if asking.done():
                return None
            await asyncio.sleep(POLL_INTERVAL_S)
        pid = int((project / "pid").read_text())
        with every_descriptor_taken():
            verdict = await asking
        return verdict.runs[0].report == TimedOut(limit), alive(pid)

    limits = (0.6 * scale for scale in TIMEOUT_SCALES)
    assert next(result for limit in limits if (result := asyncio.run(stop(limit)))) == (True, False)


@contextmanager
def every_descriptor_taken() -> Iterator[None]:
    taken: list[int] = []
    with descriptors(200):
        try:
            while True:
                taken.append(os.dup(0))
        except OSError:
            pass
        try:
            yield
        finally:
            for fd in taken:
                os.close(fd)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", start)


@pytest.mark.usefixtures("no_threads")
def test_without_a_thread_a_hook_that_hangs_is_killed_and_a_sync_callback_fails(project: Path) -> None:
    hooks = (CommandHook("sleep 60", timeout=0.2), CallbackHook(lambda _: None))
    verdict = asyncio.run(ask(project, *hooks))
    error = "RuntimeError: can't start new thread"
    assert [run.report for run in verdict.runs] == [TimedOut(0.2), HookFailed(error)]


FIRST_THREAD_GONE = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_counts_as_alive_while_another_runs() -> None:
    child = subprocess.Popen([sys.executable, "-c", FIRST_THREAD_GONE], start_new_session=True)
    try:
        stat = Path(f"/proc/{child.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
        before = {member.pid for member in tree.find_members(child.pid, "no-mark")}
        tree.kill_tree(child.pid, "no-mark", ())
        until(lambda: not tree.find_members(child.pid, "no-mark"))
        assert (before, child.wait(timeout=HANG_TIMEOUT_S)) == ({child.pid}, -signal.SIGKILL)
    finally:
        child.kill()
        child.wait()


def until(holds: Any) -> None:
    deadline = time.monotonic() + HANG_TIMEOUT_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)
