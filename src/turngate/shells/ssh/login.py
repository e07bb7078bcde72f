"""Open an SSH connection as the user's own `ssh` would: config, agent, keys, known hosts. Never asks, never accepts."""

import asyncio
import contextlib
import glob
import os
import shlex
import socket
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import asyncssh
from asyncssh.encryption import get_default_encryption_algs

from turngate.aio.threads import run_in_thread

KEEPALIVE_S = 15  # without an answer to three of them, the connection is lost
MAX_JUMPS = 8
USER_KNOWN_HOSTS = ("~/.ssh/known_hosts", "~/.ssh/known_hosts2")
GLOBAL_KNOWN_HOSTS = ("/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2")


class CannotConnect(Exception):
    """One sentence: why there is no connection, and what to do."""

    def __init__(self, message: str, *, is_transient: bool = False) -> None:
        super().__init__(message)
        self.is_transient = is_transient  # the server may be restarting


class Address(NamedTuple):
    """`host` may be a name of `~/.ssh/config`."""

    host: str
    user: str | None
    port: int | None


async def connect(address: Address, limit: float) -> asyncssh.SSHClientConnection:
    """Open a connection within `limit` seconds. Raises CannotConnect."""
    attempt = _Attempt()
    try:
        async with asyncio.timeout(limit):
            return await _open(address, attempt)
    except TimeoutError:
        check = f"check the connection with `{ssh_command(address)}`"
        raise CannotConnect(f"{attempt.missing} within {limit:.3g} s; {check}", is_transient=True) from None


class _Attempt:
    """A call of `connect`, which may open several connections."""

    missing = ""  # what has not happened yet


async def _open(
    address: Address, attempt: _Attempt, tunnel: asyncssh.SSHClientConnection | None = None, depth: int = 0
) -> asyncssh.SSHClientConnection:
    """Open a connection, through those of the jump hosts if there are any; each is checked as a host of its own."""
    host, user, port = address
    known_hosts, ssh = _KnownHosts(), ssh_command(address)
    options: asyncssh.SSHClientConnectionOptions | None = None
    attempt.missing = f"{host} did not answer"
    try:
        options = await asyncssh.SSHClientConnectionOptions.construct(
            config=(),  # ~/.ssh/config
            host=host,
            port=port if port is not None else (),
            username=user if user is not None else (),
            client_factory=lambda: _Client(known_hosts),
            client_keys=None,  # `_connect` reads them
            password_auth=False,
            kbdint_auth=False,
        )
        known_hosts.configure(options.known_hosts)
        if tunnel is None and isinstance(options.tunnel, str):
            tunnel = await _open_jumps(options.tunnel, host, attempt, depth)
        if tunnel is None and not options.proxy_command:
            await _resolve(options, attempt)
        attempt.missing = f"{host} did not answer"
        try:
            return await _connect(host, options, known_hosts, tunnel)
        except (ConnectionError, asyncssh.ConnectionLost, asyncssh.KeyExchangeFailed):
            if not known_hosts.files:
                raise
            # asyncssh asks for keys of the known types only. Which key has a server of other types?
            return await _connect(host, options, known_hosts, tunnel, server_host_key_algs="default")
    except BaseException as error:
        if tunnel is not None:
            tunnel.abort()
        if isinstance(error, OSError | asyncssh.Error | ValueError):
            raise _explain(error, known_hosts, ssh, host, options) from None
        raise


async def _resolve(options: asyncssh.SSHClientConnectionOptions, attempt: _Attempt) -> None:
    """Resolve the name before asyncssh does: a name server that is silent would hold its thread, and the program's exit."""
    if options.canonicalize_hostname or options.config.has_match_final():
        return  # asyncssh may yet choose another name
    attempt.missing = f"the name {options.host} was not resolved"
    await run_in_thread(socket.getaddrinfo, options.host, options.port, options.family)


async def _open_jumps(
    jumps: str, host: str, attempt: _Attempt, depth: int
) -> asyncssh.SSHClientConnection | None:
    """Open the connections of `ProxyJump`. asyncssh would look for their keys itself: see `_KnownHosts`."""
    if depth == MAX_JUMPS:
        raise CannotConnect(
            f"the ProxyJump of {host} leads to more than {MAX_JUMPS} hosts; check ~/.ssh/config"
        )
    tunnel: asyncssh.SSHClientConnection | None = None
    for jump in jumps.split(","):
        user, _, place = jump.strip().rpartition("@")
        name, colon, number = place.rpartition(":")
        host, port = (name, int(number)) if colon and number.isdigit() else (place, None)
        tunnel = await _open(Address(host, user or None, port), attempt, tunnel, depth + 1)
    return tunnel


async def _connect(
    host: str,
    options: asyncssh.SSHClientConnectionOptions,
    known_hosts: "_KnownHosts",
    tunnel: asyncssh.SSHClientConnection | None,
    **more: str,
) -> asyncssh.SSHClientConnection:
    interval = options.keepalive_interval or KEEPALIVE_S
    connection = await asyncssh.connect(
        host,
        options=options,
        known_hosts=known_hosts.match,
        keepalive_interval=interval,
        encryption_algs=_ciphers(options),
        client_keys=_client_keys(host, options),
        ignore_encrypted=True,
        tunnel=tunnel or (),
        **more,
    )
    connection.set_tunnel(tunnel)  # it is closed with the connection
    return connection


def _ciphers(options: asyncssh.SSHClientConnectionOptions) -> list[str]:
    """Return the ciphers of the user's config, or those of asyncssh with AES-GCM first: ChaCha20 takes it five calls."""
    names = [name.decode("ascii") for name in options.encryption_algs]
    is_default = list(options.encryption_algs) == get_default_encryption_algs()
    return sorted(names, key=lambda name: "gcm" not in name) if is_default else names


def _client_keys(host: str, options: asyncssh.SSHClientConnectionOptions) -> Iterable[str]:
    """Return the keys of the config that exist; asyncssh fails for one that does not. Empty: asyncssh chooses them."""
    files = _identity_files(options)
    found = [file for file in files if os.access(file, os.R_OK)]
    if len(found) == len(files):
        return ()
    if not options.config.get("IdentitiesOnly"):
        return found or iter(())  # an empty list would be the default keys, and not those of the agent alone
    found += [f"{file}.pub" for file in files if file not in found and os.access(f"{file}.pub", os.R_OK)]
    if not found:
        names = " and ".join(files)
        raise CannotConnect(f"no key for {host} can be read: {names}; check IdentityFile in ~/.ssh/config")
    return found


def _identity_files(options: asyncssh.SSHClientConnectionOptions) -> list[str]:
    configured = options.config.get("IdentityFile")
    return [os.path.expanduser(file) for file in configured] if isinstance(configured, list) else []


def ssh_command(address: Address, *words: str) -> str:
    """Return the command with which the user can try the same login."""
    host, user, port = address
    target = f"{user}@{host}" if user else host
    return shlex.join(["ssh", *(["-p", str(port)] if port else []), target, *words])


def _explain(
    error: Exception,
    known_hosts: "_KnownHosts",
    ssh: str,
    host: str,
    options: asyncssh.SSHClientConnectionOptions | None,
) -> CannotConnect:
    if known_hosts.rejected is not None:
        return CannotConnect(known_hosts.describe(known_hosts.rejected, ssh))
    check = f"check the connection with `{ssh}`"
    match error:
        case asyncssh.PermissionDenied():
            return CannotConnect(f"{host} accepts none of your keys; {_advise_login(options, ssh)}")
        case asyncssh.ConnectionLost() | ConnectionResetError():
            why = f"{host} closed the connection before the login"
        case socket.gaierror():
            name = options.host if options else host
            return CannotConnect(
                f"the name {name} cannot be resolved: {error.strerror}; check it, and the hosts of ~/.ssh/config"
            )
        case ConnectionRefusedError() if options:
            why = f"no SSH server listens on {host}, port {options.port}: connection refused"
        case OSError(filename=str(file)) if (
            options and options.proxy_command and file == options.proxy_command[0]
        ):
            return CannotConnect(
                f"the ProxyCommand of {host} cannot be started: {file}: {error.strerror}; "
                "install the program, or change ~/.ssh/config"
            )
        case TimeoutError(errno=None):
            why = f"{host} did not answer within the ConnectTimeout of ~/.ssh/config"
        case OSError():
            file = f"{error.filename}: " if error.filename else ""
            why = f"{host} cannot be reached: {file}{error.strerror or error}"
        case _:
            return CannotConnect(f"the login on {host} failed: {error}; check it with `{ssh}`")
    return CannotConnect(f"{why}; {check}", is_transient=True)


def _advise_login(options: asyncssh.SSHClientConnectionOptions | None, ssh: str) -> str:
    files = _identity_files(options) if options else []
    locked = list(filter(_has_passphrase, files or sorted(glob.glob(os.path.expanduser("~/.ssh/id_*")))))
    check = f"check the login with `{ssh}`"
    add = shlex.join(["ssh-add", *locked])
    return (
        f"a key with a passphrase must be in your agent: add it with `{add}`, or {check}" if locked else check
    )


def _has_passphrase(file: str) -> bool:
    try:
        asyncssh.read_private_key(file)
    except asyncssh.KeyImportError as error:
        return str(error).startswith("Passphrase")
    except OSError:
        pass
    return False


class _KnownHosts:
    """The host keys that `ssh` would accept without a question.

    asyncssh's own search fails for a file that does not exist, leaves the files in /etc/ssh out, and with
    `UserKnownHostsFile none` accepts every key.
    """

    def __init__(self) -> None:
        self.name = ""  # of the host, as in those files
        self.files: list[str] = []  # those that have keys of the host
        self.rejected: asyncssh.SSHKey | None = None
        self._searched: Sequence[str] = ()

    def configure(self, configured: object) -> None:
        """`configured`: the files of the user's config, an empty list for the defaults, or None for no file."""
        files = configured if isinstance(configured, list) else []
        self._searched = files if configured is None or files else (*USER_KNOWN_HOSTS, *GLOBAL_KNOWN_HOSTS)

    def match(self, host: str, addr: str, port: int | None) -> Sequence[Sequence[object]]:
        self.name = f"[{host}]:{port}" if port else host
        self.files = []
        texts: list[str] = []
        for name in map(os.path.expanduser, self._searched):
            with contextlib.suppress(OSError), open(name, encoding="utf-8", errors="replace") as file:
                texts.append(file.read())
                if any(asyncssh.import_known_hosts(texts[-1]).match(host, addr, port)[:2]):
                    self.files.append(name)
        return asyncssh.import_known_hosts("\n".join(texts)).match(host, addr, port)

    def describe(self, key: asyncssh.SSHKey, ssh: str) -> str:
        """Return why a key is rejected, and what would accept it."""
        shown = f" ({key.get_algorithm()} {key.get_fingerprint()})"
        if not self.files:
            return (
                f"the host key of {self.name} is not known{shown}; "
                f"compare it with the server's own key and accept it with `{ssh}`"
            )
        remove = " and ".join(f"`{shlex.join(self._remove_command(file))}`" for file in self.files)
        return (
            f"the host key of {self.name} has CHANGED{shown}: another machine may be answering; "
            f"if the server has a new key, remove the old one with {remove} and accept it with `{ssh}`"
        )

    def _remove_command(self, file: str) -> list[str]:
        is_default = file == os.path.expanduser(USER_KNOWN_HOSTS[0])
        return ["ssh-keygen", *([] if is_default else ["-f", file]), "-R", self.name]


class _Client(asyncssh.SSHClient):
    def __init__(self, known_hosts: _KnownHosts) -> None:
        self._known_hosts = known_hosts

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002 - asyncssh's signature
        """Called for a key that is not known. asyncssh has one error for unknown and changed keys."""
        self._known_hosts.rejected = key
        return False
