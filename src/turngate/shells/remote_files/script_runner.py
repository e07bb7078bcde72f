"""ScriptRunner: run a short script on the machine of a shell, while a thread waits for its answer.

The commands run on the event loop of the session. One that does not answer is ended in the background, and so is never
waited for.
"""

import asyncio
import concurrent.futures
import errno
import os
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from turngate.core.answers.reports import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.filesystem.files import MachineUnreachable
from turngate.ports import BoundedOutput, ConnectionLost, HookRunContext, Shell
from turngate.shells.remote_files.scripts import error_of

PAUSE_S = 5.0  # after the machine did not answer, in which nothing is asked
START_TIMEOUT_S = 10.0  # of a login shell, when the server has already answered
MAX_WAIT_S = 1.0  # until the next look at how much was printed
MAX_ERROR_BYTES = 64 * 1024
MAX_ARGUMENT_BYTES = 64 * 1024  # of a path, and of all names of one command; systems allow 128 KiB or more


class Limit(NamedTuple):
    """The time that a script may take, without the time that it waits for a channel or for the login shell."""

    seconds: float
    while_silent: bool = False  # it counts from the last output


class ScriptRunner:
    """After the machine did not answer, all calls fail at once for PAUSE_S."""

    def __init__(self, shell: Shell, loop: asyncio.AbstractEventLoop, environ: Mapping[str, str]) -> None:
        self.loop = loop
        self._unreachable: MachineUnreachable | None = None  # the machine did not answer the last call
        self._unreachable_since = 0.0
        self._shell, self._environ = shell, environ
        self._ending: set[asyncio.Task[Exited]] = set()

    def run(
        self,
        script: str,
        args: Sequence[str],
        *,
        path: str,
        stdin: bytes = b"",
        max_bytes: int,
        limit: Limit,
    ) -> HookRunContext:
        """Return the output of a script about the file `path`. Raises MachineUnreachable, or OSError if the script fails."""
        self._check_call(path)
        answer = HookRunContext()
        answer.stdout, answer.stderr = BoundedOutput(max_bytes), BoundedOutput(MAX_ERROR_BYTES)
        hook = CommandHook("/bin/sh", args=("-c", script, "sh", *args))
        exited = self._on_loop(hook, stdin, answer, limit)
        if exited.code != 0:
            raise error_of(answer.stderr.data().decode("utf-8", "surrogateescape"), path)
        if answer.stdout.truncated:
            raise OSError(errno.EFBIG, f"there is more than {max_bytes:,} bytes of it", path)
        return answer

    def _check_call(self, path: str) -> None:
        try:
            is_here = asyncio.get_running_loop() is self.loop
        except RuntimeError:
            is_here = False
        if is_here:
            raise RuntimeError("the files of another machine cannot be read on the event loop: use a thread")
        if "\0" in path:
            raise ValueError("embedded null byte")
        if len(path.encode("utf-8", "surrogateescape")) > MAX_ARGUMENT_BYTES:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path[:100])
        if self._unreachable is not None and time.monotonic() < self._unreachable_since + PAUSE_S:
            raise MachineUnreachable(str(self._unreachable))

    def _on_loop(self, hook: CommandHook, stdin: bytes, answer: HookRunContext, limit: Limit) -> Exited:
        """Run a command on the event loop, while this thread waits."""
        call = self._ask(hook, stdin, answer, limit)
        try:
            exited = asyncio.run_coroutine_threadsafe(call, self.loop).result()
        except (concurrent.futures.CancelledError, RuntimeError):
            call.close()
            raise MachineUnreachable("the session has ended") from None
        except TimeoutError as error:
            why = error.strerror or f"the machine did not answer within {limit.seconds:.3g} s"
            raise self._pause(why) from None
        except OSError as error:
            raise self._pause(error.strerror or str(error)) from None
        self._unreachable = None
        return exited

    def _pause(self, why: str) -> MachineUnreachable:
        self._unreachable_since = time.monotonic()
        self._unreachable = MachineUnreachable(why)
        return self._unreachable

    async def _ask(self, hook: CommandHook, stdin: bytes, answer: HookRunContext, limit: Limit) -> Exited:
        """Run a command, which may be tried again if it only reads. Raises TimeoutError."""
        try:
            return await self._ask_once(hook, stdin, answer, limit)
        except ConnectionLost:
            if stdin:
                raise
        answer.stdout, answer.stderr = BoundedOutput(answer.stdout.limit), BoundedOutput(answer.stderr.limit)
        return await self._ask_once(hook, stdin, answer, limit)

    async def _ask_once(
        self, hook: CommandHook, stdin: bytes, answer: HookRunContext, limit: Limit
    ) -> Exited:
        running = self._shell.run(hook, cwd="/", env=self._environ, stdin=stdin, live=answer)
        task = asyncio.create_task(running, name="files")
        start, received = self.loop.time(), 0
        try:
            while not task.done():
                seconds = max(limit.seconds, START_TIMEOUT_S) if answer.is_starting else limit.seconds
                rest = max(start, answer.runs_since) + seconds - self.loop.time()
                if rest <= 0:
                    raise TimeoutError(errno.ETIMEDOUT, f"the machine did not answer within {seconds:.3g} s")
                await asyncio.wait({task}, timeout=min(rest, limit.seconds, MAX_WAIT_S))
                if answer.stdout.truncated:
                    return Exited(0)  # `run` raises OSError: it may print for ever
                if limit.while_silent and answer.stdout.size > received:
                    start, received = self.loop.time(), answer.stdout.size
            return task.result()
        finally:
            if not task.done():
                self._end(task)

    def _end(self, task: "asyncio.Task[Exited]") -> None:
        """Cancel a command, which then ends its processes; on a dead connection that takes long."""
        self._ending.add(task)
        task.add_done_callback(self._ended)
        task.cancel()

    def _ended(self, task: "asyncio.Task[Exited]") -> None:
        self._ending.discard(task)
        if not task.cancelled():
            task.exception()
