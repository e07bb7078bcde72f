"""End the commands of this process if it dies before them, also by SIGKILL.

A shell that is started with the first command waits for the end of a pipe, whose other end only this process has. Then
it becomes a Python that ends the process trees of the runs in a list. The list is a file that both have open, so a run
costs two short writes. The shell costs 0.8 ms of processor time, once in a process.
"""

import atexit
import contextlib
import os
import sys
import threading
import time

from turngate.shells import process_tree as tree

STARTING, ENDED = 0, -1  # in the list in place of the PID of a run's first process
START_S = 0.2  # after which a process that was being started has the environment of its run
_WAIT = 'trap "" HUP INT TERM; read -r _ || exec "$@"'
_END_RUNS = "import sys; sys.path.append(sys.argv[1]); from turngate.shells.process_watcher import end_runs; end_runs()"
_SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class ProcessWatcher:
    """The list of the runs of this process, and the shell. If the shell cannot be started, nothing is watched."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running = 0
        self._pipe = self._list = -1  # descriptors

    def note(self, marker: str, pid: int) -> None:
        """Note where a run stands: STARTING before its first process is started, then its PID, then ENDED."""
        with self._lock, contextlib.suppress(OSError):  # no process, descriptor or memory is left
            self._running += (pid == STARTING) - (pid == ENDED)
            if self._pipe < 0 and pid == STARTING:
                self._start()
            os.write(self._list, f"{marker} {pid}\n".encode())
            if not self._running:
                os.ftruncate(self._list, 0)
                os.lseek(self._list, 0, os.SEEK_SET)

    def stop(self) -> None:
        """Let the shell end when this process exits, unless a command still runs then."""
        if self._pipe >= 0 and not self._running:
            with contextlib.suppress(OSError):
                os.write(self._pipe, b"\n")

    def forget(self) -> None:
        """In a forked process: the shell is that of the parent."""
        if self._pipe >= 0:
            os.close(self._pipe)
            os.close(self._list)
        self._lock, self._running, self._pipe, self._list = threading.Lock(), 0, -1, -1

    def _start(self) -> None:
        import subprocess  # noqa: PLC0415 # lazy: the process that ends the runs does not need it

        fds = [*os.pipe()]
        try:
            fds.append(_open_list())
            python = (sys.executable, "-I", "-S", "-B", "-c", _END_RUNS, _SOURCE)
            popen = subprocess.Popen(  # noqa: S603 - our own script
                ("/bin/sh", "-c", _WAIT, "turngate-watch", *python),
                stdin=fds[0],
                stdout=fds[2],
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            for fd in fds[1:]:
                os.close(fd)
            raise
        finally:
            os.close(fds[0])
        popen.returncode = 0  # it ends after this process, so nothing waits for it
        _, self._pipe, self._list = fds


def _open_list() -> int:
    if hasattr(os, "memfd_create"):
        return os.memfd_create("turngate-runs")
    from tempfile import TemporaryFile  # noqa: PLC0415 # lazy: not on Linux, and it loads bz2 and lzma

    with TemporaryFile() as file:
        return os.dup(file.fileno())


def end_runs() -> None:
    """End the runs in the list, which is stdout of this process: TERM, and KILL after the grace time."""
    with open(1, "rb") as file:
        file.seek(0)
        lines = [line.split() for line in file.read().decode().splitlines()]
    runs = {marker: int(pid) for marker, pid in lines}
    if STARTING in runs.values():
        time.sleep(START_S)
    trees = [(pid, marker) for marker, pid in runs.items() if pid != ENDED]
    members = [tree.signal_tree(*each, tree.TERM) for each in trees]
    deadline = time.monotonic() + tree.KILL_GRACE_S
    while any(map(tree.any_alive, members)) and time.monotonic() < deadline:
        time.sleep(0.01)
    for each, found in zip(trees, members, strict=True):
        tree.kill_tree(*each, found)


WATCHER = ProcessWatcher()
os.register_at_fork(after_in_child=WATCHER.forget)
atexit.register(WATCHER.stop)
