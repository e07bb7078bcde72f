"""Http hooks: an endpoint is told what happened, and answers as a command would on its stdout."""

import os
import socket
import ssl
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from turngate.core.endpoints import Headers, is_loopback, objection, read_headers, same_origin
from turngate.core.events import Event
from turngate.core.hooks import HttpHook, shown
from turngate.core.reports import Broke, Replied, Report
from turngate.core.settings import Settings
from turngate.core.wire import encode
from turngate.ports import Live, World
from turngate.tasks import in_thread, off_the_loop

if TYPE_CHECKING:
    import httpx2

LONGEST = 1024 * 1024  # bytes of an answer
REDIRECTS = 3  # to the same host; to another one nothing is sent
_REPEATS = (301, 302, 307, 308)  # 303 asks for a GET, which tells nobody anything
MISSING = "http hooks need a library that is not installed: pip install 'turngate[http]'"


async def run_http(
    hook: HttpHook, event: Event, settings: Settings, world: World, live: Live, *, source: str = "python"
) -> Report:
    """`source`: who wrote the hook. A project may not send what people say over the net in the clear."""
    refused = objection(hook.url, source, settings.allowed_urls)
    if refused:
        return Broke(refused)
    try:
        library = await off_the_loop(import_module, "httpx2")
    except ImportError:
        return Broke(MISSING)
    headers = read_headers(hook.headers, hook.allowed_env_vars, {**world.environ, **settings.env})
    live.remarks.extend(headers.remarks)
    body = encode(event, settings.dialect, settings.payload)
    near = is_loopback(urlsplit(hook.url).hostname)
    try:
        # The engine's time limit is the only one, and what it cancels closes the connection.
        # No proxy stands between us and this machine.
        trust = await off_the_loop(_trusted, hook.url)
        if not near:
            await _look_up(hook.url)
        async with library.AsyncClient(timeout=None, verify=trust, trust_env=not near) as client:
            return await _asked(client, hook.url, body, headers, settings, source)
    except library.HTTPError as error:
        return Broke(_why(error, hook.url))
    except library.InvalidURL:
        return Broke(f"{shown(hook.url)} is no address that can be asked")


async def _look_up(url: str) -> None:
    """A name that nobody answers for is waited for here: the loop's own thread would hold up the program's exit."""
    parts = urlsplit(url)
    with suppress(
        OSError, UnicodeError, RuntimeError
    ):  # whoever connects says it better, or a proxy knows it
        await in_thread(socket.getaddrinfo, parts.hostname, parts.port or parts.scheme)


def _trusted(url: str) -> ssl.SSLContext:
    """Whom this machine trusts; to read that takes a while, and without encryption nobody needs it."""
    if urlsplit(url).scheme == "https":
        return ssl.create_default_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _asked(
    client: "httpx2.AsyncClient", url: str, body: bytes, headers: Headers, settings: Settings, source: str
) -> Report:
    sent = {**headers.sent, "Content-Type": "application/json", "Accept-Encoding": "identity"}
    for _ in range(REDIRECTS + 1):
        async with client.stream("POST", url, content=body, headers=sent) as response:
            target = _target(url, response.headers.get("Location", ""))
            if response.status_code not in _REPEATS or target == url:
                return await _read(response, url, headers)
        if not same_origin(url, target):
            return Broke(f"{shown(url)} sends us on to {_host(target)}: nothing is sent to another host")
        refused = objection(target, source, settings.allowed_urls)
        if refused:
            return Broke(refused)
        url = target
    return Broke(f"{shown(url)} sends us on more than {REDIRECTS} times")


def _target(url: str, location: str) -> str:
    """Where it sends us on to; the same address, if it does not say."""
    try:
        return urljoin(url, location)
    except ValueError:  # brackets that nobody closed
        return url


async def _read(response: "httpx2.Response", url: str, headers: Headers) -> Report:
    if not response.is_success:
        return Broke(f"HTTP {response.status_code} from {shown(url)}")  # Claude Code's words
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        return Broke(f"{shown(url)} answered with a compressed text, although none was asked for")
    answer = bytearray()
    async for piece in response.aiter_raw():
        answer += piece
        if len(answer) > LONGEST:
            return Broke(f"{shown(url)} answered with more than {LONGEST // 1024:,} KiB")
    return Replied(headers.without_secrets(answer.decode("utf-8", "replace")))


def _why(error: Exception, url: str) -> str:
    """One sentence. A library's own words may hold what was sent, so they are not passed on."""
    cause = _deepest(error)
    match cause:
        case ssl.SSLCertVerificationError():
            return f"the certificate of {_host(url)} is not trusted: {cause.verify_message}"
        case ssl.SSLError():
            return f"no encrypted connection to {_host(url)}: {(cause.reason or 'TLS failed').lower().replace('_', ' ')}"
        case socket.gaierror():
            return f"there is no host {_host(url)}: {cause.strerror}"
        case OSError():
            return f"{_host(url)} can not be reached: {os.strerror(cause.errno) if cause.errno else 'no connection'}"
        case _:
            return (
                f"the connection to {_host(url)} broke before the answer was whole ({type(error).__name__})"
            )


def _deepest(error: BaseException) -> BaseException:
    """What the system said, below all that libraries have wrapped around it."""
    found, inner = error, error.__cause__ or error.__context__
    while inner is not None:
        if isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        if isinstance(inner, OSError):
            found = inner
        inner = inner.__cause__ or inner.__context__
    return found


def _host(url: str) -> str:
    parts = urlsplit(shown(url))
    return parts.netloc or shown(url)
