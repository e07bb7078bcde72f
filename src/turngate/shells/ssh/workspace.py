"""The workspace of a project on another machine: `Workspace.ssh`, and the places that `--ssh` names."""

import asyncio
import os
import re
from collections.abc import Mapping
from typing import NamedTuple

from turngate.aio.cancellation import finish_despite_cancel
from turngate.core.constants import AGENT_MARKERS
from turngate.core.hooks.kinds import CommandHook
from turngate.errors import UsageError
from turngate.ports import ConnectionLost, HookRunContext, NotStarted, RemoteMachine, Shell, World
from turngate.shells.remote_files.files import RemoteFiles

_LOCATION = re.compile(r"(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]]+\]|[^@/:\[\]]+):(?P<path>.+)", re.DOTALL)
_URL = re.compile(
    r"ssh://(?:(?P<user>[^@/:]+)@)?(?P<host>\[[^\]]+\]|[^@/:\[\]]+)(?::(?P<port>\d+))?(?P<path>/.+)",
    re.DOTALL,
)
_FIND_FOLDER = 'unset CDPATH; cd -- "$1" && pwd'
FIND_TIMEOUT_S = 10.0


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


async def open_ssh_workspace(
    host: str, path: str, *, user: str | None, port: int | None, connect_timeout: float | None
) -> World:
    """Connect, and return the workspace of a folder there. Raises UsageError."""
    if "@" in host:
        given, _, name = host.rpartition("@")
        raise UsageError(f"the host {host!r} names a user; expected host={name!r}, user={given!r}")
    try:
        # lazy: asyncssh is an extra, and slow to import
        from turngate.shells.ssh.copies import RemoteCopies  # noqa: PLC0415
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
        project = await _find_folder(shell, host, path, home, login)
    except (NotStarted, ConnectionLost) as error:
        await shell.close()
        raise UsageError(str(error.strerror or error)) from None
    except BaseException:
        await finish_despite_cancel(shell.close())
        raise
    environ = {**login, **{name: os.environ[name] for name in AGENT_MARKERS if name in os.environ}}
    machine = SshLocation(host, path, user, port).machine
    loop, copies = asyncio.get_running_loop(), RemoteCopies(shell)
    files = RemoteFiles(shell, loop, home=home, environ=environ, machine=machine)

    async def disconnect() -> None:
        for part in (copies, background, shell):
            await part.close()

    return World(
        shell,
        project,
        environ=environ,
        remote=RemoteMachine(files, copies, background, disconnect),
    )


def _home_folder(host: str, environ: Mapping[str, str]) -> str:
    home = environ.get("HOME", "")
    if not home.startswith("/"):
        wrong = f"is {home!r}" if home else "is not set"
        raise UsageError(f"HOME {wrong} in a login on {host}; expected the path of the home folder there")
    return home


async def _find_folder(shell: Shell, host: str, path: str, home: str, environ: Mapping[str, str]) -> str:
    """Return the absolute path of a folder there; a relative one begins at the home folder."""
    path = home + path[1:] if path == "~" or path.startswith("~/") else path
    hook = CommandHook("/bin/sh", args=("-c", _FIND_FOLDER, "sh", path))
    live = HookRunContext()
    try:
        async with asyncio.timeout(FIND_TIMEOUT_S):
            found = await shell.run(hook, cwd=home, env=environ, stdin=b"", live=live)
    except TimeoutError:
        raise UsageError(f"{host} did not answer within {FIND_TIMEOUT_S:g} s; try again") from None
    folder = live.stdout.data().decode("utf-8", "surrogateescape")
    if found.code != 0 or not folder.startswith("/"):
        raise UsageError(
            f"there is no folder {path} on {host}, or no access to it; expected the project's folder"
        )
    return folder.removesuffix("\n")
