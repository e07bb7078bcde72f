"""LocalShell: run commands on this machine, each as a child process in its own session, and leave nothing of it behind.

How many commands run at once is limited, because each one holds file descriptors of this process.

asyncio's own subprocesses are not used: on Python 3.11 their `wait()` hangs while a grandchild holds a pipe,
and their return code can be an invented 255. Here the exit comes from the kernel (a pidfd) and the return code
from `waitid` or not at all. Pipes that another process still holds are abandoned after half a second.
"""

import asyncio
import contextlib
import errno
import os
import re
import resource
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from weakref import WeakKeyDictionary

from turngate.aio.threads import finish_despite_cancel, run_in_thread
from turngate.core.answers.report_types import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.ports import BoundedOutput, HookRunContext, NotStarted
from turngate.shells import process_tree as tree
from turngate.shells.process_tree import ENDED, KILL_GRACE_S, STARTING, WATCHER

FDS_PER_PROCESS = 5  # three pipes, a pidfd, and a share of what starting a process needs
RESERVED_FDS = 128  # for everything else in this process
MIN_SLOTS = 4
MAX_SLOTS = 4096


# For each loop the pool of foreground hooks and that of background hooks, which never delay the others.
_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[asyncio.Semaphore, asyncio.Semaphore]]
_slots = WeakKeyDictionary()


def _slot_count() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_SLOTS
    return max(MIN_SLOTS, min(MAX_SLOTS, (soft - RESERVED_FDS) // FDS_PER_PROCESS))


# A program with a path and plain words, which a shell would pass on unchanged. `~`, globs, quotes,
# variables and `VAR=x` before the program are shell syntax.
_ARGUMENTS = r"(?: +[\w./@%+:,=-]+)* *"
_PLAIN_COMMAND = re.compile(rf" *[\w.@%+:,-]*/[\w./@%+:,-]*{_ARGUMENTS}", re.ASCII)

# The same with the name of a program, which may also be the name of something in the shell.
_NAMED_COMMAND = re.compile(rf" *([A-Za-z0-9][\w.+-]*){_ARGUMENTS}", re.ASCII)

# Builtins and reserved words of dash, bash, ksh, zsh and BusyBox.
_SHELL_WORDS = frozenset(
    "alias|autoload|bg|bind|bindkey|break|builtin|bye|caller|case|cd|chdir|command|compgen|complete"
    "|compopt|continue|coproc|declare|dirs|disable|disown|do|done|echo|elif|else|emulate|enable|end"
    "|esac|eval|exec|exit|export|false|fc|fg|fi|float|for|foreach|function|functions|getln|getopts|hash"
    "|help|hist|history|if|in|integer|jobs|kill|let|limit|local|logout|mapfile|nameref|namespace|newgrp"
    "|nocorrect|noglob|popd|print|printf|pushd|pwd|read|readarray|readonly|rehash|repeat|return|select"
    "|set|setopt|shift|shopt|sleep|source|stop|suspend|test|then|time|times|trap|true|type|typeset"
    "|ulimit|umask|unalias|unfunction|unhash|unlimit|unset|unsetopt|until|vared|wait|whence|where|which"
    "|while|zmodload".split("|")
)

# setsid forks and returns at once when it leads its process group, as a directly started program does.
# Started by a shell, it waits.
_SETSID = re.compile(r"(?:^|[ /])setsid(?: |$)")


class LocalShell:
    """Run each command as a child process in a session of its own."""

    is_local = True

    def slot(self, *, background: bool = False) -> contextlib.AbstractAsyncContextManager[None]:
        """Wait for a slot of this process; all LocalShells share them, as they share its file descriptors."""
        loop = asyncio.get_running_loop()
        if loop not in _slots:
            total = _slot_count()
            _slots[loop] = asyncio.Semaphore(total - total // 4), asyncio.Semaphore(max(1, total // 4))
        return _slots[loop][background]

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: HookRunContext
    ) -> Exited:
        async def start(*argv: str, program: str | None = None) -> Exited:
            return await run_process(argv, cwd=cwd, env=env, stdin=stdin, live=live, program=program)

        if hook.args is not None:
            argv = (hook.command, *hook.args)
            try:
                return await start(*argv)
            except NotStarted as error:
                if error.errno != errno.ENOEXEC:
                    raise
                from shutil import which  # noqa: PLC0415 # lazy: few hooks need it, and it loads bz2 and lzma

                return await start(which("bash") or "/bin/sh", *argv)  # a script without a shebang
        if hook.shell == "powershell":
            from shutil import which  # noqa: PLC0415 # lazy: as above

            powershell = which("pwsh", path=env.get("PATH"))
            if powershell is None:
                return Exited(127, stderr='"shell" is "powershell", but pwsh is not in the PATH')
            return await start(powershell, "-NoProfile", "-NonInteractive", "-Command", hook.command)
        program = (
            _find_program(hook.command, env, by_name=live.finds_programs) if hook.shell is None else None
        )
        if program is not None:
            # On failure the shell below gives the reason with its own exit code (126, 127), and runs
            # a script that has no shebang line.
            words = hook.command.split()
            try:
                return await start(*words, program=program)
            except NotStarted as error:
                if error.errno == errno.ENOENT and (why := interpreter_problem(cwd, words[0])):
                    live.warnings.append(why)
        return await start(hook.shell or "/bin/sh", "-c", "--", hook.command)


def _find_program(command: str, env: Mapping[str, str], *, by_name: bool) -> str | None:
    """Return the program of a plain command, or None if the command needs a shell, or only a shell may find it."""
    if _SETSID.search(command):
        return None
    if _PLAIN_COMMAND.fullmatch(command):
        return command.split(maxsplit=1)[0]
    named = _NAMED_COMMAND.fullmatch(command) if by_name else None
    if named is None or named[1] in _SHELL_WORDS or f"BASH_FUNC_{named[1]}%%" in env:
        return None
    for folder in env.get("PATH", "").split(":"):
        if not folder.startswith("/"):  # relative to the project; the shell knows what that means
            return None
        path = f"{folder}/{named[1]}"
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None


# One process


CR_LF_PROBLEM = "its first line ends with CR LF: save the file with LF line endings"
OUTPUT_GRACE_S = 0.5  # reading continues this long after the exit, while another process holds the pipes
TREE_POLL_S = 0.1  # while processes that a command left running are waited for
WATCH_DELAY_S = 0.004  # a process that ends sooner is read once, at its end: watching its pipes costs more
READ_BYTES = 64 * 1024  # larger reads are slower, because each allocates its buffer anew
MAX_PIPE_BYTES = 1024 * 1024  # Linux allows no larger pipe without privileges


async def run_process(
    argv: Sequence[str],
    *,
    cwd: str,
    env: Mapping[str, str],
    stdin: bytes,
    live: HookRunContext,
    program: str | None = None,
) -> Exited:
    """Run a program, by default the first argument, to its end. Raises NotStarted.

    When cancelled, end the whole process tree first: TERM, and KILL half a second later. It ends so also when this
    process is killed.
    """
    marker = tree.new_run_marker()
    marked_env = {**env, tree.VARIABLE: tree.add_marker(env, marker)}
    WATCHER.note(marker, STARTING)
    try:
        child = _Child(_start(argv, cwd, marked_env, program), stdin, live)
    except BaseException:
        WATCHER.note(marker, ENDED)
        raise
    try:
        WATCHER.note(marker, child.pid)
        await child.wait_for_exit()
        if not child.all_read:
            live.on_exit()
            await child.read_rest()
        return await _finish(child, marker, live)
    except asyncio.CancelledError:
        if child.exit.done():  # it ended in time, and our timer fired in the same turn of the loop
            live.ended = child.exited(held=not child.all_read)
        await finish_despite_cancel(_end_tree(child, marker))
        raise
    finally:
        child.close()
        WATCHER.note(marker, ENDED)


async def _finish(child: "_Child", marker: str, live: HookRunContext) -> Exited:
    """Return how the child ended. With `on_left_running`, wait for the processes that it left running."""
    exited = child.exited(held=not child.all_read)
    if live.on_left_running is None:
        return exited
    try:
        async with asyncio.timeout(0 if exited.held else OUTPUT_GRACE_S):
            await _wait_for_tree(child, marker)
    except TimeoutError:
        live.on_left_running(exited)
        await _wait_for_tree(child, marker)
    return exited


async def _wait_for_tree(child: "_Child", marker: str) -> None:
    while (members := await run_in_thread(tree.find_members, child.pid, marker)) or not child.all_read:
        if not members:  # another process has the pipes, or there is no /proc
            await child.read_rest()
        while tree.any_alive(members):
            await asyncio.sleep(TREE_POLL_S)


async def _end_tree(child: "_Child", marker: str) -> None:
    """End every process that descends from the child. Reading continues: one that prints while it cleans up would die of a closed pipe."""
    members: set[tree.Member] = set()
    try:
        members = await run_in_thread(tree.signal_tree, child.pid, marker, tree.TERM)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + KILL_GRACE_S
        while tree.any_alive(members) and loop.time() < deadline:
            await asyncio.sleep(0.01)
        await run_in_thread(tree.kill_tree, child.pid, marker, members)
        await asyncio.wait({child.exit}, timeout=KILL_GRACE_S)
    except BaseException as error:  # no thread can be started, or the loop itself is ending: no grace time
        tree.kill_tree(child.pid, marker, members)
        if not isinstance(error, Exception):
            raise


class _Child:
    """The process and our ends of its three pipes."""

    def __init__(self, started: "_Started", stdin: bytes, live: HookRunContext) -> None:
        self._loop = asyncio.get_running_loop()
        self._live = live
        self._popen, self._in, out, err = started
        self.pid = self._popen.pid
        self._code: int | None = None
        self._pidfd: int | None = None
        self._watched = self._writing = False
        self.exit: asyncio.Future[None] = self._loop.create_future()
        self._waiter: asyncio.Future[None] = self._loop.create_future()
        self._drained: asyncio.Future[None] = self._loop.create_future()
        self._outputs: dict[int, BoundedOutput] = {out: live.stdout, err: live.stderr}
        self._stdin = memoryview(stdin)
        self._start_reading = self._loop.call_later(WATCH_DELAY_S, self._watch_output)
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
            truncated=stdout.truncated,
        )

    async def wait_for_exit(self) -> None:
        """Wait for the exit. A cancellation cancels `_waiter`, not `exit`; a shield would cost a turn of the loop."""
        if not self.exit.done():
            await self._waiter

    async def read_rest(self) -> None:
        """After the exit, read until the pipes are closed, for at most OUTPUT_GRACE_S."""
        if self._outputs:
            self._watch_output()
            await asyncio.wait({self._drained}, timeout=OUTPUT_GRACE_S)

    def close(self) -> None:
        """Close every descriptor, and kill and reap the child if it still runs."""
        self._start_reading.cancel()
        self._close_stdin()
        for fd in tuple(self._outputs):
            self._close_output(fd)
        self._unwatch()
        if not self.exit.done():
            tree.send_to_group(self.pid, tree.KILL)
        self._reap()
        for future in (self.exit, self._waiter, self._drained):
            future.cancel()

    def _exit_code(self) -> int:
        """Return the exit code; the zombie stays until `close`, so that its number is not reused. Raises ChildProcessError if other code has it."""
        if self._code is None:
            try:
                status = _wait_for_status(self.pid)
            except ChildProcessError:
                raise ChildProcessError(
                    "its exit code is lost: other code in this process waited for the child process"
                ) from None
            self._code = status.si_status if status.si_code == os.CLD_EXITED else -status.si_status
        return self._code

    def _reap(self) -> None:
        def wait(options: int) -> int:
            try:
                return os.waitpid(self.pid, options)[0]
            except ChildProcessError:
                return self.pid

        self._popen.returncode = self._code if self._code is not None else -tree.KILL  # Popen need not wait
        if not wait(os.WNOHANG):  # killed, and the kernel is not done with it
            name = f"turngate-reap-{self.pid}"
            threading.Thread(target=wait, args=(0,), daemon=True, name=name).start()

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
            self._read(fd, min_bytes=MAX_PIPE_BYTES)
        for future in (self.exit, self._waiter):
            if not future.done():
                future.set_result(None)

    def _read(self, fd: int, *, min_bytes: int = 1) -> None:
        """Read at least once, until `min_bytes` are read or the pipe is empty."""
        output = self._outputs[fd]
        size = 0
        while size < min_bytes:
            try:
                data = os.read(fd, READ_BYTES)
            except (BlockingIOError, InterruptedError):
                return
            if not data:
                self._close_output(fd)
                return
            output.feed(data)
            size += len(data)

    def _close_output(self, fd: int) -> None:
        del self._outputs[fd]
        if self._watched:
            self._loop.remove_reader(fd)
        os.close(fd)
        if not self._outputs and not self._drained.done():
            self._drained.set_result(None)

    def _write(self) -> None:
        """Write as much of stdin as the pipe takes. A hook that does not read its input is not an error."""
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


_Started = tuple["subprocess.Popen[bytes]", int, int, int]  # the process, and our ends of its pipes


def _start(argv: Sequence[str], cwd: str, env: Mapping[str, str], program: str | None) -> _Started:
    fds: list[int] = []
    try:
        for _ in range(3):
            fds += os.pipe()
        in_r, in_w, out_r, out_w, err_r, err_w = fds
        popen = subprocess.Popen(  # noqa: S603 - the settings name the program
            argv,
            executable=program,
            stdin=in_r,
            stdout=out_w,
            stderr=err_w,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
    except BaseException as error:
        for fd in fds:
            os.close(fd)
        # If the pipes exist, the error means that the program could not be started.
        if len(fds) == 6 and isinstance(error, OSError):
            why = interpreter_problem(cwd, argv[0]) if error.filename == argv[0] else None
            raise NotStarted(error.errno, why or error.strerror, error.filename) from None
        raise
    for fd in (in_r, out_w, err_w):
        os.close(fd)
    for fd in (in_w, out_r, err_r):
        os.set_blocking(fd, False)
    return popen, in_w, out_r, err_r


def interpreter_problem(cwd: str, program: str) -> str | None:
    """Return what is wrong with the `#!` line of a script that could not be started, or None."""
    path = os.path.join(cwd, program)
    if "/" not in program or not os.path.isfile(path):
        return None
    try:
        with open(path, "rb") as file:
            line = os.fsdecode(file.readline(256))
    except OSError:
        return None
    if line.startswith("#!") and line.endswith("\r\n"):
        return CR_LF_PROBLEM
    interpreter = next(iter(line.removeprefix("#!").split()), "") if line.startswith("#!") else ""
    is_missing = interpreter and not os.path.exists(os.path.join(cwd, interpreter))
    return describe_missing_interpreter(interpreter) if is_missing else None


def describe_missing_interpreter(path: str) -> str:
    return f"its first line names the interpreter {path}, which does not exist"


def _watch_exit(loop: asyncio.AbstractEventLoop, pid: int, on_exit: Callable[[], None]) -> int | None:
    """Call back in the loop when the process has ended. Return its pidfd, or None without pidfds."""
    if hasattr(os, "pidfd_open"):
        with contextlib.suppress(OSError):  # an old kernel
            pidfd = os.pidfd_open(pid)
            loop.add_reader(pidfd, on_exit)
            return pidfd

    def wait() -> None:  # macOS; untested
        with contextlib.suppress(ChildProcessError):
            _wait_for_status(pid)
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(on_exit)

    threading.Thread(target=wait, daemon=True, name=f"turngate-wait-{pid}").start()
    return None


def _wait_for_status(pid: int) -> os.waitid_result:
    """Wait for a process and return how it ended; it stays a zombie."""
    while (result := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)) is None:
        pass
    return result
