"""SshShell: run commands on another machine, over one connection that stays open.

Nothing is assumed of the other machine but an SSH server, a POSIX `/bin/sh` and the utilities of POSIX that
`shells/ssh/remote_command.py` names. See there for how a command starts, and `shells/ssh/cleanup_shell.py` for how it ends.
"""

import asyncio
import contextlib
import errno
import math
import secrets
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from typing import Any, NamedTuple

import asyncssh
from asyncssh.constants import OPEN_REQUEST_SESSION_FAILED

from turngate.aio.threads import finish_despite_cancel
from turngate.core.answers.report_types import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import one_line
from turngate.ports import ConnectionLost, HookRunContext, NotStarted, World
from turngate.shells.local import OUTPUT_GRACE_S
from turngate.shells.process_tree import KILL_GRACE_S, VARIABLE, add_marker, new_run_marker
from turngate.shells.ssh.cleanup_shell import SILENCE_S, CleanupShell, ProgramsMissing
from turngate.shells.ssh.login import Address, CannotConnect, connect, ssh_command
from turngate.shells.ssh.process import RemoteProcess, command_words, not_started
from turngate.shells.ssh.remote_command import (
    BOOTSTRAP,
    as_line,
    command_line,
    end_line,
    quote,
    unsettable,
)

GROW_AFTER = 50  # channels that were opened since the limit last changed


class ChannelLimit:
    """How many channels are open at once, as the server allows. Waiters get a channel in order of arrival."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._maximum = limit
        self._open = 0
        self._opened = 0  # since the limit last changed
        self._waiters: deque[asyncio.Future[None]] = deque()

    async def acquire(self) -> None:
        waiter = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        self._pass_on()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():  # it was this one's turn
                self.release()
            raise

    def take(self) -> None:
        """Take a channel whatever the limit is."""
        self._open += 1

    def release(self) -> None:
        self._open -= 1
        self._pass_on()

    def opened(self) -> None:
        """The server has opened a channel. After many, try one more again."""
        self._opened += 1
        if self._opened >= GROW_AFTER and self.limit < self._maximum:
            self.set_limit(self.limit + 1)

    def shrink(self) -> bool:
        """The server opens no more channels than are open, without the caller's own. Return whether there are others."""
        others = self._open - 1
        self.set_limit(min(self.limit, max(1, others)))
        return others > 0

    def reset(self) -> None:
        """Another connection has channels of its own."""
        self.set_limit(self._maximum)

    def set_limit(self, limit: int) -> None:
        self.limit, self._opened = limit, 0
        self._pass_on()

    def _pass_on(self) -> None:
        """Give the channels that are free to the first waiters."""
        while self._waiters and self._open < self.limit:
            waiter = self._waiters.popleft()
            if not waiter.done():
                self._open += 1
                waiter.set_result(None)


class BackgroundTasks:
    """Keeps each task until it ends: the event loop has only weak references."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def finish(self, limit: float) -> None:
        """Wait for all tasks, and cancel those that have not ended within `limit` seconds."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=limit)
        for task in tuple(self._tasks):
            task.cancel()
            await asyncio.wait({task})


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


CONNECT_TIMEOUT_S = 10.0
# At once on one connection; OpenSSH allows ten channels: one is the cleanup shell's, one that of SFTP.
MAX_COMMANDS = 8
MIN_SESSIONS = 3  # on one connection: the cleanup shell, SFTP and a command
SFTP_TIMEOUT_S = 10.0  # to start it; some servers start it with the login shell
ADD_SFTP = "add `Subsystem sftp internal-sftp` to its sshd_config"
OPEN_DELAYS_S = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6)  # while the server opens no channel, or closes the connection
RETRY_DELAYS_S = (0.2, 0.4, 0.8, 1.6, 3.2)  # when a connection that there was cannot be opened again


class SshShell:
    """Run each command in a session of its own on another machine."""

    def __init__(
        self,
        host: str,
        *,
        user: str | None = None,
        port: int | None = None,
        connect_timeout: float | None = None,
    ) -> None:
        """`host` may be a name of `~/.ssh/config`. Attempts to connect end after `connect_timeout` (CONNECT_TIMEOUT_S)."""
        self.host = host
        self.workspace: World | None = None  # to which it belongs, with the files of the other machine
        self._address = Address(host, user, port)
        self._connect_timeout = CONNECT_TIMEOUT_S if connect_timeout is None else connect_timeout
        self._connection: Connection | None = None
        self._connecting: asyncio.Task[Connection] | None = None
        self._was_connected = False
        self._making_folder = asyncio.Lock()
        self._opening_sftp = asyncio.Lock()
        self._channels = ChannelLimit(MAX_COMMANDS)
        self._slots = ChannelLimit(MAX_COMMANDS)
        self._endings = BackgroundTasks()  # they end what another connection has left
        self._abandoned = BackgroundTasks()  # for channels that no command waits for any more
        self._background = asyncio.Semaphore(MAX_COMMANDS // 4)  # of the slots, for hooks in the background

    async def environment(self) -> dict[str, str]:
        """Return the environment of a login on the other machine. Raises NotStarted."""
        return dict((await self._connected()).environment)

    @contextlib.asynccontextmanager
    async def slot(self, *, background: bool = False) -> AsyncIterator[None]:
        """Wait for a channel, which `run` takes: a gate that holds a slot may run several commands."""
        async with self._background if background else contextlib.nullcontext():
            await self._slots.acquire()
            try:
                yield
            finally:
                self._slots.release()

    @property
    def folder(self) -> str:
        """The private folder of the connection that is open now; empty if there is none."""
        connection = self._connection
        return connection.folder if connection and connection.is_open else ""

    async def private_folder(self, instead_of: str | None = None) -> str:
        """Return a folder there for temporary files of this connection. `instead_of`: one that does not exist any more. Raises OSError."""
        async with self._making_folder:
            connection = await self._connected()
            if self.folder not in ("", instead_of):
                return self.folder
            name = secrets.token_hex(16)
            printed = await connection.cleanup.make_folder(name)
            if printed is None:
                connection.drop_if_silent()
                raise ConnectionLost(f"the connection to {self.host} was lost while a folder was made")
            if not (printed.startswith("/") and printed.endswith(name)):
                raise OSError(errno.EACCES, one_line(printed))
            connection.folder = printed
            return printed

    async def evaluate(self, script: str) -> tuple[int, str] | None:
        """Let the cleanup shell run one line, in one round trip. Return exit code and first line; None: it has died. Raises NotStarted, ConnectionLost."""
        connection = await self._connected()
        if not connection.cleanup.is_alive:
            return None
        ended = await connection.cleanup.evaluate(script)
        if ended is None:
            connection.drop_if_silent()
            raise ConnectionLost(f"the connection to {self.host} was lost while it ran")
        return ended

    async def sftp(self) -> asyncssh.SFTPClient:
        """Return the SFTP client of the connection, opened if it is not there. Raises NotStarted."""
        async with self._opening_sftp:
            while True:
                connection = await self._connected()
                try:
                    async with asyncio.timeout(SFTP_TIMEOUT_S):
                        return await connection.open_sftp()
                except TimeoutError:
                    raise not_started(
                        self.host, f"SFTP of {self.host} did not start within {SFTP_TIMEOUT_S:.3g} s"
                    ) from None
                except (OSError, asyncssh.Error) as error:
                    if connection.is_open:
                        raise not_started(self.host, self._describe_no_sftp(error)) from None

    def _describe_no_sftp(self, error: Exception) -> str:
        if isinstance(error, asyncssh.ChannelOpenError):
            if error.code == OPEN_REQUEST_SESSION_FAILED:
                return f"{self.host} has no SFTP, which Turngate reads files with: {ADD_SFTP}"
            return self._describe_few_channels(error)
        if isinstance(error, asyncssh.SFTPBadMessage):
            return (
                f"SFTP of {self.host} cannot be read, because a startup file of the login shell there prints text: "
                "let it print at a terminal only"
            )
        return f"SFTP of {self.host} does not start: {ADD_SFTP}"

    def _describe_few_channels(self, error: asyncssh.ChannelOpenError) -> str:
        return (
            f"{self.host} opens no further session on a connection ({error.reason}): "
            f"set MaxSessions to {MIN_SESSIONS} or more in its sshd_config"
        )

    def drop_sftp(self) -> None:
        """Close a client that did not answer: the next question opens another one."""
        if self._connection is not None:
            self._connection.close_sftp()

    async def close(self) -> None:
        """Remove the private folder, and close the connection. The next command opens it again."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait({self._connecting})
        if self._connection and any(self._connection.remains) and not self._connection.is_open:
            with contextlib.suppress(CannotConnect):
                await self._open(asyncio.get_running_loop().time() + SILENCE_S)
        await self._endings.finish(SILENCE_S)
        connection, self._connection = self._connection, None
        if connection is not None and connection.folder:
            await connection.cleanup.close()  # it removes the folder
        if connection is not None:
            connection.drop_if_silent()
            connection.client.close()
            await connection.client.wait_closed()

    async def answers(self) -> bool:
        """Return whether the connection is alive, as far as it is known without a channel."""
        connection = self._connection
        return connection is None or not connection.cleanup.is_alive or await connection.cleanup.answers()

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: HookRunContext
    ) -> Exited:
        argv = command_words(hook)
        if any("\0" in word for word in (*argv, cwd)):  # a shell there would leave it out
            raise ValueError("embedded null byte")
        if not cwd:  # `cd ''` stays in the home folder
            raise NotStarted(errno.ENOENT, "no such folder, or no access to it", cwd)
        await self._channels.acquire()
        try:
            process, connection = await self._open_channel(live)
        except BaseException:
            self._channels.release()
            raise
        process.gone.add_done_callback(lambda _: self._channel_gone(connection))
        self._channels.opened()
        self._slots.set_limit(self._channels.limit)
        marker = new_run_marker()
        marked_env = {**env, VARIABLE: add_marker(env, marker)}
        if names := unsettable(marked_env, connection.environment):
            live.warnings.append(
                f"${', $'.join(names[:3])} cannot be set by a shell and was not passed to it"
            )
        line = command_line(argv, cwd=cwd, env=marked_env, base=connection.environment, token=process.token)
        try:
            connection.watch(NO_PROCESS, marker)
            process.send(line, stdin)
            pid = await asyncio.shield(process.started)  # as soon as the login shell has read its files
            process.check_start(self.host, argv[0], cwd)
            connection.watch(pid, marker)
            await asyncio.shield(process.exit)
            if not process.has_ended:
                raise ConnectionLost(f"the connection to {self.host} was lost while it ran{process.why_lost}")
            await process.read_rest()
            if live.on_left_running is not None:
                await connection.wait_for_processes(process, pid, marker, live.on_left_running)
            return process.exited()
        except asyncio.CancelledError:
            if process.has_ended:
                live.ended = process.exited()
            await finish_despite_cancel(self._end(connection, process, marker))
            raise
        finally:
            connection.forget(marker)
            process.close()

    async def _open_channel(self, live: HookRunContext) -> tuple[RemoteProcess, Connection]:
        """Open a channel for one command. Nothing has started yet, so it may be tried again on a new connection."""
        delays = iter(OPEN_DELAYS_S)
        while True:
            connection = await self._connected()
            process = RemoteProcess(live)
            try:
                await self._create_session(connection, process)
            except asyncssh.ChannelOpenError as error:
                delay = next(delays, None)
                is_full = connection.is_open and (delay is None or not connection.is_settling)
                if is_full and await self._make_room():
                    delays = iter(OPEN_DELAYS_S)
                elif delay is None:
                    raise not_started(self.host, self._describe_few_channels(error)) from None
                elif connection.is_open:
                    await asyncio.sleep(delay)
            except (OSError, asyncssh.Error) as error:
                if connection.is_open or next(delays, None) is None:
                    raise not_started(self.host, f"{self.host} started no shell: {error}") from None
            else:
                return process, connection

    async def _create_session(self, connection: Connection, process: RemoteProcess) -> None:
        """Open a channel. If the caller is cancelled meanwhile, it is closed when it has opened, and counts until then."""
        creating = connection.client.create_session(lambda: process, BOOTSTRAP, encoding=None)
        opening = asyncio.ensure_future(creating)
        try:
            await asyncio.shield(opening)
        except asyncio.CancelledError:
            self._channels.take()
            self._abandoned.start(self._abandon(opening, process, connection))
            raise

    async def _abandon(
        self, opening: "asyncio.Future[Any]", process: RemoteProcess, connection: Connection
    ) -> None:
        """Let the shell of a channel end by itself: until it does, the server counts a channel also if we closed it."""
        try:
            await opening
            process.end_input()
            await process.gone
        except (OSError, asyncssh.Error):
            pass
        finally:
            self._channel_gone(connection)

    def _channel_gone(self, connection: Connection) -> None:
        connection.channel_closed()
        self._channels.release()

    async def _end(self, connection: Connection, process: RemoteProcess, marker: str) -> None:
        """End all processes of a run. Reading goes on: one that prints while it cleans up would die otherwise."""
        await asyncio.wait({process.started}, timeout=KILL_GRACE_S)
        pid = process.started.result() if process.started.done() else ""
        if not pid.isdigit():  # a shell that has not started it yet dies when it prints the token
            process.close()
            pid = NO_PROCESS
        if not connection.is_open:  # the cleanup shell ends it
            return
        if await connection.cleanup.end(pid, marker):
            return
        line = end_line(pid, marker)

        async def end_over_another_connection() -> None:
            await run_line(line, self._address, self._connect_timeout)
            connection.drop_if_silent()

        ending = self._endings.start(end_over_another_connection())
        if (
            not connection.cleanup.is_silent
        ):  # otherwise the network may be gone, and an interrupt does not wait
            await ending

    async def _make_room(self) -> bool:
        """The server opened no channel: wait until another command ends. Return False if there is none; one that was ended may still count."""
        has_others = self._channels.shrink()
        self._slots.set_limit(self._channels.limit)
        if has_others:
            self._channels.release()
            try:
                await self._channels.acquire()
            except BaseException:
                self._channels.take()  # `run` releases it
                raise
        return has_others

    # The connection

    async def _connected(self) -> Connection:
        """Return the connection, opened if it is not there; all commands wait for the same attempt."""
        if self._connection is not None:
            self._connection.drop_without_cleanup_shell()
            if self._connection.is_open:
                return self._connection
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect(), name=f"ssh {self.host}")
            self._connecting.add_done_callback(self._connect_ended)
        try:
            return await asyncio.shield(self._connecting)
        except CannotConnect as error:
            raise not_started(self.host, str(error)) from None

    def _connect_ended(self, task: "asyncio.Task[Connection]") -> None:
        self._connecting = None
        if not task.cancelled():
            task.exception()  # a caller that was cancelled does not ask for it

    async def _connect(self) -> Connection:
        delays = iter(RETRY_DELAYS_S if self._was_connected else ())
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._connect_timeout
        while True:
            try:
                return await self._open(deadline)
            except CannotConnect as error:
                delay = next(delays, None)
                if not error.is_transient or delay is None or loop.time() + delay >= deadline:
                    raise
                await asyncio.sleep(delay)

    async def _open(self, deadline: float) -> Connection:
        connection = await open_connection(self._address, deadline)
        lost, self._connection = self._connection, connection
        self._was_connected = True
        self._channels.reset()
        self._slots.reset()
        if lost is not None and any(lost.remains):
            self._endings.start(connection.remove(lost.remains))
        return connection
