"""Which proxy a request goes through: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`."""

import base64
import ipaddress
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from turngate.core.hooks.http_policy import is_loopback
from turngate.http.errors import HttpSetupError


class Proxy(NamedTuple):
    host: str
    port: int
    authorization: str  # value of the header, or ""


def proxy_for(scheme: str, host: str, port: int, environ: Mapping[str, str]) -> Proxy | None:
    """Return the proxy for a server, or None for a direct connection. Raises HttpSetupError if its URL is not usable."""
    if is_loopback(host.rstrip(".").lower()) or _is_excluded(host, port, _variable("no_proxy", environ)):
        return None
    for name in (f"{scheme}_proxy", "all_proxy"):
        if value := _variable(name, environ):
            return _parse(name.upper(), value)
    return None


def _variable(name: str, environ: Mapping[str, str]) -> str:
    return (environ.get(name) or environ.get(name.upper()) or "").strip()


def _is_excluded(host: str, port: int, patterns: str) -> bool:
    """Return whether NO_PROXY names the host: `*`, a domain with its subdomains, either with a port, or a network."""
    host = host.rstrip(".").lower()
    return any(
        _covers(pattern.strip().lower(), host, port) for pattern in patterns.split(",") if pattern.strip()
    )


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
