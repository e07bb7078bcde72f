"""One gate is checked once at a time in one project: another stop waits, and takes the result for the same files."""

import asyncio
import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator
from typing import Any

from turngate.core.constants import IN_GATE
from turngate.gates.gate import GateContext
from turngate.gates.run_commands import ProjectCommands
from turngate.state.files import make_private_dir, open_regular_file

POLL_S = 0.1


class GateLock:
    """A file that the process that checks the gate has locked; the kernel frees the lock of a process that dies."""

    def __init__(self, fd: int | None) -> None:
        self._fd = fd
        self.waited = 0.0  # seconds
        self.shared: dict[str, Any] = {}  # what the process has left that was waited for

    async def acquire(self, commands: ProjectCommands) -> bool:
        """Wait until no other check holds the lock. Return False if the time of the commands is up before."""
        begun = time.monotonic()
        while self._fd is not None and not _try_lock(self._fd):
            if commands.is_out_of_time:
                return False
            await asyncio.sleep(POLL_S)
            self.waited = time.monotonic() - begun
        if self._fd is not None and self.waited:
            with contextlib.suppress(ValueError):  # the disk was full
                self.shared = json.loads(os.pread(self._fd, os.fstat(self._fd).st_size, 0))
        self.share({})
        return True

    def share(self, result: dict[str, Any]) -> None:
        """Leave a result for those that wait."""
        if self._fd is not None:
            with contextlib.suppress(OSError):  # a full disk: they check for themselves
                os.ftruncate(self._fd, 0)
                os.pwrite(self._fd, json.dumps(result).encode(), 0)


@contextlib.contextmanager
def open_gate_lock(context: GateContext) -> Iterator[GateLock]:
    """Open the lock of a gate in this project. Without a state folder, and below another gate, nothing waits.

    A gate whose command checks a gate would wait for itself.
    """
    fd = None
    if (
        context.state_folder
        and context.state.path
        and context.commands.is_local
        and IN_GATE not in os.environ
    ):
        folder = os.path.join(context.state_folder, "locks")
        with contextlib.suppress(OSError):
            make_private_dir(folder)
            path = os.path.join(folder, os.path.basename(context.state.path))
            fd = open_regular_file(path, os.O_RDWR | os.O_CREAT)
    try:
        yield GateLock(fd)
    finally:
        if fd is not None:
            os.close(fd)


def _try_lock(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
