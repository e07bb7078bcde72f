"""A connection whose packets are lost: the server does not notice it, so its cleanup shell ends nothing."""

import asyncio
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from tests.shells.test_every_shell import is_alive, needs_sshd, pids, wait_for
from tests.shells.test_ssh import HANGING, stopped
from tests.support.servers.ssh import HOST, SshServer
from tests.support.shells import start
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S
from turngate.core.answers.report_types import Exited
from turngate.ports import ConnectionLost
from turngate.shells.ssh import login
from turngate.shells.ssh import shell as ssh
from turngate.shells.ssh.shell import SshShell


async def wait_until_nothing_is_left(server: SshServer, project: Path) -> None:
    async with asyncio.timeout(HANG_TIMEOUT_S):
        while any(server.temporary.iterdir()) or any(map(is_alive, pids(project))):
            await asyncio.sleep(POLL_INTERVAL_S)


async def lose_connection(shell: SshShell, server: SshServer, project: Path) -> None:
    """Wait until the loss is noticed here."""
    folder = await shell.private_folder()
    assert Path(folder).parent == server.temporary
    running = asyncio.ensure_future(start(shell, HANGING, cwd=project))
    await wait_for(project / "pids")
    with pytest.raises(ConnectionLost):
        await running


@needs_sshd
@pytest.mark.req("X-32")
@pytest.mark.parametrize("goes_on", [True, False], ids=["the next command", "the end of the session"])
def test_what_a_connection_left_there_is_ended_over_the_next_one(
    goes_on: bool, own_server: SshServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "KEEPALIVE_S", 1)
    monkeypatch.setattr(ssh, "SILENCE_S", HANG_TIMEOUT_S)

    async def scenario() -> None:
        shell = SshShell(HOST)
        await shell.environment()
        losing = asyncio.ensure_future(lose_connection(shell, own_server, project))
        await wait_for(project / "pids")
        with stopped(own_server.connections()):
            await losing
            if goes_on:
                assert await start(shell, "exit 4") == Exited(4)
            else:
                await shell.close()
            await wait_until_nothing_is_left(own_server, project)
        await shell.close()

    asyncio.run(scenario())


@needs_sshd
@pytest.mark.req("X-32")
def test_a_cleanup_shell_that_was_killed_is_replaced(own_server: SshServer, project: Path) -> None:
    async def scenario() -> list[object]:
        shell = SshShell(HOST)
        _, cleanup = await shell.evaluate("echo $$") or (1, "")
        running = asyncio.ensure_future(start(shell, "echo >started; read -r _ <go; exit 3", cwd=project))
        await wait_for(project / "started")
        os.kill(int(cleanup), signal.SIGKILL)
        while await answers(shell):
            await asyncio.sleep(POLL_INTERVAL_S)
        go.write_text("\n")
        ended: list[object] = [await running, await start(shell, "exit 4"), await shell.evaluate("exit 5")]
        await shell.close()
        return ended

    go = project / "go"
    os.mkfifo(go)
    assert asyncio.run(scenario()) == [Exited(3), Exited(4), (5, "")]


async def answers(shell: SshShell) -> bool:
    """Return False when it is known that the cleanup shell has died, and a command still runs without it."""
    with suppress(ConnectionLost):
        return await shell.evaluate(":") is not None
    return True
