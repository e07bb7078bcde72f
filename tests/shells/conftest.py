"""The shells that one suite runs over."""

from collections.abc import Callable

import pytest

from tests.support.servers.ssh import HOST
from turngate.ports import Shell
from turngate.shells.local import LocalShell
from turngate.shells.ssh.shell import SshShell


@pytest.fixture(params=["local", "ssh"])
def make_shell(request: pytest.FixtureRequest) -> Callable[[], Shell]:
    """Make the shell of a test, once for each event loop."""
    if request.param == "local":
        return LocalShell
    request.getfixturevalue("server")
    return lambda: SshShell(HOST)
