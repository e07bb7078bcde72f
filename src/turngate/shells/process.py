"""One child process in its own session: fed, read and waited for without blocking, and gone when we leave.

asyncio's own subprocesses are not used: on Python 3.11 their `wait()` hangs while a grandchild holds a pipe,
and their return code can be an invented 255. Here the exit comes from the kernel (a pidfd), the return code
from `waitpid` or not at all, and pipes that somebody else still holds are left alone after half a second.
"""

import asyncio
import contextlib
import os
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence

from turngate.aio.cancellation import finish_despite_cancel
from turngate.aio.threads import run_in_thread_or_inline
from turngate.core.reports import Exited
from turngate.ports import BoundedOutput, RunContext
from turngate.shells import process_tree as tree

LINGER = 0.5  # seconds that we read on after the exit, while somebody still holds the pipes
GRACE = 0.5  # seconds between TERM and KILL
SHORT = 0.004  # seconds; what ends sooner is read once, at its end, and needs no watching of its pipes
CHUNK = 64 * 1024  # larger ones are slower: each read allocates anew
PIPE_MOST = 1024 * 1024  # no pipe holds more


class NotStarted(OSError):
    """The program could not be started; nothing of it ran."""


async def run_process(
    argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: bytes, live: RunContext
) -> Exited:
    """Runs a program to its end. Raises NotStarted when it can not be started.

    Cancelled, it ends the whole tree of processes first: TERM, and KILL half a second later.
    """
    mark = tree.new_run_marker()
    child = _Child(argv, cwd=cwd, env={**env, tree.VARIABLE: tree.marked(env, mark)}, stdin=stdin, live=live)
    try:
        await child.ended()
        if not child.all_read:
            live.on_exit()
            await child.end_of_output()
        return child.exited(held=not child.all_read)
    except asyncio.CancelledError:
        if child.exit.done():  # it ended in time, and our timer was only quicker to be heard
            live.ended = child.exited(held=not child.all_read)
        await finish_despite_cancel(_end_tree(child, mark))
        raise
    finally:
        child.close()


async def _end_tree(child: "_Child", mark: str) -> None:
    """Ends everything that descends from the child, also what left its session.

    We read on until all are gone: who prints its last words into a closed pipe dies of that, in the middle of them.
    """
    members: set[tree.Member] = set()
    try:
        members = await run_in_thread_or_inline(tree.signal_all, child.pid, mark, tree.TERM)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + GRACE
        while tree.any_alive(members) and loop.time() < deadline:
            await asyncio.sleep(0.01)
        await run_in_thread_or_inline(tree.kill_all, child.pid, mark, members)
        await asyncio.wait({child.exit}, timeout=GRACE)
    except Exception:  # noqa: BLE001 - no descriptor, no memory: its group is all that can still be reached
        tree.kill_group(child.pid)
    except BaseException:  # the loop itself is ending: there is no time left to ask politely
        tree.kill_all(child.pid, mark, members)
        raise


class _Child:
    """The process and our ends of its three pipes."""

    def __init__(
        self, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], stdin: bytes, live: RunContext
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._live = live
        self._popen, self._in, out, err = _start(argv, cwd, env)
        self.pid = self._popen.pid
        self._code: int | None = None
        self._pidfd: int | None = None
        self._watched = self._writing = False
        self.exit: asyncio.Future[None] = self._loop.create_future()
        self._waiter: asyncio.Future[None] = self._loop.create_future()
        self._drained: asyncio.Future[None] = self._loop.create_future()
        self._outputs: dict[int, BoundedOutput] = {out: live.stdout, err: live.stderr}
        self._stdin = memoryview(stdin)
        self._start_reading = self._loop.call_later(SHORT, self._watch_output)
        try:
            self._pidfd = _watch_exit(self._loop, self.pid, self._on_exit)
            self._write()
        except BaseException:
            self.close()
            raise

    @property
    def all_read(self) -> bool:
        return not self._outputs

    def exited(self, *, held: bool) -> Exited:
        code = self._exit_code()
        stdout, stderr = self._live.stdout, self._live.stderr
        return Exited(
            code=code if code >= 0 else 128 - code,
            stdout=stdout.text(),
            stderr=stderr.text(),
            signal=-code if code < 0 else None,
            held=held,
            cut=stdout.cut,
        )

    async def ended(self) -> None:
        """Waits for the exit. Cancelled, the wait ends and not `exit`: a shield would cost a turn of the loop."""
        if not self.exit.done():
            await self._waiter

    async def end_of_output(self) -> None:
        """After the exit: everything that was printed before it, and up to half a second more."""
        if self._outputs:
            self._watch_output()
            await asyncio.wait({self._drained}, timeout=LINGER)

    def stop_reading(self) -> None:
        for fd in tuple(self._outputs):
            self._forget(fd)

    def close(self) -> None:
        """Leaves no descriptor and no child behind, whatever happened."""
        self._start_reading.cancel()
        self._close_stdin()
        self.stop_reading()
        self._unwatch()
        if not self.exit.done():
            tree.kill_group(self.pid)
        self._reap()
        for future in (self.exit, self._waiter, self._drained):
            future.cancel()

    def _exit_code(self) -> int:
        """From the kernel. ChildProcessError: somebody else took it, and we invent none.

        The zombie stays until we leave, and with it the number of its session and group.
        """
        if self._code is None:
            try:
                ended = _ended(self.pid)
            except ChildProcessError:
                raise ChildProcessError(
                    "its exit code is lost: something else waited for our child"
                ) from None
            self._code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        return self._code

    def _reap(self) -> None:
        def wait(options: int) -> int:
            try:
                return os.waitpid(self.pid, options)[0]
            except ChildProcessError:
                return self.pid

        self._popen.returncode = self._code if self._code is not None else -tree.KILL  # Popen need not wait
        if wait(os.WNOHANG):
            return
        reaper = threading.Thread(target=wait, args=(0,), daemon=True, name=f"turngate-reap-{self.pid}")
        try:
            reaper.start()  # killed, and the kernel takes its time
        except RuntimeError:  # no thread can be had
            self._look_again(wait)

    def _look_again(self, wait: Callable[[int], int]) -> None:
        if not wait(os.WNOHANG) and not self._loop.is_closed():
            self._loop.call_later(0.05, self._look_again, wait)

    def _watch_output(self) -> None:
        if not self._watched:
            self._watched = True
            for fd in self._outputs:
                self._loop.add_reader(fd, self._read, fd)

    def _on_exit(self) -> None:
        self._unwatch()
        self._start_reading.cancel()
        self._close_stdin()
        for fd in tuple(self._outputs):
            self._read(fd, most=PIPE_MOST)
        for future in (self.exit, self._waiter):
            if not future.done():
                future.set_result(None)

    def _read(self, fd: int, *, most: int = 1) -> None:
        """Reads at least once, and on until `most` bytes are taken or nothing is there."""
        output = self._outputs[fd]
        taken = 0
        while taken < most:
            try:
                data = os.read(fd, CHUNK)
            except (BlockingIOError, InterruptedError):
                return
            if not data:
                self._forget(fd)
                return
            output.feed(data)
            taken += len(data)

    def _forget(self, fd: int) -> None:
        del self._outputs[fd]
        if self._watched:
            self._loop.remove_reader(fd)
        os.close(fd)
        if not self._outputs and not self._drained.done():
            self._drained.set_result(None)

    def _write(self) -> None:
        """A hook that does not want its input is normal."""
        try:
            self._stdin = self._stdin[os.write(self._in, self._stdin) :]
        except (BlockingIOError, InterruptedError):
            pass
        except BrokenPipeError:
            self._stdin = memoryview(b"")
        if not self._stdin:
            self._close_stdin()
        elif not self._writing:
            self._writing = True
            self._loop.add_writer(self._in, self._write)

    def _close_stdin(self) -> None:
        if self._in >= 0:
            if self._writing:
                self._loop.remove_writer(self._in)
            os.close(self._in)
            self._in = -1

    def _unwatch(self) -> None:
        if self._pidfd is not None:
            self._loop.remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None


def _start(
    argv: Sequence[str], cwd: str, env: Mapping[str, str]
) -> tuple["subprocess.Popen[bytes]", int, int, int]:
    fds: list[int] = []
    try:
        for _ in range(3):
            fds += os.pipe()
        in_r, in_w, out_r, out_w, err_r, err_w = fds
        popen = subprocess.Popen(  # noqa: S603 - running what the settings name is what we are for
            argv, stdin=in_r, stdout=out_w, stderr=err_w, cwd=cwd, env=env, start_new_session=True
        )
    except BaseException as error:
        for fd in fds:
            os.close(fd)
        if len(fds) == 6 and isinstance(error, OSError):  # the pipes stand: it was the program
            raise NotStarted(error.errno, error.strerror, error.filename) from None
        raise
    for fd in (in_r, out_w, err_w):
        os.close(fd)
    for fd in (in_w, out_r, err_r):
        os.set_blocking(fd, False)
    return popen, in_w, out_r, err_r


def _watch_exit(loop: asyncio.AbstractEventLoop, pid: int, on_exit: Callable[[], None]) -> int | None:
    """Calls back in the loop when the process has ended; it stays a zombie until we take its status."""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # an old kernel
            pidfd = os.pidfd_open(pid)
            loop.add_reader(pidfd, on_exit)
            return pidfd

    def wait() -> None:  # macOS (untested)
        with contextlib.suppress(ChildProcessError):
            _ended(pid)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(on_exit)

    threading.Thread(target=wait, daemon=True, name=f"turngate-wait-{pid}").start()
    return None


def _ended(pid: int) -> os.waitid_result:
    """How a process ended; waits for it, and leaves it a zombie."""
    while (result := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)) is None:
        pass
    return result
