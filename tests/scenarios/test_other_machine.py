"""A project on a machine that shares no file of the tests with this one."""

import os
from pathlib import Path

import pytest

from tests.support.servers.mount_namespace import NO_NAMESPACE
from tests.support.servers.ssh import HOST, SSHD, SshServer
from tests.support.shells import run
from turngate.shells.ssh.shell import SshShell


@pytest.fixture
def box(other_machine: SshServer) -> SshServer:
    if other_machine.namespace is None:
        why = NO_NAMESPACE if SSHD else "no sshd: install openssh-server"
        pytest.skip(f"the server has the files of this machine: {why}")
    return other_machine


def test_no_folder_of_the_tests_is_on_both_machines(box: SshServer, home: Path, tmp_path: Path) -> None:
    """The server must be another machine, or the other tests show nothing."""
    (box.home / "there").touch()
    path = box.path_there(box.home / "there")
    folders = (home, tmp_path, Path(os.environ["TMPDIR"]), box.home)
    seen = run(lambda: SshShell(HOST), f"ls -d {' '.join(map(str, folders))} {path} 2>/dev/null")
    (box.home / "there").unlink()
    assert (seen.stdout, os.path.exists(path)) == (f"{path}\n", False)
