"""One gate is checked once at a time in one project: another stop waits, and takes the result for the same files."""

import asyncio
import contextlib
import fcntl
import json
import os
import time
from typing import Any

from turngate.core.constants import IN_GATE
from turngate.gates.gate import GateContext
from turngate.gates.run_commands import ProjectCommands
from turngate.state.files import make_private_dir, open_regular_file

POLL_S = 0.1


def open_gate_lock(context: GateContext) -> "GateLock | None":
    """Return the lock of a gate in this project. None: nothing waits without a state folder, and below another gate.

    A gate whose command checks a gate would wait for itself.
    """
    if (
        not (context.state_folder and context.state.path and context.commands.is_local)
        or IN_GATE in os.environ
    ):
        return None
    folder = os.path.join(context.state_folder, "locks")
    try:
        make_private_dir(folder)
        return GateLock(os.path.join(folder, os.path.basename(context.state.path)))
    except OSError:
        return None


class GateLock:
    """A file that the process that checks the gate has locked; the kernel frees the lock of a process that dies."""

    def __init__(self, path: str) -> None:
        self._fd = open_regular_file(path, os.O_RDWR | os.O_CREAT)
        self.waited = 0.0  # seconds
        self.shared: dict[str, Any] = {}  # what the process has left that was waited for

    async def acquire(self, commands: ProjectCommands) -> bool:
        """Wait until no other check holds the lock. Return False if the time of the commands is up before."""
        begun = time.monotonic()
        while not self._try_lock():
            if commands.is_out_of_time:
                return False
            await asyncio.sleep(POLL_S)
            self.waited = time.monotonic() - begun
        if self.waited:
            with contextlib.suppress(ValueError):  # the disk was full
                self.shared = json.loads(os.pread(self._fd, os.fstat(self._fd).st_size, 0))
        self.share({})
        return True

    def share(self, result: dict[str, Any]) -> None:
        """Leave a result for those that wait."""
        with contextlib.suppress(OSError):  # a full disk: they check for themselves
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, json.dumps(result).encode(), 0)

    def close(self) -> None:
        os.close(self._fd)

    def _try_lock(self) -> bool:
        with contextlib.suppress(OSError):  # a file system without locks
            try:
                fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
        return True
