"""One connection to a server: opened directly or through a proxy, encrypted for https."""

import asyncio
import base64
import ipaddress
import os
import re
import socket
import ssl
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit

from turngate.aio.threads import run_in_thread
from turngate.core.hooks.http_policy import is_loopback

CONNECT_S = 30.0
FIRST_BYTE_S = 600.0
SILENCE_S = 300.0
NEXT_ADDRESS_S = 0.25  # when the next address of a host is tried as well (RFC 8305)
MAX_PROXY_REPLY_BYTES = 16 * 1024
_HOST = re.compile(r"[\w.-]+|[0-9a-f:.]+(%\w+)?", re.ASCII)


class HttpError(Exception):
    """There is no complete response."""


class HttpSetupError(HttpError):
    """The request cannot succeed with these settings of this machine, so it is not worth a second try."""


class HttpTimeout(HttpError):
    """The server was silent for too long."""


class Proxy(NamedTuple):
    host: str
    port: int
    authorization: str  # value of the header, or ""


class Server(NamedTuple):
    """Where requests are sent."""

    scheme: str
    host: str
    port: int

    @classmethod
    def of(cls, url: str) -> "Server":
        """Raises ValueError if the URL names no server."""
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("expected http://HOST or https://HOST")
        if parts.username is not None:
            raise ValueError("a user name or password in it is not supported")
        host = parts.hostname if parts.hostname.isascii() else parts.hostname.encode("idna").decode()
        if host != parts.hostname and host.encode().decode("idna") != parts.hostname:
            # Python's table is of IDNA 2003, which has another host for some names: fass.de for faß.de.
            raise ValueError("its host must be written in ASCII (xn--…)")
        if not _HOST.fullmatch(host):
            raise ValueError("its host has characters that are not allowed")
        return cls(parts.scheme, host, parts.port or (443 if parts.scheme == "https" else 80))

    @property
    def name(self) -> str:
        """The host for messages and the Host header, with the port if it is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.scheme == "https" else 80) else f"{host}:{self.port}"


def request_target(url: str) -> str:
    """Return the path and the query of a URL as the first line of a request has them."""
    parts = urlsplit(url)
    target = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
    return quote(target, safe="!$%&'()*+,;=:@/?[]")


class Streams(NamedTuple):
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    proxy: Proxy | None  # without a tunnel: the request line names the whole URL


async def connect(server: Server, environ: Mapping[str, str], *, seconds: float | None) -> Streams:
    """Open a connection. Raises HttpError."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            proxy = proxy_for(server.scheme, server.host, server.port, environ)
            return await _connect(server, proxy, environ)
    except OSError as error:
        if limit.expired():
            raise HttpTimeout(f"no connection to {server.name} within {seconds:g} s") from None
        raise connection_error(error, server.name) from None


async def _connect(server: Server, proxy: Proxy | None, environ: Mapping[str, str]) -> Streams:
    # Loading this machine's certificates is slow, and plain http does not need them.
    loading: asyncio.Future[ssl.SSLContext] | None = None
    if server.scheme == "https":
        loading = asyncio.ensure_future(run_in_thread(_trusted_certificates, environ))
    try:
        reader, writer = await _open_proxy(proxy) if proxy else await _open(server.host, server.port)
    except BaseException:
        if loading:
            loading.cancel()
        raise
    try:
        if loading:
            if proxy:
                await _request_tunnel(reader, writer, server, proxy)
            await writer.start_tls(await loading, server_hostname=server.host)
    except BaseException:
        writer.transport.abort()
        raise
    return Streams(reader, writer, None if loading else proxy)


def _trusted_certificates(environ: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if path := environ.get("SSL_CERT_FILE"):  # also one of the user's settings, which OpenSSL does not see
        try:
            context.load_verify_locations(path)
        except ssl.SSLError:
            raise HttpSetupError("the file that SSL_CERT_FILE names has no certificate") from None
        except OSError as error:
            message = f"the file that SSL_CERT_FILE names cannot be read: {error.strerror}"
            raise HttpSetupError(message) from None
    return context


async def _open_proxy(proxy: Proxy) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    try:
        return await _open(proxy.host, proxy.port)
    except OSError as error:
        raise connection_error(error, f"the proxy {proxy.host}:{proxy.port}") from None


async def _open(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the first address of a host that accepts; the next one is tried while the first is still silent."""
    addresses = await _resolve(host, port)
    if len(addresses) == 1:
        return await asyncio.open_connection(addresses[0], port)
    waiting: set[asyncio.Task[tuple[asyncio.StreamReader, asyncio.StreamWriter]]] = set()
    failure: Exception = OSError(f"{host} has no address")
    try:
        while addresses or waiting:
            if addresses:
                waiting.add(asyncio.create_task(asyncio.open_connection(addresses.pop(0), port)))
            limit = NEXT_ADDRESS_S if addresses else None
            done, waiting = await asyncio.wait(waiting, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if error is None:
                    return task.result()
                if not isinstance(error, OSError):
                    raise error
                failure = error
        raise failure
    finally:
        for task in waiting:
            task.cancel()


async def _resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a host. The event loop's own resolver thread would delay the program's exit."""
    try:
        socket.inet_pton(socket.AF_INET6 if ":" in host else socket.AF_INET, host)
    except OSError:
        found = await run_in_thread(lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        return list(dict.fromkeys(str(address[0]) for *_, address in found))
    return [host]


async def _request_tunnel(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, server: Server, proxy: Proxy
) -> None:
    target = f"[{server.host}]:{server.port}" if ":" in server.host else f"{server.host}:{server.port}"
    login = f"Proxy-Authorization: {proxy.authorization}\r\n" if proxy.authorization else ""
    writer.write(f"CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n{login}\r\n".encode())
    reply = b""
    while b"\r\n\r\n" not in reply:
        piece = await reader.read(1024)
        reply += piece
        if not piece or len(reply) > MAX_PROXY_REPLY_BYTES:
            raise HttpError(f"the proxy {proxy.host} gave no answer that can be read")
    status = reply.split(b" ", 2)[1:2]
    if status != [b"200"]:
        code = status[0][:3].decode("ascii", "replace") if status else "nothing"
        raise HttpError(
            f"the proxy {proxy.host} answered {code} to the request for a connection to {server.name}"
        )


class Timeouts(NamedTuple):
    """Seconds; None: no limit."""

    connect: float | None = CONNECT_S
    first_byte: float | None = FIRST_BYTE_S  # until the server begins to answer
    silence: float | None = SILENCE_S  # between two pieces of an answer


UNLIMITED = Timeouts(None, None, None)


def connection_error(error: OSError, name: str) -> HttpError:
    """Return why there is no connection to this host. The library's own text may contain what was sent."""
    match error:
        case ssl.SSLCertVerificationError():
            return HttpSetupError(
                f"the certificate of {name} is not trusted: {error.verify_message}; "
                "set SSL_CERT_FILE to a file that has its certificate"
            )
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER"):
            return HttpSetupError(f"no encrypted connection to {name}: it does not speak TLS")
        case ssl.SSLError():
            reason = (error.reason or "TLS failed").lower().replace("_", " ")
            return HttpError(f"no encrypted connection to {name}: {reason}")
        case socket.gaierror():
            host = name.partition(":")[0]
            what = host if host.startswith("the proxy ") else f"the host {host}"
            return HttpError(f"{what} cannot be resolved: {error.strerror}")
        case _:
            return HttpError(f"{name} cannot be reached: {describe_os_error(error)}")


def describe_os_error(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else "no connection"


def proxy_for(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for a server, or None for a direct connection. Raises HttpSetupError if its URL is not usable."""
    name = host.rstrip(".").lower()
    # NO_PROXY names hosts: `*`, a domain with its subdomains, either with a port, or a network.
    excluded = filter(None, map(str.strip, _variable("no_proxy", environ).lower().split(",")))
    if is_loopback(name) or any(_covers(pattern, name, port) for pattern in excluded):
        return None
    for variable in (f"{scheme}_proxy", "all_proxy"):
        if value := _variable(variable, environ):
            return _parse(variable.upper(), value)
    return None


def _variable(name: str, environ: Mapping[str, str]) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _covers(pattern: str, host: str, port: int) -> bool:
    if pattern == "*":
        return True
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(pattern, strict=False)
    except ValueError:  # one of them is a name
        pass
    name, colon, number = pattern.rpartition(":")
    if colon and number.isdigit():
        if int(number) != port:
            return False
        pattern = name
    domain = pattern.removeprefix("*").strip("[]").strip(".")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _parse(name: str, value: str) -> Proxy:
    """The value may contain a password, so no message contains the value."""
    try:
        parts = urlsplit(value if "://" in value else f"http://{value}")
        port = parts.port or 80
    except ValueError:
        raise HttpSetupError(f"{name} is not a valid URL; expected http://HOST:PORT") from None
    if parts.scheme != "http" or not parts.hostname:
        raise HttpSetupError(f"{name} is not supported; expected http://HOST:PORT")
    authorization = ""
    if parts.username is not None:
        login = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(login.encode()).decode()
    return Proxy(parts.hostname, port, authorization)
