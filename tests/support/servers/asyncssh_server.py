"""An SSH server of asyncssh, for machines without sshd: python -m tests.support.servers.asyncssh_server FOLDER PORT.

Unlike OpenSSH it has no options, and it closes a channel soon after the exit of its command, also if another process
still holds its output.
"""

import asyncio
import contextlib
import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar, cast

import asyncssh
from asyncssh.channel import SSHChannel
from asyncssh.stream import SSHServerStreamSession

P = ParamSpec("P")
T = TypeVar("T")
OUTPUT_GRACE_S = 5.0
SFTP_VERSION = 3  # of OpenSSH


def _as_openssh(method: Callable[P, T]) -> Callable[P, T]:
    """Report errors that asyncssh knows no number for as OpenSSH does."""

    def call(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENOTDIR):
                raise asyncssh.SFTPNoSuchFile(str(error)) from None
            if error.errno in (errno.EINVAL, errno.ENAMETOOLONG):
                raise asyncssh.SFTPBadMessage(str(error)) from None
            raise

    return call


class SftpServer(asyncssh.SFTPServer):
    stat = _as_openssh(asyncssh.SFTPServer.stat)
    lstat = _as_openssh(asyncssh.SFTPServer.lstat)
    readlink = _as_openssh(asyncssh.SFTPServer.readlink)


class Session(SSHServerStreamSession[bytes]):
    """SFTP, or one command as a child process that leads a session, as sshd starts it."""

    def __init__(self, home: Path) -> None:
        super().__init__(None, self._make_sftp_server, SFTP_VERSION)
        self._home = home
        self._channel: asyncssh.SSHServerChannel[bytes] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._stdin = bytearray()
        self._eof = False
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, chan: SSHChannel[bytes]) -> None:
        super().connection_made(chan)
        self._channel = cast("asyncssh.SSHServerChannel[bytes]", chan)

    def _make_sftp_server(self, _: SSHChannel[bytes]) -> SftpServer:
        assert self._channel is not None
        return SftpServer(self._channel)

    def session_started(self) -> None:
        if self._task is None:
            super().session_started()

    def exec_requested(self, command: str) -> bool:
        self._task = asyncio.create_task(self._run(command))
        return True

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if self._task is None:
            super().data_received(data, datatype)
            return
        self._stdin += data
        self._feed()

    def eof_received(self) -> bool:
        if self._task is None:
            return bool(super().eof_received())
        self._eof = True
        self._feed()
        return True

    def signal_received(self, signal_name: str) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.Signals[f"SIG{signal_name}"])

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._channel = None
        self._eof = True
        self._feed()

    def _feed(self) -> None:
        if self._process is None or self._process.stdin is None or self._process.stdin.is_closing():
            return
        self._process.stdin.write(bytes(self._stdin))
        self._stdin.clear()
        if self._eof:
            self._process.stdin.close()

    async def _run(self, command: str) -> None:
        env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._home),
            "TMPDIR": str(self._home.with_name("tmp")),
            "SSH_CLIENT": "127.0.0.1 1 22",
        }
        pipe = asyncio.subprocess.PIPE
        process = self._process = await asyncio.create_subprocess_exec(
            "/bin/sh",
            "-c",
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            env=env,
            cwd=self._home,
            start_new_session=True,
        )
        self._feed()
        assert process.stdout is not None
        assert process.stderr is not None
        outputs = [
            asyncio.create_task(self._copy(process.stdout, None)),
            asyncio.create_task(self._copy(process.stderr, asyncssh.EXTENDED_DATA_STDERR)),
        ]
        while process.returncode is None:  # `process.wait()` also waits for those who hold its pipes
            await asyncio.sleep(0.005)
        await asyncio.wait(outputs, timeout=OUTPUT_GRACE_S)
        if self._channel is not None:
            self._exit(self._channel, process.returncode)

    def _exit(self, channel: "asyncssh.SSHServerChannel[bytes]", code: int) -> None:
        if code >= 0:
            channel.exit(code)
        else:
            channel.exit_with_signal(signal.Signals(-code).name.removeprefix("SIG"))

    async def _copy(self, stream: asyncio.StreamReader, datatype: int | None) -> None:
        while data := await stream.read(65536):
            if self._channel is not None:
                self._channel.write(data, datatype)


class Server(asyncssh.SSHServer):
    def __init__(self, home: Path) -> None:
        self._home = home

    def session_requested(self) -> Session:
        return Session(self._home)


async def serve(folder: Path, port: int) -> None:
    await asyncssh.create_server(
        lambda: Server(folder / "home"),
        "127.0.0.1",
        port,
        server_host_keys=[str(folder / "host_key")],
        authorized_client_keys=str(folder / "authorized_keys"),
        encoding=None,
    )
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
