"""Where descriptors or threads are short: hooks wait for each other, and nothing is left behind."""

import asyncio
import os
import resource
import shutil
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

from tests.support.builders import ask, settings, stop_event, stop_hooks, world, write_settings
from turngate.core.events import StopHookInput
from turngate.core.hooks import CallbackHook, CommandHook
from turngate.core.reports import RunFailed, TimedOut
from turngate.core.verdict import outcome
from turngate.engine import ask_hooks
from turngate.shells import process_tree as tree
from turngate.shells.local import LocalShell
from turngate.shells.process_slots import FDS_PER_PROCESS, RESERVED_FDS
from turngate.stop_hooks import StopHooksResult, run_stop_hooks


@contextmanager
def descriptors(most: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_more_hooks_than_descriptors_wait_for_each_other_and_not_on_their_own_time(project: Path) -> None:
    hooks = [CommandHook(f"sleep 0.3; : {number}", timeout=2.0) for number in range(150)]
    with descriptors(RESERVED_FDS + 20 * FDS_PER_PROCESS):
        verdict = asyncio.run(ask(project, *hooks))
    assert [outcome(run) for run in verdict.runs] == ["allow"] * 150
    assert max(run.seconds for run in verdict.runs) < 2.0


def test_hooks_in_the_background_take_no_room_from_those_that_are_waited_for(project: Path) -> None:
    late = [CommandHook(f"sleep 60; : {number}", detached=True) for number in range(40)]

    async def stop() -> list[str]:
        here = world(project)
        verdict = await ask_hooks(stop_event(), settings(*late, "true"), here)
        await here.close()
        return [outcome(run) for run in verdict.runs]

    with descriptors(RESERVED_FDS + 20 * FDS_PER_PROCESS):
        assert asyncio.run(asyncio.wait_for(stop(), 10)) == ["allow"] * 41


def test_without_a_descriptor_a_hook_that_hangs_is_ended_all_the_same(project: Path) -> None:
    async def stop() -> Any:
        asking = asyncio.create_task(ask(project, CommandHook("echo $$ > pid; sleep 60", timeout=0.6)))
        while not (project / "pid").exists():
            await asyncio.sleep(0.01)
        pid = int((project / "pid").read_text())
        with every_descriptor_taken():
            verdict = await asking
        return verdict.runs[0].report, alive(pid)

    assert asyncio.run(stop()) == (TimedOut(0.6), False)


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
def test_without_a_thread_our_own_work_is_done_in_the_loop(project: Path, state: Path) -> None:
    write_settings(project, "turngate", stop_hooks(f"echo {'x' * 40}; seq 100000 >&2; exit 2"))
    told = StopHookInput(
        session_id="s",
        transcript_path="",
        cwd=str(project),
        permission_mode="default",
        hook_event_name="Stop",
        stop_hook_active=False,
    )
    result = asyncio.run(run_stop_hooks(LocalShell(), str(project), told))
    assert result == StopHooksResult(False, result.continue_reason, [])
    assert "the whole text is in" in (result.continue_reason or "")


@pytest.mark.usefixtures("no_threads")
def test_without_a_thread_a_hook_that_hangs_is_ended_and_a_plain_function_fails(project: Path) -> None:
    hooks = (CommandHook("sleep 60", timeout=0.2), CallbackHook(lambda _: None))
    verdict = asyncio.run(ask(project, *hooks))
    error = "RuntimeError: can't start new thread"
    assert [run.report for run in verdict.runs] == [TimedOut(0.2), RunFailed(error)]


FIRST_THREAD_GONE = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(60,)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_whose_first_thread_has_ended_is_alive_while_another_works() -> None:
    child = subprocess.Popen([sys.executable, "-c", FIRST_THREAD_GONE], start_new_session=True)
    try:
        stat = Path(f"/proc/{child.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
        before = {member.pid for member in tree.find(child.pid, "no-mark")}
        tree.kill_all(child.pid, "no-mark", ())
        until(lambda: not tree.find(child.pid, "no-mark"))
        assert (before, child.wait(5)) == ({child.pid}, -signal.SIGKILL)
    finally:
        child.kill()
        child.wait()


def until(holds: Any, seconds: float = 5.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


# Each generation leaves its session and ends as soon as the next one lives; left alone, it stops after 15 seconds.
# It counts them in a file, because nobody else can see them.
RUNAWAY = """
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
int main(void) {
    time_t end = time(0) + 15;
    int fd = open("count", O_RDWR | O_CREAT, 0600);
    if (ftruncate(fd, 8)) return 1;
    volatile long *count = mmap(0, 8, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    while (time(0) < end) {
        if (fork()) _exit(0);
        setsid();
        ++*count;
    }
    return 0;
}
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no other language forks so fast")
def test_who_forks_and_ends_all_the_time_is_caught(project: Path) -> None:
    subprocess.run(["cc", "-x", "c", "-", "-o", "runaway"], input=RUNAWAY, text=True, cwd=project, check=True)
    verdict = asyncio.run(ask(project, CommandHook("./runaway & sleep 60", timeout=0.5)))
    counted = (project / "count").read_bytes()
    time.sleep(0.1)
    still = (project / "count").read_bytes()
    assert (verdict.runs[0].report, still, counted != bytes(8)) == (TimedOut(0.5), counted, True)
