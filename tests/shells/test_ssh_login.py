"""Why there is no connection: one sentence each, within the limit, and no host key is accepted silently."""

import asyncio
import base64
import getpass
import hashlib
import hmac
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.shells.test_every_shell import needs_sshd
from tests.support.builders import settings, stop_event
from tests.support.servers.ssh import HOST, SshServer, make_key, ssh_server
from tests.support.shells import opened, start
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate import UsageError, Workspace
from turngate.core.answers.report_types import Exited
from turngate.core.verdict.hook_run import outcome, run_message
from turngate.core.verdict.verdict import Stop
from turngate.engine import ask_hooks
from turngate.ports import World
from turngate.shells.ssh.login import Address, CannotConnect, connect
from turngate.shells.ssh.shell import SshShell


def reason(
    host: str = HOST, user: str | None = None, port: int | None = None, limit: float = HANG_TIMEOUT_S
) -> str:
    async def scenario() -> str:
        try:
            connection = await connect(Address(host, user, port), limit)
        except CannotConnect as error:
            return str(error)
        connection.abort()
        return "connected"

    return asyncio.run(scenario())


def fingerprint(server: SshServer) -> str:
    import asyncssh  # noqa: PLC0415 - takes long to load

    key = asyncssh.read_public_key(str(server.folder / "host_key.pub"))
    return f"ssh-ed25519 {key.get_fingerprint()}"


def test_the_config_the_key_and_the_known_host_of_the_user_are_enough(server: SshServer) -> None:
    assert reason() == "connected"


NO_KEY = f"{HOST} accepts none of your keys; check the login with `ssh {HOST}`"


def configure_keys(home: Path, *lines: str) -> None:
    """Write these lines about keys into the config, and no other ones."""
    config = home / ".ssh" / "config"
    others = [line for line in config.read_text().splitlines() if not line.startswith("Identit")]
    config.write_text("\n".join([*others, *lines]) + "\n")


@pytest.fixture
def agent(server: SshServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An agent that has the key of the server."""
    if shutil.which("ssh-agent") is None:
        pytest.skip("no ssh-agent")
    started = subprocess.run(["ssh-agent", "-s"], capture_output=True, text=True, check=True).stdout
    for name, value in re.findall(r"(SSH_\w+)=([^;]+);", started):
        monkeypatch.setenv(name, value)
    try:
        subprocess.run(["ssh-add", "-q", str(server.folder / "user_key")], check=True)
        yield
    finally:
        os.kill(int(os.environ["SSH_AGENT_PID"]), signal.SIGTERM)


def test_without_an_agent_there_is_no_key(server: SshServer, home: Path) -> None:
    configure_keys(home)
    assert reason() == NO_KEY


@pytest.mark.usefixtures("agent")
def test_a_key_of_the_agent_is_enough(home: Path) -> None:
    configure_keys(home)
    assert reason() == "connected"


@pytest.mark.parametrize("only", ["yes", "no"])
def test_a_key_that_does_not_exist_is_left_out(only: str, server: SshServer, home: Path) -> None:
    files = ("IdentityFile ~/missing", f"IdentityFile {server.folder}/user_key")
    configure_keys(home, *files, f"IdentitiesOnly {only}")
    assert reason() == "connected"


def test_no_key_exists(server: SshServer, home: Path) -> None:
    configure_keys(home, "IdentityFile ~/missing", "IdentityFile ~/lost", "IdentitiesOnly yes")
    why = f"no key for {HOST} can be read: {home}/missing and {home}/lost"
    assert reason() == f"{why}; check IdentityFile in ~/.ssh/config"


def test_a_key_that_does_not_exist_is_not_replaced_by_a_default_key(server: SshServer, home: Path) -> None:
    shutil.copy(server.folder / "user_key", home / ".ssh/id_ed25519")
    configure_keys(home)
    assert reason() == "connected"
    configure_keys(home, "IdentityFile ~/missing")
    assert reason() == NO_KEY


@pytest.mark.usefixtures("agent")
def test_the_agent_has_the_key_that_does_not_exist(server: SshServer, home: Path) -> None:
    configure_keys(home, "IdentityFile ~/missing")
    assert reason() == "connected"
    shutil.copy(server.folder / "user_key.pub", home / "missing.pub")
    configure_keys(home, "IdentityFile ~/missing", "IdentitiesOnly yes")
    assert reason() == "connected"


def test_a_proxy_command_that_cannot_start_is_named_as_the_reason(server: SshServer, home: Path) -> None:
    with (home / ".ssh/config").open("a") as config:
        config.write("ProxyCommand no-such-program %h %p\n")
    why = f"the ProxyCommand of {HOST} cannot be started: no-such-program: No such file or directory"
    assert reason() == f"{why}; install the program, or change ~/.ssh/config"


def test_an_unknown_host_is_not_accepted(server: SshServer, home: Path) -> None:
    (home / ".ssh/known_hosts").unlink()
    assert reason() == (
        f"the host key of [127.0.0.1]:{server.port} is not known ({fingerprint(server)}); "
        f"compare it with the server's own key and accept it with `ssh {HOST}`"
    )
    assert not (home / ".ssh/known_hosts").exists()


@pytest.mark.parametrize("value", ["none", "/dev/null", "~/missing", "~/.ssh/known_hosts_2 ~/missing"])
def test_a_config_without_known_hosts_does_not_accept_every_host(
    value: str, server: SshServer, home: Path
) -> None:
    with (home / ".ssh/config").open("a") as config:
        config.write(f"UserKnownHostsFile {value}\nStrictHostKeyChecking no\n")
    assert reason().startswith(f"the host key of [127.0.0.1]:{server.port} is not known")


def test_the_known_hosts_of_the_config_are_read(server: SshServer, home: Path) -> None:
    (home / ".ssh/known_hosts").rename(home / "elsewhere")
    with (home / ".ssh/config").open("a") as config:
        config.write("UserKnownHostsFile ~/missing ~/elsewhere\n")
    assert reason() == "connected"


@pytest.mark.parametrize("algorithm", ["ssh-ed25519", "ecdsa-sha2-nistp256"])
def test_a_changed_host_key_is_not_accepted(algorithm: str, server: SshServer, home: Path) -> None:
    import asyncssh  # noqa: PLC0415 - takes long to load

    other = asyncssh.generate_private_key(algorithm).export_public_key().decode()
    (home / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{server.port} {other}")
    message = reason()
    name = f"[127.0.0.1]:{server.port}"
    assert message == (
        f"the host key of {name} has CHANGED ({fingerprint(server)}): another machine may be answering; "
        f"if the server has a new key, remove the old one with `ssh-keygen -R '{name}'` and accept it with `ssh {HOST}`"
    )


def test_a_changed_host_key_names_the_file_of_the_old_one(server: SshServer, home: Path) -> None:
    make_key(home / "other")
    key = (home / "other.pub").read_text()
    (home / "elsewhere").write_text(f"[127.0.0.1]:{server.port} {key}")
    with (home / ".ssh/config").open("a") as config:
        config.write("UserKnownHostsFile ~/elsewhere\n")
    assert f"`ssh-keygen -f {home}/elsewhere -R '[127.0.0.1]:{server.port}'`" in reason()


def test_a_wrong_key_is_named_as_the_reason(server: SshServer, home: Path) -> None:
    server.configure_client(home, key=make_key(home / "other"))
    assert reason() == NO_KEY


def test_the_command_in_a_message_has_user_and_port(server: SshServer, home: Path) -> None:
    (home / ".ssh/known_hosts").write_text(server.known_hosts_line())
    message = reason("127.0.0.1", "no user", server.port)
    command = f"ssh -p {server.port} 'no user@127.0.0.1'"
    assert message == f"127.0.0.1 accepts none of your keys; check the login with `{command}`"


def without_known_hosts(_: SshServer, home: Path) -> None:
    (home / ".ssh/known_hosts").unlink()


def with_a_changed_key(server: SshServer, home: Path) -> None:
    make_key(home / "other")
    (home / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{server.port} {(home / 'other.pub').read_text()}")


def with_a_wrong_key(server: SshServer, home: Path) -> None:
    server.configure_client(home, key=make_key(home / "other"))


def with_a_closed_port(server: SshServer, home: Path) -> None:
    config = home / ".ssh/config"
    config.write_text(config.read_text().replace(f"Port {server.port}", "Port 9"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (without_known_hosts, "is not known"),
        (with_a_changed_key, "has CHANGED"),
        (with_a_wrong_key, "accepts none of your keys"),
        (with_a_closed_port, "no SSH server listens"),
    ],
)
def test_a_workspace_that_cannot_be_opened_raises_that_reason(
    change: Callable[[SshServer, Path], None], expected: str, server: SshServer, home: Path
) -> None:
    change(server, home)
    with pytest.raises(UsageError, match=expected) as raised:
        asyncio.run(Workspace.ssh(HOST, "app"))
    assert str(raised.value) == reason()


def test_a_closed_port_is_named_as_the_reason(home: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert reason("127.0.0.1", port=port) == (
            f"no SSH server listens on 127.0.0.1, port {port}: connection refused; "
            f"check the connection with `ssh -p {port} 127.0.0.1`"
        )


def test_a_name_that_does_not_resolve_is_named_as_the_reason(home: Path) -> None:
    assert reason("no-such-host.invalid").startswith("the name no-such-host.invalid cannot be resolved: ")


@contextmanager
def listening() -> Iterator[socket.socket]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield listener


def test_a_server_that_says_nothing_is_left_at_the_limit(home: Path) -> None:
    with listening() as listener:
        begun, port = time.monotonic(), listener.getsockname()[1]
        message = reason("127.0.0.1", port=port, limit=0.5)
        check = f"check the connection with `ssh -p {port} 127.0.0.1`"
        assert message == f"127.0.0.1 did not answer within 0.5 s; {check}"
        assert time.monotonic() - begun >= 0.5


def test_the_connect_timeout_of_the_config_counts(home: Path) -> None:
    with listening() as listener:
        (home / ".ssh").mkdir()
        (home / ".ssh/config").write_text(f"Port {listener.getsockname()[1]}\nConnectTimeout 1\n")
        assert reason("127.0.0.1") == (
            "127.0.0.1 did not answer within the ConnectTimeout of ~/.ssh/config; "
            "check the connection with `ssh 127.0.0.1`"
        )


@pytest.mark.req("X-32")
def test_a_name_server_that_is_silent_does_not_delay_the_exit(home: Path) -> None:
    program = """
        import asyncio, socket, threading
        from turngate import UsageError, Workspace

        def getaddrinfo(*_, **__):
            if threading.current_thread().daemon:
                threading.Event().wait()
            raise OSError("the exit would wait for this thread")

        socket.getaddrinfo = getaddrinfo
        try:
            asyncio.run(Workspace.ssh("build.example.org", "app", connect_timeout=0.1))
        except UsageError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=HANG_TIMEOUT_S)
    check = "check the connection with `ssh build.example.org`"
    assert (ended.stdout, ended.stderr, ended.returncode) == (
        f"the name build.example.org was not resolved within 0.1 s; {check}\n",
        "",
        0,
    )


def test_a_server_that_is_not_an_ssh_server_is_reported(home: Path) -> None:
    async def scenario() -> tuple[str, int]:
        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")
            writer.close()

        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server:
            with pytest.raises(CannotConnect) as raised:
                await connect(Address("127.0.0.1", None, port), HANG_TIMEOUT_S)
        return str(raised.value), port

    message, port = asyncio.run(scenario())
    check = f"check the connection with `ssh -p {port} 127.0.0.1`"
    assert message == f"127.0.0.1 closed the connection before the login; {check}"


@pytest.mark.req("X-32")
def test_a_hook_without_a_connection_has_failed_and_does_not_block(
    server: SshServer, home: Path, project: Path
) -> None:
    (home / ".ssh/known_hosts").unlink()

    async def scenario() -> object:
        return await ask_hooks(stop_event(), settings("exit 2"), World(SshShell(HOST), str(project)))

    verdict = asyncio.run(scenario())
    assert isinstance(verdict, Stop)
    ((ended, message),) = [(outcome(run), run_message(run)) for run in verdict.runs]
    assert ended == "failed"
    assert message is not None
    assert message.startswith(f"could not be started: ssh {HOST}: the host key of")


@pytest.mark.req("X-32")
def test_many_commands_share_one_attempt(home: Path) -> None:
    async def scenario() -> tuple[int, list[str]]:
        attempts = 0

        async def close(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            nonlocal attempts
            attempts += 1
            writer.close()

        async with await asyncio.start_server(close, "127.0.0.1", 0) as server:
            shell = SshShell("127.0.0.1", port=server.sockets[0].getsockname()[1])
            ended = await asyncio.gather(*(start(shell, "exit 0") for _ in range(5)), return_exceptions=True)
        return attempts, [str(error).partition(";")[0] for error in ended]

    why = "could not be started: ssh 127.0.0.1: 127.0.0.1 closed the connection before the login"
    assert asyncio.run(scenario()) == (1, [why] * 5)


@needs_sshd
def test_many_commands_share_one_connection(server: SshServer) -> None:
    async def scenario() -> list[Exited]:
        async with opened(lambda: SshShell(HOST)) as shell:
            return await asyncio.gather(*(start(shell, "exit 3") for _ in range(5)))

    before = logins(server)
    assert asyncio.run(scenario()) == [Exited(3)] * 5
    assert logins(server) - before == 1


def logins(server: SshServer) -> int:
    return (server.folder / "log").read_text().count("Accepted publickey")


# What the user's own `ssh` knows


def hashed(line: str) -> str:
    """Return a line of known hosts as `HashKnownHosts yes` writes it."""
    name, rest = line.split(" ", 1)
    salt = b"0123456789abcdefghij"
    digest = hmac.new(salt, name.encode(), hashlib.sha1).digest()
    return "|1|" + "|".join(base64.b64encode(part).decode() for part in (salt, digest)) + " " + rest


def test_known_hosts_may_be_hashed(server: SshServer, home: Path) -> None:
    (home / ".ssh/known_hosts").write_text(hashed(server.known_hosts_line()))
    assert reason() == "connected"


def test_a_changed_key_of_a_hashed_host_is_not_accepted(server: SshServer, home: Path) -> None:
    make_key(home / "other")
    algorithm, key, *_ = (home / "other.pub").read_text().split()
    line = f"[127.0.0.1]:{server.port} {algorithm} {key}\n"
    (home / ".ssh/known_hosts").write_text(hashed(line))
    assert reason().startswith(f"the host key of [127.0.0.1]:{server.port} has CHANGED")


def test_the_key_of_another_port_is_not_the_key_of_this_one(server: SshServer, home: Path) -> None:
    line = server.known_hosts_line().replace(f":{server.port}", f":{server.port + 1}")
    (home / ".ssh/known_hosts").write_text(line)
    assert reason().startswith(f"the host key of [127.0.0.1]:{server.port} is not known")


def test_a_host_key_alias_names_the_known_host(server: SshServer, home: Path) -> None:
    line = server.known_hosts_line().replace(f"[127.0.0.1]:{server.port}", "my-alias")
    (home / ".ssh/known_hosts").write_text(line)
    with (home / ".ssh/config").open("a") as config:
        config.write("HostKeyAlias my-alias\n")
    assert reason() == "connected"


@needs_sshd
def test_a_config_with_patterns_and_a_jump_host_is_followed(server: SshServer, home: Path) -> None:
    """The name is that of a host which only the jump host could find, through a pattern of the config."""
    lines = (
        f"Host *\n  User {getpass.getuser()}\n  IdentityFile {server.folder}/user_key\n  IdentitiesOnly yes",
        f"Host jump\n  HostName 127.0.0.1\n  Port {server.port}",
        f"Host *.inside\n  HostName 127.0.0.1\n  Port {server.port}\n  ProxyJump jump",
    )
    (home / ".ssh/config").write_text("\n".join(reversed(lines)) + "\n")
    before = logins(server)
    assert reason("build.inside") == "connected"
    assert logins(server) - before == 2


@pytest.mark.parametrize("known_hosts", ["", "UserKnownHostsFile none\n"])
def test_a_jump_host_that_is_not_known_is_not_accepted(
    known_hosts: str, server: SshServer, tmp_path: Path, home: Path
) -> None:
    with ssh_server(tmp_path / "jump") as jump:
        shutil.copy(server.folder / "user_key.pub", jump.folder / "authorized_keys")
        text = (home / ".ssh/config").read_text()
        lines = text.replace("Host box", "Host jump").replace(str(server.port), str(jump.port))
        (home / ".ssh/config").write_text(f"{text}ProxyJump jump\n{lines}{known_hosts}")
        message = reason()
    assert message.startswith(f"the host key of [127.0.0.1]:{jump.port} is not known")
    assert message.endswith("accept it with `ssh jump`")


def test_a_jump_host_that_leads_to_itself_is_reported(server: SshServer, home: Path) -> None:
    (home / ".ssh/config").write_text("Host *\nProxyJump jump\n")
    assert reason() == "the ProxyJump of jump leads to more than 8 hosts; check ~/.ssh/config"


@needs_sshd
@pytest.mark.parametrize("method", ["PasswordAuthentication", "KbdInteractiveAuthentication"])
def test_a_password_is_never_asked_for(method: str, tmp_path: Path, home: Path) -> None:
    with ssh_server(tmp_path / "sshd", None, **{method: "yes"}) as server:
        server.configure_client(home, key=make_key(home / "other"))
        assert reason() == NO_KEY


@needs_sshd
def test_the_passphrase_of_a_key_is_never_asked_for(server: SshServer, home: Path) -> None:
    command = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "secret", "-f", str(home / "locked")]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    server.configure_client(home, key=home / "locked")
    assert reason() == (
        f"{HOST} accepts none of your keys; a key with a passphrase must be in your agent: "
        f"add it with `ssh-add {home}/locked`, or check the login with `ssh {HOST}`"
    )
    configure_keys(home)
    assert reason() == NO_KEY
    (home / "locked").rename(home / ".ssh/id_ed25519")
    assert f"add it with `ssh-add {home}/.ssh/id_ed25519`" in reason()


@needs_sshd
@pytest.mark.usefixtures("agent")
@pytest.mark.parametrize("only", ["yes", "no"])
def test_a_key_with_a_passphrase_is_used_through_the_agent(only: str, server: SshServer, home: Path) -> None:
    locked = shutil.copy(server.folder / "user_key", home / "locked")
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", locked], check=True)
    configure_keys(home, "IdentityFile ~/locked", f"IdentitiesOnly {only}")
    assert reason() == "connected"


def test_a_config_that_cannot_be_read_is_named_as_the_reason(server: SshServer, home: Path) -> None:
    (home / ".ssh/config").write_text("Host box\nPort many\n")
    why = f"{home}/.ssh/config line 2: Invalid Port integer value: many"
    assert reason() == f"the login on {HOST} failed: {why}; check it with `ssh {HOST}`"
