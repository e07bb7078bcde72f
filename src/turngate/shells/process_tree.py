"""Find and end every process that descends from one process, also those that left its session, and when this process dies.

A process belongs to a run when it is a descendant of the run's first process, is in its session or group, or
has the run's marker in its initial environment. Without /proc (macOS) only the group is known. The first process may be
unknown: its PID is 0 then.

If this process dies before its commands, also by SIGKILL, a shell ends them that is started with the first command. It
waits for the end of a pipe, whose other end only this process has. Then it becomes a Python that ends the process trees
of the runs in a list. The list is a file that both have open, so a run costs two short writes. The shell costs 0.8 ms of
processor time, once in a process.
"""

import atexit
import contextlib
import math
import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

from turngate.state.process_stat import ProcessId, ProcessStat, is_alive, read_stat

Member = ProcessId  # of a run
VARIABLE = "TURNGATE_RUN"  # markers of all runs that a process descends from, outermost first
TERM = signal.SIGTERM
KILL = signal.SIGKILL
KILL_GRACE_S = 0.5  # between TERM and KILL
KILL_TIMEOUT_S = 2.0  # then kill_tree gives up on processes that keep forking
OLDER_KEPT_S = 5.0  # before a PID may have been given to another process
EMPTY_SCANS = 3  # scans in a row without a member, until the tree counts as gone


def new_run_marker() -> str:
    return os.urandom(8).hex()


def add_marker(env: Mapping[str, str], marker: str) -> str:
    """Return the value of VARIABLE for a new run in this environment."""
    outer = env.get(VARIABLE)
    return f"{outer}:{marker}" if outer else marker


def signal_tree(root: int, marker: str, number: signal.Signals) -> set[Member]:
    """Send a signal to every member and return them. Parents come first: a shell whose child ends first goes on with its script."""
    members = find_members(root, marker)
    for member in sorted(members, key=lambda member: (int(member.started), member.pid)):
        _send(member, number)
    if not members:
        send_to_group(root, number)
    return members


def kill_tree(root: int, marker: str, earlier: Collection[Member]) -> None:
    """Kill every member, and the members they start meanwhile.

    All are stopped before one is killed, so that none can fork after the scan. One empty scan proves little:
    a process that forks and exits repeatedly may have been between a fork and an exit.
    """
    earlier = {member for member in earlier if is_alive(member)}
    deadline = time.monotonic() + KILL_TIMEOUT_S
    empty = 0
    try:
        while empty < EMPTY_SCANS and time.monotonic() < deadline:
            members = find_members(root, marker, earlier)
            empty = 0 if members else empty + 1
            for number in (signal.SIGSTOP, KILL):
                for member in members:
                    _send(member, number)
            earlier |= members
    finally:
        send_to_group(root, KILL)


def find_members(root: int, marker: str, earlier: Collection[Member] = ()) -> set[Member]:
    """Return all living members of a run, with the descendants of `earlier` members, wherever they went."""
    table, environments = _scan()
    needle = marker.encode()
    pids = {m.pid for m in earlier if m.pid in table and table[m.pid].started == m.started}
    pids |= {pid for pid, stat in table.items() if root and root in (pid, stat.session, stat.group)}
    pids |= {pid for pid in table if pid not in pids and needle in environments[pid]}
    grown = True
    while grown:
        children = {pid for pid, stat in table.items() if stat.parent in pids and pid not in pids}
        pids |= children
        grown = bool(children)
    pids.discard(os.getpid())
    return {Member(pid, table[pid].started) for pid in pids if not table[pid].ended}


def any_alive(members: Collection[Member]) -> bool:
    return any(is_alive(member) for member in members)


def _send(member: Member, number: signal.Signals) -> None:
    if is_alive(member):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(member.pid, number)


def send_to_group(root: int, number: signal.Signals) -> None:
    """Signal the group of the first process, which keeps its number until we collect the exit status."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if root:
            os.killpg(root, number)


class _Scan(NamedTuple):
    began: float
    table: dict[int, ProcessStat]
    environments: dict[int, bytes]
    older: set[int]  # processes that are older than this one, which belong to no run


_scan_lock = threading.Lock()
_last_scan = _Scan(-math.inf, {}, {}, set())


def _scan() -> tuple[dict[int, ProcessStat], dict[int, bytes]]:
    """Return all processes that are not older than this one, with their initial environments; one scan serves all that wait for the lock."""
    global _last_scan  # noqa: PLW0603 - one scan for all runs
    called_at = time.monotonic()
    with _scan_lock:
        if _last_scan.began < called_at:
            began = time.monotonic()
            known = _last_scan.older if began < _last_scan.began + OLDER_KEPT_S else set()
            table, older = _read_processes(known)
            _last_scan = _Scan(began, table, {pid: _environment(pid) for pid in table}, older)
        return _last_scan.table, _last_scan.environments


def _read_processes(older: set[int]) -> tuple[dict[int, ProcessStat], set[int]]:
    """Return the processes that are not older than this one, and the PIDs of the others; those in `older` are known."""
    try:
        pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:  # no /proc, or no descriptor left to read it: only the group is known
        return {}, set()
    stats = ((pid, read_stat(pid)) for pid in pids - older)
    found = {pid: stat for pid, stat in stats if stat is not None}
    own = int(found[os.getpid()].started) if os.getpid() in found else 0
    table = {pid: stat for pid, stat in found.items() if int(stat.started) >= own}
    return table, (pids & older) | (found.keys() - table.keys())


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:  # another user's process, or gone
        return b""


# If this process dies before its commands

STARTING, ENDED = 0, -1  # in the list in place of the PID of a run's first process
START_S = 0.2  # after which a process that was being started has the environment of its run
_WAIT = 'trap "" HUP INT TERM; read -r _ || exec "$@"'
_END_RUNS = (
    "import sys; sys.path.append(sys.argv[1]); from turngate.shells.process_tree import end_runs; end_runs()"
)
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
    members = [signal_tree(*each, TERM) for each in trees]
    deadline = time.monotonic() + KILL_GRACE_S
    while any(map(any_alive, members)) and time.monotonic() < deadline:
        time.sleep(0.01)
    for each, found in zip(trees, members, strict=True):
        kill_tree(*each, found)


WATCHER = ProcessWatcher()
os.register_at_fork(after_in_child=WATCHER.forget)
atexit.register(WATCHER.stop)
