"""What runs leave on the machine of an SSH server: processes, and files in the folder for temporary ones."""

import contextlib
import os
from pathlib import Path

from tests.support.live_models import wait_until
from tests.support.servers.ssh import SshServer


def files_left(server: SshServer) -> list[str]:
    """Return what is in the temporary folder there, which may be removed meanwhile."""
    found = [
        os.path.join(path, name)
        for path, folders, files in os.walk(server.temporary)
        for name in (*folders, *files)
    ]
    return sorted(os.path.relpath(path, server.temporary) for path in found)


def processes_left(server: SshServer) -> list[str]:
    """Return the command lines of all processes with the home folder of the server: its logins have it, and sshd has not."""
    variable = b"HOME=" + os.fsencode(server.path_there(server.home))
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended; the environment of a zombie is empty
            if variable in (process / "environ").read_bytes().split(b"\0"):
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return found


def assert_nothing_is_left(server: SshServer) -> None:
    """Wait for the end of all processes of a server that no other test uses, and of their files."""
    with contextlib.suppress(AssertionError):
        wait_until(lambda: not processes_left(server) and not files_left(server), "")
    assert (processes_left(server), files_left(server)) == ([], [])
