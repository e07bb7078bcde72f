"""One command on an SSH channel: its output, its end, and the noise of the login shell before it."""

import asyncio
import errno
import secrets
import signal as signals
from collections.abc import Callable
from functools import partial

import asyncssh

from turngate.aio.threads import T
from turngate.core.answers.report_types import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import keep_ends, one_line
from turngate.ports import BoundedOutput, ConnectionLost, HookRunContext, NotStarted
from turngate.shells.local import CR_LF_PROBLEM, OUTPUT_GRACE_S, describe_missing_interpreter
from turngate.shells.ssh.remote_command import (
    CR_LF,
    NO_FOLDER,
    NO_INTERPRETER,
    NO_PROGRAM,
    NOT_EXECUTABLE,
)

MAX_GRACES = 10  # times OUTPUT_GRACE_S, after the exit, while output still comes
MAX_NOISE_BYTES = 64 * 1024  # kept of what a login shell prints


class RemoteProcess(asyncssh.SSHClientSession[bytes]):
    """Reads what a command prints after its TOKEN. Its futures are set once, and never have an exception."""

    def __init__(self, live: HookRunContext) -> None:
        self.token = f"turngate-{secrets.token_hex(8)}"
        loop = asyncio.get_running_loop()
        # What the line printed after its token, or "".
        self.started: asyncio.Future[str] = loop.create_future()
        self.exit: asyncio.Future[None] = loop.create_future()  # it ended, or the connection did
        self.closed: asyncio.Future[None] = loop.create_future()  # all output is read
        self.gone: asyncio.Future[None] = loop.create_future()  # the server has closed the channel
        self.code: int | None = None
        self.signal: int | None = None
        self.lost: Exception | None = None  # why the connection was lost
        self.channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._live = live
        started = partial(_set, self.started)
        self._stdout = _AfterToken(live.stdout, f"{self.token} ".encode(), started)
        self._stderr = _AfterToken(live.stderr, f"{self.token}\n".encode())

    def send(self, line: str, stdin: bytes) -> None:
        """Send the line that starts the command and its whole stdin; what it does not read is discarded at its end."""
        if self.channel is not None and not self.channel.is_closing():
            self.channel.write(f"{line}\n".encode("utf-8", "surrogateescape") + stdin)
            self.channel.write_eof()

    def end_input(self) -> None:
        """Let a shell that was sent nothing end."""
        if self.channel is not None and not self.channel.is_closing():
            self.channel.write_eof()

    def close(self) -> None:
        if self.channel is not None:
            self.channel.abort()

    async def read_rest(self) -> None:
        """After the exit, read until all output is there, or none has come for OUTPUT_GRACE_S: the network may be slow."""
        live = self._live
        if self.closed.done():
            return
        live.on_exit()
        size = -1
        for _ in range(MAX_GRACES):  # a process that was left running may print forever
            if self.closed.done() or size == live.stdout.size + live.stderr.size:
                break
            size = live.stdout.size + live.stderr.size
            await asyncio.wait({self.closed}, timeout=OUTPUT_GRACE_S)

    def exited(self) -> Exited:
        code = self.code if self.code is not None else 128 + (self.signal or 0)
        stdout, stderr = self._live.stdout, self._live.stderr
        return Exited(
            code,
            stdout=stdout.text(),
            stderr=stderr.text(),
            signal=self.signal,
            held=not self.closed.done(),
            truncated=stdout.truncated,
        )

    @property
    def has_ended(self) -> bool:
        return self.code is not None or self.signal is not None

    def check_start(self, host: str, program: str, cwd: str) -> None:
        """Raise NotStarted or ConnectionLost unless the line printed the process id."""
        kind, _, interpreter = self.started.result().partition(" ")
        problems = {
            NO_FOLDER: (errno.ENOENT, "no such folder, or no access to it", cwd),
            NO_PROGRAM: (errno.ENOENT, "No such file or directory", program),
            NOT_EXECUTABLE: (errno.EACCES, "Permission denied", program),
            CR_LF: (errno.ENOENT, CR_LF_PROBLEM, program),
            NO_INTERPRETER: (errno.ENOENT, describe_missing_interpreter(interpreter), program),
        }
        if kind in problems:
            raise NotStarted(*problems[kind])
        if self.has_ended and not kind.isdigit():
            noise = f": {self.noise()}" if self.noise() else ""
            code = self.exited().code
            raise not_started(
                host, f"the login shell of {host} ended with exit code {code} before the command{noise}"
            )
        if not kind.isdigit():
            raise ConnectionLost(f"the connection to {host} was lost while it started{self.why_lost}")

    @property
    def why_lost(self) -> str:
        return f": {self.lost}" if self.lost else ""

    def noise(self) -> str:
        """Return on one line what came instead of the token."""
        text = (self._stderr.before or self._stdout.before).decode("utf-8", "replace")
        return keep_ends(one_line(text), 100, 200, " … ")

    # Called by asyncssh

    def connection_made(self, chan: "asyncssh.SSHClientChannel[bytes]") -> None:
        self.channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        (self._stderr if datatype == asyncssh.EXTENDED_DATA_STDERR else self._stdout).feed(data)

    def eof_received(self) -> bool:
        self._set_closed()
        return True  # it may still run, and we send it its stdin

    def exit_status_received(self, status: int) -> None:
        """Its last output may come later."""
        self.code = status
        _set(self.exit, None)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: ARG002 - asyncssh's signature
        self.signal = int(getattr(signals, f"SIG{signal}", 0))  # the protocol has names; 0: not known here
        _set(self.exit, None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = exc
        self._set_closed()
        _set(self.exit, None)
        _set(self.gone, None)

    def _set_closed(self) -> None:
        _set(self.started, "")
        _set(self.closed, None)


class _AfterToken:
    """Passes on what follows the line with the token; `before` is what came first."""

    def __init__(
        self, output: BoundedOutput, token: bytes, on_line: Callable[[str], None] | None = None
    ) -> None:
        self.before = bytearray()
        self._output = output
        self._token = token
        self._on_line = on_line
        self._found = False

    def feed(self, data: bytes) -> None:
        if self._found:
            self._output.feed(data)
            return
        self.before += data
        at = self.before.find(self._token)
        end = self.before.find(b"\n", at + len(self._token) - 1) if at >= 0 else -1
        if end < 0:
            del self.before[:-MAX_NOISE_BYTES]
            return
        self._found = True
        rest = bytes(self.before[end + 1 :])
        if self._on_line:
            self._on_line(self.before[at + len(self._token) : end].decode("utf-8", "replace"))
        del self.before[at:]
        self._output.feed(rest)


def command_words(hook: CommandHook) -> tuple[str, ...]:
    if hook.args is not None:
        return (hook.command, *hook.args)
    if hook.shell == "powershell":
        return ("pwsh", "-NoProfile", "-NonInteractive", "-Command", hook.command)
    return (hook.shell or "/bin/sh", "-c", "--", hook.command)


def not_started(host: str, why: str) -> NotStarted:
    return NotStarted(errno.EHOSTUNREACH, why, f"ssh {host}")


def _set(future: asyncio.Future[T], value: T) -> None:
    if not future.done():
        future.set_result(value)
