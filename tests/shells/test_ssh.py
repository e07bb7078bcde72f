"""SshShell: connections that fail, servers with odd settings, and what is left on the other machine."""

import asyncio
import errno
import math
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

import pytest

from tests.shells.test_every_shell import is_alive, needs_sshd, pids, wait_for
from tests.support.paths import ROOT
from tests.support.servers.ssh import HOST, READS_BASHRC, SshServer, ssh_server
from tests.support.sessions import survives
from tests.support.shells import ask_over, ask_with, opened, run, start
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S, POLL_INTERVAL_S, TIMEOUT_SCALES
from turngate.core.answers.report_types import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.hook_run import outcome, run_message
from turngate.core.verdict.verdict import Stop
from turngate.ports import ConnectionLost, HookRunContext, NotStarted
from turngate.shells.ssh import cleanup_shell, login
from turngate.shells.ssh import shell as ssh
from turngate.shells.ssh.cleanup_shell import CleanupShell
from turngate.shells.ssh.copies import RemoteCopies
from turngate.shells.ssh.shell import MAX_COMMANDS, SshShell

T = TypeVar("T")
HANGING = f"sleep {NEVER_S} & echo $$ $! >>pids; wait"


def with_shell(scenario: Callable[[SshShell], Awaitable[T]]) -> T:
    async def opening() -> T:
        async with opened(lambda: SshShell(HOST)) as shell:
            assert isinstance(shell, SshShell)
            return await scenario(shell)

    return asyncio.run(opening())


# A connection that is lost


@needs_sshd
@pytest.mark.req("X-32", "X-11")
@pytest.mark.parametrize("cut", ["the server is killed", "the connection is cut"])
def test_a_hook_fails_and_nothing_is_left_when_its_connection_is_lost(
    cut: str, own_server: SshServer, project: Path
) -> None:
    async def scenario(shell: SshShell) -> tuple[type, str, str | None]:
        asking = asyncio.ensure_future(ask_over(shell, project, HANGING))
        await wait_for(project / "pids")
        if cut == "the server is killed":
            own_server.kill()
        else:
            own_server.cut_connections()
        verdict = await asking
        (only,) = verdict.runs
        return type(verdict), outcome(only), run_message(only)

    verdict, ended, message = with_shell(scenario)
    assert (verdict, ended) == (Stop, "failed")
    assert message is not None
    assert message.startswith(f"the connection to {HOST} was lost while it ran")
    assert [pid for pid in pids(project) if survives(pid)] == []


@needs_sshd
@pytest.mark.req("X-11")
def test_a_run_without_a_marker_ends_with_its_connection(own_server: SshServer, project: Path) -> None:
    """Its processes have cleared their environment; the cleanup shell knows their group."""
    command = f"echo started; exec env -i /bin/sh -c 'echo $$ >>pids; exec sleep {NEVER_S}'"

    async def scenario(shell: SshShell) -> None:
        live = HookRunContext()
        running = asyncio.ensure_future(start(shell, command, cwd=project, live=live))
        await wait_for(project / "pids")
        while not live.stdout.text():  # the cleanup shell learns of the group at the same time
            await asyncio.sleep(POLL_INTERVAL_S)
        await asyncio.sleep(0.5)
        own_server.cut_connections()
        await asyncio.wait({running})

    with_shell(scenario)
    assert [pid for pid in pids(project) if survives(pid)] == []


@needs_sshd
@pytest.mark.req("X-11")
def test_a_command_is_known_to_the_cleanup_shell_before_it_starts(
    own_server: SshServer, project: Path
) -> None:
    """The loop is blocked from the start of the command to the end of its connection, so its process id is not read."""

    async def scenario(shell: SshShell) -> None:
        await shell.environment()
        running = asyncio.ensure_future(start(shell, HANGING, cwd=project))
        while not (project / "pids").exists():
            await asyncio.sleep(0)
        own_server.cut_connections()
        await asyncio.wait({running})

    for _ in range(5):
        with_shell(scenario)
        assert [pid for pid in pids(project) if survives(pid)] == []
        (project / "pids").unlink()


@needs_sshd
@pytest.mark.req("X-32")
def test_the_next_command_connects_again(own_server: SshServer, project: Path) -> None:
    async def scenario(shell: SshShell) -> list[object]:
        ended: list[object] = [await start(shell, "exit 3")]
        own_server.cut_connections()
        ended.append(await start(shell, "exit 4"))
        running = asyncio.ensure_future(start(shell, HANGING, cwd=project))
        await wait_for(project / "pids")
        own_server.cut_connections()
        ended += await asyncio.gather(running, return_exceptions=True)
        ended.append(await start(shell, "exit 5"))
        return ended

    three, four, lost, five = with_shell(scenario)
    assert (three, four, type(lost), five) == (Exited(3), Exited(4), ConnectionLost, Exited(5))
    assert [pid for pid in pids(project) if survives(pid)] == []


@needs_sshd
@pytest.mark.req("X-32", "X-11")
def test_a_connection_that_is_silent_is_given_up_when_a_hook_cannot_be_ended_over_it(
    own_server: SshServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What serves the connection is stopped, as if its packets were lost, and no keep-alive is due."""
    monkeypatch.setattr(login, "KEEPALIVE_S", NEVER_S)
    monkeypatch.setattr(cleanup_shell, "SILENCE_S", 0.5)

    async def scenario(shell: SshShell) -> tuple[Exited, str]:
        hook = CommandHook(HANGING, timeout=NEVER_S)
        asking = asyncio.ensure_future(ask_over(shell, project, hook))
        await wait_for(project / "pids")
        with stopped(own_server.connections()):
            asking.cancel()
            await asyncio.wait({asking})
            async with asyncio.timeout(HANG_TIMEOUT_S):
                return await start(shell, "exit 4"), ",".join(filter(is_alive, pids(project)))

    assert with_shell(scenario) == (Exited(4), "")


@needs_sshd
@pytest.mark.req("X-32")
def test_neither_an_interrupt_nor_the_end_waits_for_a_machine_that_is_silent(
    own_server: SshServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every other limit is longer than the test."""
    monkeypatch.setattr(login, "KEEPALIVE_S", NEVER_S)
    monkeypatch.setattr(cleanup_shell, "REPLY_TIMEOUT_S", NEVER_S)
    monkeypatch.setattr(ssh, "CONNECT_TIMEOUT_S", NEVER_S)
    for module in (ssh, cleanup_shell):
        monkeypatch.setattr(module, "SILENCE_S", 0.5)

    async def scenario(shell: SshShell) -> bool:
        copies = RemoteCopies(shell)
        await copies.copy(__file__)
        running = asyncio.ensure_future(start(shell, HANGING, cwd=project))
        await wait_for(project / "pids")
        with stopped(own_server.processes()):
            async with asyncio.timeout(HANG_TIMEOUT_S / 5):
                running.cancel()
                await asyncio.wait({running})
                await copies.close()
                await shell.close()
        return running.cancelled()

    assert with_shell(scenario)
    assert [pid for pid in pids(project) if survives(pid)] == []


@needs_sshd
def test_the_login_shell_has_what_is_left_of_the_time_to_connect(tmp_path: Path, home: Path) -> None:
    async def scenario(scale: int) -> float:
        ended = asyncio.Event()

        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await asyncio.sleep(0.7 * scale)
            there, to_there = await asyncio.open_connection("127.0.0.1", port)
            await asyncio.gather(pump(reader, to_there), pump(there, writer))
            ended.set()

        slow = await asyncio.start_server(relay, "127.0.0.1", 0)
        server.port = slow.sockets[0].getsockname()[1]
        server.configure_client(home)
        began = time.monotonic()
        with pytest.raises(NotStarted) as raised:
            await SshShell(HOST, connect_timeout=scale).environment()
        slow.close()
        await ended.wait()
        is_login = f"the login shell of {HOST} did not answer" in str(raised.value)
        return (time.monotonic() - began) / scale if is_login else math.inf

    with ssh_server(tmp_path / "sshd", ForceCommand=f"sleep {NEVER_S}") as server:
        port = server.port
        assert any(asyncio.run(scenario(scale)) < 1.5 for scale in (2, 8, 64))


async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


def test_an_empty_path_is_no_folder(server: SshServer) -> None:
    with pytest.raises(NotStarted) as raised:
        run(lambda: SshShell(HOST), "pwd", cwd="")
    assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, "")


def test_the_folder_that_was_made_has_a_name_also_after_its_connection_was_lost(
    server: SshServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_folder = CleanupShell.make_folder

    async def lose_connection(cleanup: CleanupShell, name: str) -> str | None:
        made = await make_folder(cleanup, name)
        assert cleanup._channel is not None
        connection = cleanup._channel.get_connection()
        connection.abort()
        await connection.wait_closed()
        return made

    async def scenario(shell: SshShell) -> tuple[str, str]:
        folder = await shell.private_folder()
        return os.path.dirname(folder), shell.folder

    monkeypatch.setattr(CleanupShell, "make_folder", lose_connection)
    assert with_shell(scenario) == (str(server.temporary), "")


@needs_sshd
def test_a_command_waits_for_a_server_that_restarts(own_server: SshServer) -> None:
    async def scenario(shell: SshShell) -> tuple[Exited, Exited]:
        before = await start(shell, "exit 3")
        own_server.kill()
        running = asyncio.ensure_future(start(shell, "exit 4"))
        await asyncio.sleep(0.5)
        await asyncio.to_thread(own_server.start)
        return before, await running

    assert with_shell(scenario) == (Exited(3), Exited(4))


@needs_sshd
def test_a_command_fails_plainly_while_the_server_is_gone(own_server: SshServer) -> None:
    async def scenario(shell: SshShell) -> str:
        await start(shell, "exit 3")
        own_server.kill()
        with pytest.raises(NotStarted) as raised:
            await start(shell, "exit 4")
        return str(raised.value)

    refused = f"no SSH server listens on {HOST}, port {own_server.port}: connection refused"
    why = f"{refused}; check the connection with `ssh {HOST}`"
    assert with_shell(scenario) == f"could not be started: ssh {HOST}: {why}"


@needs_sshd
@pytest.mark.req("X-11")
def test_commands_end_when_this_process_is_killed(own_server: SshServer, project: Path, home: Path) -> None:
    program = """
        import asyncio, sys
        from tests.support.shells import start
        from turngate.shells.ssh.shell import SshShell

        asyncio.run(start(SshShell("box"), sys.argv[1], cwd=sys.argv[2]))
    """
    command = [sys.executable, "-c", textwrap.dedent(program), HANGING, str(project)]
    ours = subprocess.Popen(command, cwd=ROOT)
    asyncio.run(wait_for(project / "pids"))
    ours.send_signal(signal.SIGKILL)
    ours.wait()
    assert [pid for pid in pids(project) if survives(pid)] == []


def test_a_closed_shell_leaves_no_process_on_the_other_machine(server: SshServer) -> None:
    find = 'grep -lF "HOME=$HOME" /proc/[0-9]*/environ 2>/dev/null'

    async def scenario(shell: SshShell) -> str:
        return (await start(shell, find, env=await shell.environment())).stdout

    home = {**os.environ, "HOME": str(server.home)}
    others = subprocess.run(find, shell=True, env=home, capture_output=True, text=True, check=False).stdout
    found = set(with_shell(scenario).splitlines()) - set(others.splitlines())  # a connection may be kept open
    running = [line.split("/")[2] for line in found]
    assert len(running) >= 2  # the cleanup shell, and the command itself
    assert [pid for pid in running if survives(pid)] == []


def test_the_time_that_a_hook_waits_for_a_channel_is_not_part_of_its_timeout(
    server: SshServer, project: Path
) -> None:
    waiting = CommandHook("echo >>begun; while [ ! -e go ]; do sleep 0.05; done", timeout=HANG_TIMEOUT_S)

    async def scenario(scale: int) -> set[str]:
        async with opened(lambda: SshShell(HOST)) as shell:
            hooks = [waiting] * MAX_COMMANDS + [CommandHook("exit 0", timeout=scale)] * 2
            asking = asyncio.ensure_future(ask_over(shell, project, *hooks))
            await wait_for(project / "begun", MAX_COMMANDS)
            await asyncio.sleep(1.5 * scale)
            (project / "go").touch()
            return {outcome(run) for run in (await asking).runs}

    def outcomes(scale: int) -> set[str]:
        for name in ("begun", "go"):
            (project / name).unlink(missing_ok=True)
        return asyncio.run(scenario(scale))

    assert any(outcomes(scale) == {"allow"} for scale in TIMEOUT_SCALES[:3])


# Servers with odd settings


@needs_sshd
@pytest.mark.parametrize("sessions", ["2", "3"])
def test_commands_share_the_few_channels_that_a_server_opens(
    sessions: str, tmp_path: Path, home: Path
) -> None:
    async def scenario(shell: SshShell) -> list[Exited]:
        first = await asyncio.gather(*(start(shell, f"cat; exit {n}", stdin=b"%d" % n) for n in range(12)))
        return [*first, await start(shell, "exit 12")]

    with ssh_server(tmp_path / "sshd", MaxSessions=sessions) as server:
        server.configure_client(home)
        ended = with_shell(scenario)
    assert ended == [*(Exited(n, str(n)) for n in range(12)), Exited(12)]


async def has_cleanup_shell(shell: SshShell) -> bool:
    return await shell.evaluate("exit 3") == (3, "")


@needs_sshd
@pytest.mark.req("X-11")
def test_a_channel_that_was_just_closed_does_not_cost_the_cleanup_shell(tmp_path: Path, home: Path) -> None:
    """The server counts it a moment longer than its last message says."""

    async def scenario(shell: SshShell) -> tuple[set[Exited], bool]:
        ended = {await start(shell, "exit 3") for _ in range(20)}
        return ended, await has_cleanup_shell(shell)

    with ssh_server(tmp_path / "sshd", MaxSessions="2") as server:
        server.configure_client(home)
        assert with_shell(scenario) == ({Exited(3)}, True)


@needs_sshd
@pytest.mark.req("X-11")
def test_each_connection_has_its_own_number_of_channels(tmp_path: Path, home: Path) -> None:
    async def ended_at_once(shell: SshShell) -> tuple[set[Exited], int]:
        ended = await asyncio.gather(*(start(shell, "exit 3") for _ in range(MAX_COMMANDS)))
        return set(ended), shell._channels.limit

    async def scenario(shell: SshShell) -> list[tuple[set[Exited], int]]:
        first = await ended_at_once(shell)
        server.kill()
        server.options["MaxSessions"] = "10"
        await asyncio.to_thread(server.start)
        return [first, await ended_at_once(shell)]

    with ssh_server(tmp_path / "sshd", MaxSessions="2") as server:
        server.configure_client(home)
        assert with_shell(scenario) == [({Exited(3)}, 1), ({Exited(3)}, MAX_COMMANDS)]


@needs_sshd
def test_a_command_that_is_cancelled_while_its_channel_opens_leaves_no_channel(own_server: SshServer) -> None:
    """The server answers when all commands are cancelled; it opens at most ten channels."""

    async def scenario(shell: SshShell) -> tuple[Exited, bool]:
        await shell.environment()
        for _ in range(2):
            with stopped(own_server.connections()):
                running = [asyncio.ensure_future(start(shell, "exit 3")) for _ in range(MAX_COMMANDS)]
                for _ in range(20):
                    await asyncio.sleep(0)
                for each in running:
                    each.cancel()
                await asyncio.wait(running)
        return await start(shell, "exit 4"), await has_cleanup_shell(shell)

    assert with_shell(scenario) == (Exited(4), True)


@contextmanager
def stopped(serving: list[int]) -> Iterator[None]:
    """Stop processes of the server, as if packets were lost."""
    for pid in serving:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in serving:
            os.kill(pid, signal.SIGCONT)


@needs_sshd
@pytest.mark.req("X-32")
def test_the_keep_alive_notices_a_machine_that_is_silent_while_a_hook_runs(
    own_server: SshServer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(login, "KEEPALIVE_S", 1)

    async def scenario(shell: SshShell) -> tuple[str, str | None]:
        asking = asyncio.ensure_future(ask_over(shell, project, CommandHook(HANGING, timeout=NEVER_S)))
        await wait_for(project / "pids")
        with stopped(own_server.connections()):
            async with asyncio.timeout(HANG_TIMEOUT_S):
                [run] = (await asking).runs
        return outcome(run), run_message(run)

    found, message = with_shell(scenario)
    assert (found, (message or "").partition(":")[0]) == (
        "failed",
        f"the connection to {HOST} was lost while it ran",
    )


@needs_sshd
@pytest.mark.req("X-11")
def test_a_cancelled_command_leaves_nothing_also_without_a_cleanup_shell(
    own_server: SshServer, project: Path
) -> None:
    command = f"trap '' TERM; setsid sleep {NEVER_S} & echo $$ $! >>pids; while :; do sleep {NEVER_S}; done"

    async def scenario(shell: SshShell) -> list[str]:
        _, cleanup = await shell.evaluate("echo $$") or (1, "")
        running = asyncio.ensure_future(start(shell, command, cwd=project))
        await wait_for(project / "pids")
        os.kill(int(cleanup), signal.SIGKILL)
        running.cancel()
        await asyncio.wait({running})
        return [pid for pid in pids(project) if is_alive(pid)]

    assert with_shell(scenario) == []


@needs_sshd
def test_a_login_banner_is_not_output(tmp_path: Path, home: Path) -> None:
    (tmp_path / "banner").write_text('{"decision":"block","reason":"banner"}\n')
    with ssh_server(tmp_path / "sshd", Banner=str(tmp_path / "banner")) as server:
        server.configure_client(home)
        assert run(lambda: SshShell(HOST), "echo out; echo err >&2") == Exited(0, "out\n", "err\n")


# bash reads .bashrc also for a command if sshd has started it.
NOISE = "echo welcome; printf 'no newline'; echo stderr >&2; printf 'no newline' >&2\nexport FROM_RC=1\n"


@pytest.fixture
def bashrc(own_server: SshServer) -> Path:
    if not READS_BASHRC:
        pytest.skip("the login shell is not bash")
    return own_server.home / ".bashrc"


@needs_sshd
def test_a_login_shell_that_prints_is_not_heard(bashrc: Path) -> None:
    bashrc.write_text(NOISE)
    expected = Exited(2, '{"x":1}', "go on\n")
    command = """printf '{"x":1}'; echo 'go on' >&2; exit 2"""
    assert run(lambda: SshShell(HOST), command) == expected


@needs_sshd
def test_an_environment_that_is_too_long_is_not_read_to_its_end(
    bashrc: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleanup_shell, "MAX_REPLY_BYTES", 10_000)
    bashrc.write_text('export LONG=$(head -c 100000 /dev/zero | tr "\\0" x)\n')
    with pytest.raises(NotStarted) as raised:
        run(lambda: SshShell(HOST), "true")
    assert raised.value.strerror == (
        f"{HOST} started no shell: the output of its login is too long; check it with `ssh {HOST} true`"
    )


@needs_sshd
@pytest.mark.parametrize("command", ["exec sh", "exec bash --norc"])
def test_a_login_shell_that_is_replaced_is_refused(bashrc: Path, command: str) -> None:
    """The other shell would read a part of the stdin of commands."""
    bashrc.write_text(f"{command}\n")
    with pytest.raises(NotStarted) as raised:
        run(lambda: SshShell(HOST), "cat", stdin=b"x" * 20_000)
    assert raised.value.strerror == (
        f"{HOST} started no shell: the login shell ended with exit code 1: "
        f"a startup file there starts another shell, also without a terminal; check it with `ssh {HOST} true`"
    )


@needs_sshd
def test_a_login_shell_that_prints_much_is_not_heard(bashrc: Path) -> None:
    bashrc.write_text("yes noise | head -c 3000000; yes noise | head -c 3000000 >&2\n")
    assert run(lambda: SshShell(HOST), "echo out; echo err >&2") == Exited(0, "out\n", "err\n")


@needs_sshd
def test_hooks_have_the_environment_of_a_login(bashrc: Path, project: Path) -> None:
    bashrc.write_text(NOISE)
    verdict = ask_with(lambda: SshShell(HOST), project, 'echo "$FROM_RC $HOME"')
    assert verdict.runs[0].report == Exited(0, f"1 {bashrc.parent}\n")


@needs_sshd
def test_a_command_that_is_cancelled_before_a_slow_login_shell_is_ready_never_starts(
    bashrc: Path, project: Path
) -> None:
    async def scenario(shell: SshShell) -> None:
        await shell.environment()
        rc = f"touch {project}/begun; while [ ! -e {project}/go ]; do sleep 0.05; done\n"
        bashrc.write_text(rc)  # noqa: ASYNC240 - nothing else runs
        running = asyncio.ensure_future(start(shell, "touch started", cwd=project))
        while not (project / "begun").exists():
            await asyncio.sleep(0.01)
        running.cancel()
        await asyncio.wait({running})
        (project / "go").touch()

    with_shell(scenario)
    bashrc.unlink()
    # Whatever the first shell does, it has done when a later one has ended.
    run(lambda: SshShell(HOST), "sleep 0.5")
    assert not (project / "started").exists()


@needs_sshd
@pytest.mark.parametrize("output", [">&2", ">&1"])
def test_an_account_without_a_shell_is_named_as_the_reason(output: str, tmp_path: Path, home: Path) -> None:
    with ssh_server(tmp_path / "sshd", ForceCommand=f"echo 'not available' {output}; exit 7") as server:
        server.configure_client(home)
        with pytest.raises(NotStarted) as raised:
            run(lambda: SshShell(HOST), "exit 2")
    ended = "the login shell ended with exit code 7: not available"
    why = f"{HOST} started no shell: {ended}; check it with `ssh {HOST} true`"
    assert str(raised.value) == f"could not be started: ssh {HOST}: {why}"


# Secrets


@needs_sshd
def test_a_login_that_ends_early_is_reported_without_its_environment(tmp_path: Path, home: Path) -> None:
    ends = 'eval "$SSH_ORIGINAL_COMMAND" | { head -n 2; kill -9 0; }'  # after the first variable
    with ssh_server(tmp_path / "sshd", ForceCommand=f"echo welcome; {ends}") as server:
        server.configure_client(home)
        with pytest.raises(NotStarted) as raised:
            run(lambda: SshShell(HOST), "exit 2")
    why = f"{HOST} started no shell: the login shell ended: welcome; check it with `ssh {HOST} true`"
    assert str(raised.value) == f"could not be started: ssh {HOST}: {why}"


def test_no_variable_is_on_a_command_line(server: SshServer) -> None:
    """All users of the other machine can read those."""
    command = "cat /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -c hunter[2]"
    assert run(lambda: SshShell(HOST), command, env={"PASSWORD": "hunter2"}) == Exited(1, "0\n")


def test_a_variable_that_a_shell_cannot_set_is_reported(server: SshServer, project: Path) -> None:
    hook = CommandHook("exit 0", env={"a.b": "1"})
    (only,) = ask_with(lambda: SshShell(HOST), project, hook).runs
    assert only.decision.warnings == ("$a.b cannot be set by a shell and was not passed to it",)
