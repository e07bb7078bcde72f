"""A command whose machine of `--ssh` cannot be used: one sentence, exit code 64."""

import socket
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import turngate
from tests.support.servers.ssh import HOST, SshServer, make_key

COMMANDS = pytest.mark.parametrize("command", [("run", "-p", "go"), ("hooks",)], ids=["run", "hooks"])


def said(command: tuple[str, ...], location: str) -> str:
    """Return the one line that a command prints, which fails."""
    code, out, err = turngate(*command, "--ssh", location)
    assert (code, out, err[:10], err.count("\n")) == (64, "", "turngate: ", 1)
    return err.removeprefix("turngate: ").removesuffix("\n")


# The login


def fingerprint(server: SshServer) -> str:
    words = ["ssh-keygen", "-l", "-f", str(server.folder / "host_key.pub")]
    _, shown, *_ = subprocess.run(words, stdout=subprocess.PIPE, check=True, text=True).stdout.split()
    return f"ssh-ed25519 {shown}"


@COMMANDS
def test_an_unknown_host_key_is_not_accepted(command: tuple[str, ...], server: SshServer, home: Path) -> None:
    (home / ".ssh/known_hosts").unlink()
    assert said(command, f"{HOST}:app") == (
        f"the host key of [127.0.0.1]:{server.port} is not known ({fingerprint(server)}); "
        f"compare it with the server's own key and accept it with `ssh {HOST}`"
    )
    assert not (home / ".ssh/known_hosts").exists()


@COMMANDS
def test_a_changed_host_key_is_not_accepted(command: tuple[str, ...], server: SshServer, home: Path) -> None:
    name = f"[127.0.0.1]:{server.port}"
    make_key(home / "other")
    (home / ".ssh/known_hosts").write_text(f"{name} {(home / 'other.pub').read_text()}")
    assert said(command, f"{HOST}:app") == (
        f"the host key of {name} has CHANGED ({fingerprint(server)}): another machine may be answering; "
        f"if the server has a new key, remove the old one with `ssh-keygen -R '{name}'` and accept it with `ssh {HOST}`"
    )


@COMMANDS
def test_a_key_that_the_server_does_not_know_is_reported(
    command: tuple[str, ...], server: SshServer, home: Path
) -> None:
    server.configure_client(home, key=make_key(home / "other"))
    why = f"{HOST} accepts none of your keys; check the login with `ssh {HOST}`"
    assert said(command, f"{HOST}:app") == why


@COMMANDS
def test_a_closed_port_is_reported(command: tuple[str, ...]) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        location = f"ssh://127.0.0.1:{unused.getsockname()[1]}/app"
        assert said(command, location) == "no SSH server listens on 127.0.0.1: connection refused"


@COMMANDS
def test_a_name_that_cannot_be_resolved_is_reported(command: tuple[str, ...]) -> None:
    why = said(command, "no.such.invalid:app")
    assert why.startswith("the name no.such.invalid cannot be resolved: ")
