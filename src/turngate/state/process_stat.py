"""Processes as /proc shows them; without /proc (macOS) none is known."""

import os
from typing import NamedTuple


class ProcessId(NamedTuple):
    pid: int
    started: str  # tells a process from a later one with the same PID


class ProcessStat(NamedTuple):
    ended: bool
    parent: int
    group: int
    session: int
    started: str


def this_process() -> ProcessId:
    stat = read_stat(os.getpid())
    return ProcessId(os.getpid(), stat.started if stat else "")


def is_alive(process: ProcessId) -> bool:
    stat = read_stat(process.pid)
    return stat is not None and stat.started == process.started and not stat.ended


def read_stat(pid: int) -> ProcessStat | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            line = file.read()
        # The program's name is in parentheses and may itself contain spaces and parentheses.
        words = line[line.rindex(b")") + 2 :].decode("ascii", "replace").split()
        ended = words[0] in "ZX" and int(words[17]) <= 1  # the first thread may be gone while others run
        return ProcessStat(ended, int(words[1]), int(words[2]), int(words[3]), words[19])
    except (OSError, ValueError, IndexError):
        return None
