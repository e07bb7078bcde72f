"""A connection, its cleanup shell and its SFTP client. `run_line` opens another connection, for one line."""

import asyncio
import contextlib
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import asyncssh

from turngate.core.answers.report_types import Exited
from turngate.ports import HookRunContext
from turngate.shells.process import OUTPUT_GRACE_S
from turngate.shells.ssh.cleanup_shell import CleanupShell, ProgramsMissing
from turngate.shells.ssh.login import Address, CannotConnect, connect, ssh_command
from turngate.shells.ssh.process import RemoteProcess
from turngate.shells.ssh.remote_command import BOOTSTRAP, as_line, quote

NO_PROCESS = "0"  # the id of a process that is not known
FIRST_POLL_S, LAST_POLL_S = 0.1, 2.0  # while processes that a command left running are waited for
SETTLE_S = 1.0  # in which a server may still count a channel that was closed


class Remains(NamedTuple):
    """What a connection may have left on its machine: the markers of runs, and folders."""

    runs: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()


class Connection:
    """An open connection, its cleanup shell, and its SFTP client once files are asked for."""

    def __init__(
        self, client: asyncssh.SSHClientConnection, cleanup: CleanupShell, environment: Mapping[str, str]
    ) -> None:
        self.client = client
        self.cleanup = cleanup
        self.environment = environment
        self._sftp: asyncssh.SFTPClient | None = None
        self.folder = ""  # for temporary files; the cleanup shell removes it
        self._runs: set[str] = set()  # the markers of those that have not ended
        self._inherited = Remains()  # of earlier connections
        self._channel_closed_at = -math.inf

    def watch(self, pid: str, marker: str) -> None:
        self._runs.add(marker)
        self.cleanup.watch(pid, marker)

    def forget(self, marker: str) -> None:
        if self.is_open:  # otherwise it is not known whether the run has ended
            self._runs.discard(marker)
        self.cleanup.forget(marker)

    async def open_sftp(self) -> asyncssh.SFTPClient:
        """Return the SFTP client, opened if it is not there. Raises OSError or asyncssh.Error."""
        if self._sftp is None:
            self._sftp = await self.client.start_sftp_client(path_errors="surrogateescape")
        return self._sftp

    def close_sftp(self) -> None:
        if self._sftp is not None:
            self._sftp.exit()
            self._sftp = None

    @property
    def remains(self) -> Remains:
        """What may be there if the connection is lost, and its server has not noticed that."""
        folders = frozenset({self.folder} - {""})
        return Remains(self._inherited.runs | self._runs, self._inherited.folders | folders)

    async def remove(self, remains: Remains) -> None:
        """End and remove what an earlier connection has left."""
        self._inherited = remains
        ended = [await self.cleanup.end(NO_PROCESS, marker) for marker in remains.runs]
        lines = [as_line(f"rm -rf -- {quote(folder)}") for folder in remains.folders]
        removed = [await self.cleanup.evaluate(line) is not None for line in lines]
        if all((*ended, *removed)):
            self._inherited = Remains()

    async def wait_for_processes(
        self, process: RemoteProcess, pid: str, marker: str, report: Callable[[Exited], None]
    ) -> None:
        """Wait for the processes that a command left running; `report` them if they do not end soon."""
        loop, exited, delay = asyncio.get_running_loop(), process.exited(), FIRST_POLL_S
        deadline, is_reported = loop.time() + OUTPUT_GRACE_S, exited.held
        if exited.held:
            report(exited)
            await asyncio.shield(process.closed)
        while await self.cleanup.has_processes(pid, marker):
            if not is_reported and loop.time() >= deadline:
                report(exited)
                is_reported = True
            await asyncio.sleep(delay)
            delay = min(2 * delay, LAST_POLL_S)

    def channel_closed(self) -> None:
        self._channel_closed_at = asyncio.get_running_loop().time()

    @property
    def is_settling(self) -> bool:
        """The server may still count a channel that was just closed."""
        return asyncio.get_running_loop().time() < self._channel_closed_at + SETTLE_S

    def drop_if_silent(self) -> None:
        """Give up a connection whose cleanup shell does not answer: the next command opens another one."""
        if self.cleanup.is_silent:
            self.client.abort()

    @property
    def is_open(self) -> bool:
        return not self.client.is_closed()

    def drop_without_cleanup_shell(self) -> None:
        """Give up a connection whose cleanup shell has died, once nothing runs on it: another one has a cleanup shell."""
        if not self.cleanup.is_alive and not self._runs:
            self.client.abort()


async def open_connection(address: Address, deadline: float) -> Connection:
    """Connect and start the cleanup shell, until a deadline in the time of the loop. Raises CannotConnect."""
    limit = max(0.001, deadline - asyncio.get_running_loop().time())
    client = await connect(address, limit)
    check = f"check it with `{ssh_command(address, 'true')}`"
    try:
        async with asyncio.timeout_at(deadline):
            cleanup = await CleanupShell.start(client)
            return Connection(client, cleanup, await cleanup.environment())
    except TimeoutError:
        client.abort()
        raise CannotConnect(
            f"the login shell of {address.host} did not answer within {limit:.3g} s; {check}"
        ) from None
    except ProgramsMissing as error:
        client.abort()
        names = ", ".join(str(error).split())
        raise CannotConnect(
            f"{address.host} lacks programs that Turngate needs: {names}; install them there, or add their folder to PATH"
        ) from None
    except (OSError, asyncssh.Error) as error:
        client.abort()
        raise CannotConnect(f"{address.host} started no shell: {error}; {check}") from None
    except BaseException:
        client.abort()
        raise


async def run_line(line: str, address: Address, limit: float) -> None:
    """Run one line over a connection of its own: the channel of a command cannot be used again before the command ends."""
    with contextlib.suppress(OSError, asyncssh.Error, CannotConnect, TimeoutError):
        async with asyncio.timeout(limit):
            async with await connect(address, limit) as client:
                ended = RemoteProcess(HookRunContext())
                await client.create_session(lambda: ended, BOOTSTRAP, encoding=None)
                ended.send(line, b"")
                await asyncio.shield(ended.exit)
