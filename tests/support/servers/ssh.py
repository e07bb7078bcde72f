"""A real OpenSSH server on loopback with its own keys, config and home; without sshd, a server of asyncssh."""

import contextlib
import getpass
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.servers.mount_namespace import MountNamespace, can_make_namespace
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S

NO_SSHD = "NO_SSHD"  # if it is set, the tests run as on a machine without sshd


def _login_shell() -> str:
    try:
        return os.path.basename(pwd.getpwuid(os.getuid()).pw_shell)
    except KeyError:
        return "nologin"


def _find_sshd() -> str | None:
    """Return the program, unless this user cannot log in: sshd starts the shell of the account."""
    if NO_SSHD in os.environ or _login_shell() in ("nologin", "false"):
        return None
    return shutil.which("sshd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")


SSHD = _find_sshd()
READS_BASHRC = SSHD is not None and _login_shell() == "bash"  # for each command, if sshd has started it
HOST = "box"  # the name in the config of the client
PRIVILEGE_SEPARATION = Path("/run/sshd")  # sshd as root needs it; the init script makes it


@cache
def _sshd_version() -> tuple[int, ...]:
    said = subprocess.run(["ssh", "-V"], capture_output=True, text=True, check=False).stderr
    found = re.match(r"OpenSSH_(\d+)\.(\d+)", said)
    return tuple(map(int, found.groups())) if found else ()


class SshServer:
    """A server that can be stopped, started again and killed with its connections.

    `folder`, `home` and `temporary` are paths of this machine; `path_there` returns those of the server.
    """

    def __init__(self, folder: Path, namespace: MountNamespace | None = None, **options: str) -> None:
        self.folder = folder
        # None: the server has the files of this machine.
        self.namespace = namespace if namespace and SSHD and can_make_namespace() else None
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.temporary = folder / "tmp"  # TMPDIR of its logins
        self.temporary.mkdir()
        self.port = _free_port()
        self.options = options
        self._process: subprocess.Popen[bytes] | None = None
        for name in ("host_key", "user_key"):
            make_key(folder / name)
        shutil.copy(folder / "user_key.pub", folder / "authorized_keys")

    def start(self) -> None:
        self._write_config()
        log = (self.folder / "log").open("ab")
        self._process = subprocess.Popen(self._command(), stdout=log, stderr=log, start_new_session=True)
        log.close()
        self._wait_until_it_listens()

    def stop(self) -> None:
        """Stop listening; connections stay."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def kill(self) -> None:
        """Kill the server with all its connections, but not the commands that run for them."""
        connections = self.connections()
        self.stop()
        self._kill(connections)

    def cut_connections(self) -> None:
        """Kill what serves the connections; new ones are accepted."""
        self._kill(self.connections())

    def _kill(self, connections: list[int]) -> None:
        for pid in connections:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def connections(self) -> list[int]:
        """Return the processes of the server that hold connections."""
        return self.processes()[1:]

    def processes(self) -> list[int]:
        """Return the one that listens, and those that hold connections."""
        if self._process is None or SSHD is None:
            return []
        found = [self._process.pid]
        for pid in found:
            found += [child for child in _children(pid) if _name(child).startswith("sshd")]
        return found

    def configure_client(self, home: Path, *, known: bool = True, key: Path | None = None) -> None:
        """Write `~/.ssh`, so that `box` names this server."""
        ssh = home / ".ssh"
        ssh.mkdir(mode=0o700, exist_ok=True)
        lines = (
            f"Host {HOST} build",  # as in the docs
            "HostName 127.0.0.1",
            f"Port {self.port}",
            f"User {getpass.getuser()}",
            f"IdentityFile {key or self.folder / 'user_key'}",
            "IdentitiesOnly yes",
        )
        (ssh / "config").write_text("\n".join(lines) + "\n")
        if known:
            (ssh / "known_hosts").write_text(self.known_hosts_line())

    def path_there(self, path: Path) -> str:
        """Return the path on the machine of the server for one of this machine."""
        return str(path) if self.namespace is None else self.namespace.path(path)

    def known_hosts_line(self, key: str = "host_key") -> str:
        algorithm, data, *_ = (self.folder / f"{key}.pub").read_text().split()
        return f"[127.0.0.1]:{self.port} {algorithm} {data}\n"

    def _command(self) -> list[str]:
        if SSHD is None:
            return [
                sys.executable,
                "-m",
                "tests.support.servers.asyncssh_server",
                str(self.folder),
                str(self.port),
            ]
        if os.getuid() == 0:
            PRIVILEGE_SEPARATION.mkdir(mode=0o755, exist_ok=True)
        command = [SSHD, "-D", "-e", "-f", self.path_there(self.folder / "config")]
        return command if self.namespace is None else self.namespace.command(*command)

    def _write_config(self) -> None:
        options = {
            "Port": str(self.port),
            "ListenAddress": "127.0.0.1",
            "HostKey": self.path_there(self.folder / "host_key"),
            "AuthorizedKeysFile": self.path_there(self.folder / "authorized_keys"),
            "PidFile": "none",
            "StrictModes": "no",
            "UsePAM": "no",
            "UseDNS": "no",
            "PasswordAuthentication": "no",
            "KbdInteractiveAuthentication": "no",
            "PermitRootLogin": "yes",
            "MaxStartups": "1000",
            "SetEnv": f"HOME={self.path_there(self.home)} TMPDIR={self.path_there(self.temporary)}",
            "Subsystem": "sftp internal-sftp",
            # Since OpenSSH 9.8, a client whose login has failed is not answered for a while.
            **({"PerSourcePenalties": "no"} if _sshd_version() >= (9, 8) else {}),
            **self.options,
        }
        (self.folder / "config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))

    def _wait_until_it_listens(self) -> None:
        end = time.monotonic() + HANG_TIMEOUT_S
        while time.monotonic() < end:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            if self._process is not None and self._process.poll() is not None:
                break
            time.sleep(POLL_INTERVAL_S)
        raise AssertionError(f"the server did not start: {(self.folder / 'log').read_text()}")


@contextlib.contextmanager
def ssh_server(folder: Path, namespace: MountNamespace | None = None, **options: str) -> Iterator[SshServer]:
    server = SshServer(folder, namespace, **options)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def make_key(path: Path) -> Path:
    """Make a key pair without a passphrase."""
    if shutil.which("ssh-keygen"):
        command = f"ssh-keygen -q -t ed25519 -N '' -C test -f {shlex.quote(str(path))}"
        subprocess.run(shlex.split(command), check=True, stdin=subprocess.DEVNULL)
        return path
    import asyncssh  # noqa: PLC0415 - takes long to load

    key = asyncssh.generate_private_key("ssh-ed25519", comment="test")
    path.write_bytes(key.export_private_key())
    path.chmod(0o600)
    path.with_name(f"{path.name}.pub").write_bytes(key.export_public_key())
    return path


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    assert isinstance(port, int)
    return port


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""
