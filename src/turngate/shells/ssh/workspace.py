"""The workspace of a project on another machine: `Workspace.ssh`, and the places that `--ssh` names."""

import asyncio
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from turngate.aio.threads import finish_despite_cancel, run_in_thread
from turngate.core.constants import IN_HOOK, IN_TOOL
from turngate.errors import UsageError
from turngate.ports import ConnectionLost, NotStarted, RemoteMachine, World
from turngate.project.files import Files, MachineUnreachable

_LOCATION = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]]+\]|[^@/:\[\]]+):(?P<path>.+)", re.DOTALL)
_URL = re.compile(
    r"ssh://(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]]+\]|[^@/:\[\]]+)(?::(?P<port>\d+))?(?P<path>/.+)",
    re.DOTALL,
)


class SshLocation(NamedTuple):
    """A folder on another machine. `host` may be a name of `~/.ssh/config`."""

    host: str
    path: str
    user: str | None = None
    port: int | None = None

    @property
    def name(self) -> str:
        user = f"{self.user}@" if self.user else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{user}{host}" + (f":{self.port}" if self.port else "")

    @property
    def machine(self) -> str:
        return f"ssh://{self.name}"


def parse_ssh_location(text: str) -> SshLocation:
    """Parse `[user@]host:path` or `ssh://[user@]host[:port]/path`. Raises UsageError."""
    match = _URL.fullmatch(text) or (None if text.startswith("ssh://") else _LOCATION.fullmatch(text))
    if match is None or "\0" in text or match["host"].startswith("-"):
        raise UsageError(
            f"--ssh {text}: expected [user@]host:path, or ssh://[user@]host[:port]/path, with the project's folder"
        )
    found = match.groupdict()
    port = int(found.get("port") or 0)
    if port > 65535:
        raise UsageError(f"--ssh {text}: there is no port {port}; ports end at 65535")
    return SshLocation(found["host"].strip("[]"), found["path"], found["user"], port or None)


_NOT_IN_NAMES = re.compile(r"""['"`$\\;&<>|(){},\s\x00-\x1f\x7f]""")


async def open_ssh_workspace(
    host: str, path: str, *, user: str | None, port: int | None, connect_timeout: float | None
) -> World:
    """Connect, and return the workspace of a folder there. Raises UsageError."""
    for what, name in (("host", host), ("user", user or "")):
        # As `ssh` refuses them: a ProxyCommand may get them.
        if name.startswith("-") or _NOT_IN_NAMES.search(name):
            raise UsageError(f"the {what} {name!r} has characters that the name of a {what} cannot have")
    if "@" in host:
        given, _, name = host.rpartition("@")
        raise UsageError(f"the host {host!r} names a user; expected host={name!r}, user={given!r}")
    try:
        # lazy: asyncssh is an extra, and slow to import
        from turngate.shells.ssh.copies import RemoteCopies  # noqa: PLC0415
        from turngate.shells.ssh.files import SshFiles  # noqa: PLC0415
        from turngate.shells.ssh.shell import SshShell  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("asyncssh", "cryptography"):
            raise
        from turngate.extra_install import install_command  # noqa: PLC0415

        raise UsageError(
            f"SSH needs asyncssh, which is not installed; to install it: {install_command('ssh')}"
        ) from None
    shell, background = (
        SshShell(host, user=user, port=port, connect_timeout=connect_timeout) for _ in range(2)
    )
    try:
        login = await shell.environment()
        home = _home_folder(host, login)
        environ = {**login, **{name: os.environ[name] for name in (IN_HOOK, IN_TOOL) if name in os.environ}}
        machine = SshLocation(host, path, user, port).machine
        files = SshFiles(shell, asyncio.get_running_loop(), home=home, environ=environ, machine=machine)
        project = await run_in_thread(_find_folder, files, host, path)
    except (NotStarted, ConnectionLost, MachineUnreachable) as error:
        await shell.close()
        raise UsageError(str(getattr(error, "strerror", None) or error)) from None
    except BaseException:
        await finish_despite_cancel(shell.close())
        raise
    copies = RemoteCopies(shell)

    async def disconnect() -> None:
        for part in (copies, background, shell):
            await part.close()

    remote = RemoteMachine(files, copies, background, disconnect)
    shell.workspace = World(shell, project, environ=environ, remote=remote)
    return shell.workspace


def _home_folder(host: str, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    if not home.startswith("/"):
        wrong = f"is {home!r}" if home else "is not set"
        raise UsageError(f"HOME {wrong} in a login on {host}; expected the path of the home folder there")
    return home


def _find_folder(files: Files, host: str, path: str) -> str:
    """Return the absolute path of a folder there; a relative one begins at the home folder."""
    folder = os.path.normpath(os.path.join(files.home, files.expand_home(path)))
    if not files.isdir(f"{folder}/."):
        raise UsageError(
            f"there is no folder {path} on {host}, or no access to it; expected the project's folder"
        )
    return folder
