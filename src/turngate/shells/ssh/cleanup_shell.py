"""The cleanup shell: one shell on each connection that ends runs, also when the connection is lost.

A command goes on when its channel is closed. The cleanup shell runs on the other machine and knows all runs. It ends a run
when it is asked to. When the connection is gone, its stdin ends, and it ends all runs that are left. It also makes and
removes the folder for temporary files.
"""

import asyncio
import contextlib
import secrets

import asyncssh

from turngate.core.text import one_line
from turngate.shells.ssh.remote_command import BOOTSTRAP, MISSING, cleanup_line

MAX_ERROR_BYTES = 300
MAX_REPLY_BYTES = 16 * 1024 * 1024  # also of the environment
SILENCE_S = 2.0  # of a cleanup shell that only has to answer; then an interrupt waits no longer
REPLY_TIMEOUT_S = 10.0  # to end one run; it takes half a second, and longer for one that does not end


class ProgramsMissing(ConnectionError):
    """The machine does not have all programs that the cleanup shell and the scripts for files need; the text names the others."""


class CleanupShell(asyncssh.SSHClientSession[bytes]):
    """The session of the cleanup shell's channel. It also reports the environment of a login on the other machine."""

    def __init__(self) -> None:
        self._token = f"turngate-{secrets.token_hex(8)}".encode()
        self._environment: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self._replies: dict[str, asyncio.Future[str]] = {}  # by marker
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._received = bytearray()
        self._errors = b""
        self._code: int | None = None
        self.is_alive = True
        self.is_silent = False  # it did not answer in time

    @classmethod
    async def start(cls, connection: asyncssh.SSHClientConnection) -> "CleanupShell":
        cleanup = cls()
        await connection.create_session(lambda: cleanup, BOOTSTRAP, encoding=None)
        cleanup._send(cleanup_line(cleanup._token.decode()))
        return cleanup

    async def environment(self) -> dict[str, str]:
        """Return the environment of a login. Raises ProgramsMissing, or ConnectionError if the login shell ends instead."""
        return await asyncio.shield(self._environment)

    def watch(self, pid: str, marker: str) -> None:
        self._send(f"+ {pid} {marker}")

    def forget(self, marker: str) -> None:
        self._send(f"- 0 {marker}")

    async def end(self, pid: str, marker: str) -> bool:
        """End a run. Return False if the cleanup shell did not; that is soon known of one that is silent."""
        ending = asyncio.ensure_future(self._ask(f"! {pid} {marker}", marker))
        await asyncio.sleep(0)  # it is sent first
        try:
            return await self.answers() and await ending is not None
        finally:
            ending.cancel()

    async def answers(self) -> bool:
        """Return whether it answers at once: it ends runs in the background."""
        marker = secrets.token_hex(8)
        return not self.is_silent and await self._ask(f". 0 {marker}", marker, SILENCE_S) is not None

    async def make_folder(self, name: str) -> str | None:
        """Return the path of a new private folder, or why there is none. None: the cleanup shell did not answer."""
        return await self._ask(f"/ 0 {name}", name)

    async def evaluate(self, script: str) -> tuple[int, str] | None:
        """Run a short script of one line. Return its exit code and the first line of its output; None: no answer."""
        marker = secrets.token_hex(8)
        reply = await self._ask(f"= 0 {marker}\n{script}", marker)
        code, _, output = (reply or "").partition(" ")
        return (int(code), output) if code.isdigit() else None

    async def has_processes(self, pid: str, marker: str) -> bool:
        """Return whether processes of a run are left. They are as long as the cleanup shell does not answer."""
        ended = await self.evaluate(f"has_processes {pid} {marker}")
        return self.is_alive if ended is None else ended[0] == 0

    async def _ask(self, line: str, marker: str, limit: float | None = None) -> str | None:
        reply = self._replies[marker] = asyncio.get_running_loop().create_future()
        self._send(line)
        try:
            if self.is_alive:
                await asyncio.wait({reply}, timeout=limit or REPLY_TIMEOUT_S)
        finally:
            del self._replies[marker]
        self.is_silent = self.is_alive and not reply.done()
        return reply.result() if reply.done() and self.is_alive else None

    async def close(self) -> None:
        """Wait for its end. If we closed the channel, the server would count it until then, and not tell us."""
        if self._channel is not None and await self.answers():
            self._channel.write_eof()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(REPLY_TIMEOUT_S):
                    await self._channel.wait_closed()

    def _send(self, line: str) -> None:
        if self._channel is not None and self.is_alive and not self._channel.is_closing():
            self._channel.write(f"{line}\n".encode("utf-8", "surrogateescape"))

    # Called by asyncssh

    def connection_made(self, chan: "asyncssh.SSHClientChannel[bytes]") -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        self.is_silent = False
        if datatype is not None:
            self._errors = (self._errors + data)[-MAX_ERROR_BYTES:]
            return
        self._received += data
        if not self._environment.done():
            self._read_environment()
        if self._environment.done():
            *lines, rest = bytes(self._received).split(b"\n")
            self._received = bytearray(rest)
            for line in lines:
                self._read_reply(line.decode("utf-8", "surrogateescape"))
        if len(self._received) > MAX_REPLY_BYTES and self._channel is not None:
            self._channel.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_alive = False
        for reply in self._replies.values():
            if not reply.done():
                reply.set_result("")
        if not self._environment.done():
            self._environment.set_exception(exc or self._why_ended())
            self._environment.exception()  # it may never be awaited

    def exit_status_received(self, status: int) -> None:
        self._code = status

    def _why_ended(self) -> ConnectionError:
        _, found, rest = bytes(self._received).partition(self._token + f" {MISSING} ".encode())
        if found:
            return ProgramsMissing(one_line(rest.decode("ascii", "replace")))
        if len(self._received) > MAX_REPLY_BYTES:
            return ConnectionError("the output of its login is too long")
        return ConnectionError(self._describe_end())

    def _describe_end(self) -> str:
        printed, _, _ = bytes(self._received).partition(self._token)  # the environment follows
        said = one_line((self._errors or printed[-MAX_ERROR_BYTES:]).decode("utf-8", "replace"))
        code = "" if self._code is None else f" with exit code {self._code}"
        return f"the login shell ended{code}" + (f": {said}" if said else "")

    def _read_reply(self, line: str) -> None:
        """Parse `TOKEN MARKER TEXT`."""
        _, _, rest = line.partition(" ")
        marker, _, text = rest.partition(" ")
        reply = self._replies.get(marker)
        if reply is not None and not reply.done():
            reply.set_result(text)

    def _read_environment(self) -> None:
        """Parse `TOKEN`, then `NAME=VALUE` and `TOKEN` for each variable, and `TOKEN` at the end, each on its line."""
        line = self._token + b"\n"
        start, end = self._received.find(line), self._received.rfind(b"\n" + line + line)
        if start < 0 or end < 0:
            return
        entries = bytes(self._received[start + len(line) : end + 1]).split(line)
        pairs = (entry[:-1].decode("utf-8", "surrogateescape").partition("=") for entry in entries if entry)
        self._environment.set_result({name: value for name, _, value in pairs})
        del self._received[: end + 1 + 2 * len(line)]
