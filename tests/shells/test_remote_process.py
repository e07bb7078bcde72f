"""RemoteProcess: the messages of an SSH server in every order that OpenSSH sends them."""

import asyncio
from collections.abc import Callable

import asyncssh
import pytest

from turngate.core.answers.report_types import Exited
from turngate.ports import HookRunContext
from turngate.shells.local import OUTPUT_GRACE_S
from turngate.shells.ssh.process import MAX_NOISE_BYTES, RemoteProcess

STDERR = asyncssh.EXTENDED_DATA_STDERR


def received(*messages: Callable[[RemoteProcess], object]) -> tuple[str | None, Exited]:
    """Return what the command printed after its token, if it has started, and its end."""

    async def scenario() -> tuple[str | None, Exited]:
        process = RemoteProcess(HookRunContext())
        for message in messages:
            message(process)
        return process.started.result() if process.started.done() else None, process.exited()

    return asyncio.run(scenario())


def stdout(text: str) -> Callable[[RemoteProcess], object]:
    return lambda process: process.data_received(text.replace("TOKEN", process.token).encode(), None)


def stderr(text: str) -> Callable[[RemoteProcess], object]:
    return lambda process: process.data_received(text.replace("TOKEN", process.token).encode(), STDERR)


def exit_code(code: int) -> Callable[[RemoteProcess], object]:
    return lambda process: process.exit_status_received(code)


def eof(process: RemoteProcess) -> None:
    process.eof_received()


def lost(process: RemoteProcess) -> None:
    process.connection_lost(None)


def test_output_may_follow_the_exit_code() -> None:
    """OpenSSH sends the exit code when the command has ended, and then what is left in its pipes."""
    assert received(exit_code(2)) == (None, Exited(2, held=True))
    ended = received(exit_code(2), stderr("TOKEN\ngo on\n"), stdout("TOKEN 7\nout\n"), eof)
    assert ended == ("7", Exited(2, "out\n", "go on\n"))


def test_output_after_the_exit_code_is_read_while_it_comes() -> None:
    """Over a slow link it takes longer than the time in which a held pipe is noticed."""

    async def scenario() -> Exited:
        live = HookRunContext()
        process = RemoteProcess(live)
        for message in (stdout("TOKEN 7\n"), stderr("TOKEN\n"), exit_code(2)):
            message(process)
        loop = asyncio.get_running_loop()
        for number in range(1, 5):
            loop.call_later(0.6 * number * OUTPUT_GRACE_S, stderr("more "), process)
        loop.call_later(2.6 * OUTPUT_GRACE_S, eof, process)
        await process.read_rest()
        return process.exited()

    assert asyncio.run(scenario()) == Exited(2, stderr="more " * 4)


def test_the_token_may_come_in_pieces() -> None:
    async def scenario() -> tuple[str, str]:
        live = HookRunContext()
        process = RemoteProcess(live)
        for byte in f"noise turngate- {process.token} 12\nout {process.token} 13\n".encode():
            process.data_received(bytes([byte]), None)
        return process.started.result(), live.stdout.text().replace(process.token, "TOKEN")

    assert asyncio.run(scenario()) == ("12", "out TOKEN 13\n")


def test_a_line_that_never_ends_does_not_fill_the_memory() -> None:
    begun, ended = received(stdout("TOKEN 7"), stdout("x" * 2 * MAX_NOISE_BYTES), stdout("\n"), eof)
    assert (begun, ended) == ("", Exited(128))


@pytest.mark.parametrize("end", [eof, lost])
def test_a_login_shell_that_ends_has_started_nothing(end: Callable[[RemoteProcess], object]) -> None:
    assert received(stdout("no shell for you\n"), exit_code(1), end) == ("", Exited(1))


@pytest.mark.parametrize(("name", "number"), [("KILL", 9), ("TERM", 15), ("SIG@openssh.com", 0)])
def test_a_signal_has_its_number_here(name: str, number: int) -> None:
    ended = received(
        stdout("TOKEN 7\n"), lambda process: process.exit_signal_received(name, False, "", ""), eof
    )
    assert ended == ("7", Exited(128 + number, signal=number))
