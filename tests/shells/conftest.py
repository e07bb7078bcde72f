"""An SSH server for the tests of one worker, and the shells that one suite runs over."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.servers.ssh import HOST, SshServer, ssh_server
from turngate.ports import Shell
from turngate.shells.local import LocalShell
from turngate.shells.ssh import SshShell


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    """The server of all tests that do not stop or configure it."""
    with ssh_server(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture
def server(shared_server: SshServer, home: Path) -> SshServer:
    """The shared server, known to the client as `box`."""
    shared_server.configure_client(home)
    return shared_server


@pytest.fixture(params=["local", "ssh"])
def make_shell(request: pytest.FixtureRequest) -> Callable[[], Shell]:
    """Make the shell of a test, once for each event loop."""
    if request.param == "local":
        return LocalShell
    request.getfixturevalue("server")
    return lambda: SshShell(HOST)
