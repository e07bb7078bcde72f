"""Http hooks: an endpoint is told what happened, and answers as a command would on its stdout."""

import os
import socket
import ssl
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from turngate.aio.threads import run_in_thread
from turngate.core.events import Event
from turngate.core.hook_input import encode
from turngate.core.hooks import HttpHook
from turngate.core.http_policy import (
    Headers,
    is_loopback,
    read_headers,
    redirected,
    same_origin,
    url_objection,
)
from turngate.core.reports import Replied, Report, RunFailed
from turngate.core.settings import Settings
from turngate.core.text import describe_url
from turngate.ports import RunContext, World

if TYPE_CHECKING:
    import httpx2

LONGEST = 1024 * 1024  # bytes of an answer
REDIRECTS = 3  # to the same host; to another one nothing is sent
_REPEATS = (301, 302, 307, 308)  # 303 asks for a GET, which tells nobody anything
MISSING = "http hooks need a library that is not installed: pip install 'turngate[http]'"


async def run_http(
    hook: HttpHook,
    event: Event,
    settings: Settings,
    world: World,
    live: RunContext,
    *,
    source: str = "python",
) -> Report:
    """`source`: who wrote the hook. A project may not send what people say over the net in the clear."""
    refused = url_objection(hook.url, source, settings.allowed_urls)
    if refused:
        return RunFailed(refused)
    try:
        library = await run_in_thread(import_module, "httpx2")
    except ImportError:
        return RunFailed(MISSING)
    headers = read_headers(hook.headers, hook.allowed_env_vars, {**world.environ, **settings.env})
    live.warnings.extend(headers.warnings)
    live.redactor = headers.redactor
    body = encode(event, settings.dialect, settings.payload)
    near = is_loopback(urlsplit(hook.url).hostname)
    try:
        # The engine's time limit is the only one, and what it cancels closes the connection.
        # No proxy stands between us and this machine.
        trust = await run_in_thread(_trusted, hook.url)
        if not near:
            await _look_up(hook.url)
        seen = {"response": [_set_location_aside]}
        async with library.AsyncClient(
            timeout=None, verify=trust, trust_env=not near, event_hooks=seen
        ) as client:
            report = await _asked(client, hook.url, body, headers, settings, source)
    except library.HTTPError as error:
        report = RunFailed(_why(error, hook.url))
    except library.InvalidURL:
        report = RunFailed(f"{describe_url(hook.url)} is no address that can be asked")
    return RunFailed(headers.redact(report.error)) if isinstance(report, RunFailed) else report


async def _set_location_aside(response: "httpx2.Response") -> None:
    """The library reads a redirect's address also where it follows none, and fails if it can not."""
    response.extensions["location"] = response.headers.pop("Location", "")


async def _look_up(url: str) -> None:
    """A name that nobody answers for is waited for here: the loop's own thread would hold up the program's exit."""
    parts = urlsplit(url)
    with suppress(
        OSError, UnicodeError, RuntimeError
    ):  # whoever connects says it better, or a proxy knows it
        await run_in_thread(socket.getaddrinfo, parts.hostname, parts.port or parts.scheme)


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
        place = _shown(url, headers)
        async with client.stream("POST", url, content=body, headers=sent) as response:
            location = response.extensions["location"]
            target = redirected(url, location)
            if response.status_code not in _REPEATS or not location or target == url:
                return await _read(response, place)
        if target is None:
            return RunFailed(f"{place} sends us on to an address that can not be used")
        if not same_origin(url, target):
            host = _host(target) if headers.redact(target) == target else "…"
            return RunFailed(f"{place} sends us on to {host}: nothing is sent to another host")
        refused = url_objection(target, source, settings.allowed_urls, known_as=_shown(target, headers))
        if refused:
            return RunFailed(refused)
        url = target
    return RunFailed(f"{_shown(url, headers)} sends us on more than {REDIRECTS} times")


def _shown(url: str, headers: Headers) -> str:
    """Hidden before it is cut: nobody finds half a secret."""
    return describe_url(headers.redact(url))


async def _read(response: "httpx2.Response", place: str) -> Report:
    if not response.is_success:
        return RunFailed(f"HTTP {response.status_code} from {place}")  # Claude Code's words
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        return RunFailed(f"{place} answered with a compressed text, although none was asked for")
    answer = bytearray()
    async for piece in response.aiter_raw():
        answer += piece
        if len(answer) > LONGEST:
            return RunFailed(f"{place} answered with more than {LONGEST // 1024:,} KiB")
    return Replied(answer.decode("utf-8", "replace"))


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
    return describe_url(urlsplit(url).netloc)
