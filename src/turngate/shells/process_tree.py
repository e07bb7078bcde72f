"""Finds and ends everything that descends from one process, also what tried to get away.

A process belongs to a run when it is a descendant of the run's first process, is in its session or group, or
carries the run's mark in the environment it was started with. Without /proc (macOS) only the group is known.
"""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Collection, Mapping
from typing import NamedTuple

VARIABLE = "TURNGATE_RUN"  # marks of all runs that a process descends from, outermost first
TERM = signal.SIGTERM
KILL = signal.SIGKILL
HUNT = 2.0  # seconds after which we give up on a fork bomb
CHASE = 0.02  # seconds of one chase after processes that live shorter than a look takes
EMPTY_LOOKS = 3  # in a row, until we believe that nobody is left


class Member(NamedTuple):
    pid: int
    started: str  # tells a process from a later one with the same number


class _Stat(NamedTuple):
    ended: bool
    parent: int
    group: int
    session: int
    started: str


def new_run_marker() -> str:
    return os.urandom(8).hex()


def marked(env: Mapping[str, str], mark: str) -> str:
    outer = env.get(VARIABLE)
    return f"{outer}:{mark}" if outer else mark


def signal_all(root: int, mark: str, number: signal.Signals) -> set[Member]:
    """Parents first: a shell whose child dies before it goes on to the next command of its script."""
    members = find(root, mark)
    for member in sorted(members, key=lambda member: (int(member.started), member.pid)):
        _send(member, number)
    if not members:
        _send_to_group(root, number)
    return members


def kill_all(root: int, mark: str, known: Collection[Member]) -> None:
    """Stops them all before it kills any, so that nobody gives birth behind our back.

    One look that finds nobody proves little: who forks and ends all the time may be between two lives.
    """
    known = {member for member in known if _alive(member)}
    deadline = time.monotonic() + HUNT
    empty = 0
    try:
        while empty < EMPTY_LOOKS and time.monotonic() < deadline:
            newest = _newest()
            members = find(root, mark, known)
            caught = bool(members) or (_newest() != newest and _chase(mark.encode()))
            empty = 0 if caught else empty + 1
            for number in (signal.SIGSTOP, KILL):
                for member in members:
                    _send(member, number)
            known |= members
    finally:
        kill_group(root)


def _chase(needle: bytes) -> bool:
    """Looks at nothing but the newest processes: who lives for less than a look takes is seen only so."""
    caught, last = False, 0
    deadline = time.monotonic() + CHASE
    while time.monotonic() < deadline:
        newest = _newest()
        if newest == last:
            continue
        last = newest
        for pid in range(newest, newest + 3):  # the next one may be born while we look
            if needle in _environment(pid) and pid != os.getpid():
                caught = True
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, KILL)
    return caught


def _newest() -> int:
    """The number of the process that was started last; 0 where nobody knows."""
    try:
        fd = os.open("/proc/loadavg", os.O_RDONLY)
    except OSError:
        return 0
    try:
        return int(os.read(fd, 200).rsplit(b" ", 1)[1])
    finally:
        os.close(fd)


def find(root: int, mark: str, known: Collection[Member] = ()) -> set[Member]:
    """All living members of a run; `known` ones count with their descendants, wherever they went."""
    table, environments = _scan()
    needle = mark.encode()
    ours = {m.pid for m in known if m.pid in table and table[m.pid].started == m.started}
    ours |= {pid for pid, stat in table.items() if root in (pid, stat.session, stat.group)}
    ours |= {pid for pid in table if pid not in ours and needle in environments[pid]}
    grown = True
    while grown:
        children = {pid for pid, stat in table.items() if stat.parent in ours and pid not in ours}
        ours |= children
        grown = bool(children)
    ours.discard(os.getpid())
    return {Member(pid, table[pid].started) for pid in ours if not table[pid].ended}


def any_alive(members: Collection[Member]) -> bool:
    return any(_alive(member) for member in members)


def _alive(member: Member) -> bool:
    stat = _stat(member.pid)
    return stat is not None and stat.started == member.started and not stat.ended


def _send(member: Member, number: signal.Signals) -> None:
    if _alive(member):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(member.pid, number)


def kill_group(root: int) -> None:
    _send_to_group(root, KILL)


def _send_to_group(root: int, number: signal.Signals) -> None:
    """The first process is ours until we take its exit status, and with it its group's number."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(root, number)


_scanning = threading.Lock()
_last: tuple[float, dict[int, _Stat], dict[int, bytes]] = (-1.0, {}, {})


def _scan() -> tuple[dict[int, _Stat], dict[int, bytes]]:
    """All processes, with the environments they were started with.

    Many runs may end together: whoever waited while somebody else looked takes what that look saw, if it began
    after the wait did.
    """
    global _last  # noqa: PLW0603 - one look for all
    wanted = time.monotonic()
    with _scanning:
        if _last[0] < wanted:
            began = time.monotonic()
            table = _process_table()
            _last = (began, table, {pid: _environment(pid) for pid in table})
        return _last[1], _last[2]


def _process_table() -> dict[int, _Stat]:
    try:
        names = os.listdir("/proc")
    except OSError:  # no /proc, or no descriptor left to read it: the group is all that we know
        return {}
    stats = ((int(name), _stat(int(name))) for name in names if name.isdigit())
    return {pid: stat for pid, stat in stats if stat is not None}


def _stat(pid: int) -> _Stat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read()
        # The name stands in brackets and may itself hold blanks and brackets.
        words = line[line.rindex(b")") + 2 :].decode("ascii", "replace").split()
        ended = words[0] in "ZX" and int(words[17]) <= 1  # a first thread may be gone while others work
        return _Stat(ended, int(words[1]), int(words[2]), int(words[3]), words[19])
    except (OSError, ValueError, IndexError):
        return None


def _environment(pid: int) -> bytes:
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read()
    except OSError:  # another user's, or gone
        return b""
