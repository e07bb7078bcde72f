"""Http hooks: POST the event to an endpoint, which replies as a command would on its stdout."""

import os
import socket
import ssl
from contextlib import suppress
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from turngate.aio.threads import run_in_thread
from turngate.core.events import Event
from turngate.core.hook_input import encode
from turngate.core.hooks import HttpHook
from turngate.core.http_policy import (
    Headers,
    is_loopback,
    read_headers,
    redirect_target,
    same_origin,
    url_problem,
)
from turngate.core.plugin_variables import describe_user_config, used_user_config
from turngate.core.reports import HookFailed, Replied, Report
from turngate.core.settings import Settings
from turngate.core.text import describe_url
from turngate.ports import HookRunContext, World

MAX_REPLY_BYTES = 1024 * 1024
MAX_REDIRECTS = 3  # to the same host; nothing is sent to another one
_REDIRECTS = (301, 302, 307, 308)  # not 303: it asks for a GET, which has no body


async def run_http(
    hook: HttpHook,
    event: Event,
    settings: Settings,
    world: World,
    live: HookRunContext,
    *,
    source: str = "python",
) -> Report:
    """Send the event. `source` is the level of the hook: a project's hook may not send it unencrypted."""
    if found := used_user_config(hook):
        return HookFailed(f"it {describe_user_config(found[0])}; write the value itself")
    if problem := url_problem(hook.url, source, settings.allowed_urls, settings.http_hook_urls):
        return HookFailed(problem)
    try:
        library = await run_in_thread(import_module, "httpx2")
    except ImportError:
        return HookFailed(_missing_library())
    environ = {**world.environ, **settings.env}
    headers = read_headers(hook.headers, hook.allowed_env_vars, environ, settings.http_hook_variables)
    live.warnings.extend(headers.warnings)
    live.redactor = headers.redactor
    body = encode(event, settings.dialect, settings.payload)
    try:
        async with await _open_client(library, hook.url) as client:
            report = await _post(client, hook.url, body, headers, settings, source)
    except library.HTTPError as error:
        report = HookFailed(_describe_failure(error, hook.url))
    except library.InvalidURL:
        report = HookFailed(f"{describe_url(hook.url)} is not a valid URL")
    return HookFailed(headers.redact(report.error)) if isinstance(report, HookFailed) else report


def _missing_library() -> str:
    from turngate.extras import install_command  # noqa: PLC0415 - lazy: not needed where the library is installed

    return f"http hooks need a library that is not installed: {install_command('http')}"


async def _open_client(library: Any, url: str) -> Any:
    """The engine's timeout is the only one; cancelling closes the connection. A local endpoint has no proxy."""
    is_local = is_loopback(urlsplit(url).hostname)
    context = await run_in_thread(_ssl_context, url)
    if not is_local:
        await _resolve_host(url)
    hooks = {"response": [_set_location_aside]}
    return library.AsyncClient(timeout=None, verify=context, trust_env=not is_local, event_hooks=hooks)


async def _set_location_aside(response: Any) -> None:
    """The library parses a redirect's URL even when it does not follow it, and fails if it is invalid."""
    response.extensions["location"] = response.headers.pop("Location", "")


async def _resolve_host(url: str) -> None:
    """Resolve the host in a daemon thread: the loop's own resolver thread would delay the exit of the program."""
    parts = urlsplit(url)
    # An error is reported when connecting, or a proxy resolves the name.
    with suppress(OSError, UnicodeError, RuntimeError):
        await run_in_thread(socket.getaddrinfo, parts.hostname, parts.port or parts.scheme)


def _ssl_context(url: str) -> ssl.SSLContext:
    """Loading this machine's certificates is slow, and plain http does not need them."""
    if urlsplit(url).scheme == "https":
        return ssl.create_default_context()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


async def _post(
    client: Any, url: str, body: bytes, headers: Headers, settings: Settings, source: str
) -> Report:
    """Send the event and follow redirects to the same host. `client` is an `httpx2.AsyncClient`."""
    request_headers = {**headers.fields, "Content-Type": "application/json", "Accept-Encoding": "identity"}
    for _ in range(MAX_REDIRECTS + 1):
        name = _describe_url(url, headers)
        async with client.stream("POST", url, content=body, headers=request_headers) as response:
            location = response.extensions["location"]
            target = redirect_target(url, location)
            if response.status_code not in _REDIRECTS or not location or target == url:
                return await _read_reply(response, name)
        if target is None:
            return HookFailed(f"{name} redirects to a URL that is not valid")
        if not same_origin(url, target):
            host = _host(target) if headers.redact(target) == target else "…"
            return HookFailed(f"{name} redirects to {host}: nothing is sent to another host")
        target_name = _describe_url(target, headers)
        lists = settings.allowed_urls, settings.http_hook_urls
        if problem := url_problem(target, source, *lists, name=target_name):
            return HookFailed(problem)
        url = target
    return HookFailed(f"{_describe_url(url, headers)} redirects more than {MAX_REDIRECTS} times")


def _describe_url(url: str, headers: Headers) -> str:
    """Redact before truncating, so that no half of a secret stays."""
    return describe_url(headers.redact(url))


async def _read_reply(response: Any, name: str) -> Report:
    if not response.is_success:
        return HookFailed(f"HTTP {response.status_code} from {name}")  # Claude Code's words
    if response.headers.get("Content-Encoding", "identity").lower() != "identity":
        return HookFailed(f"{name} replied with compressed content, which was not requested")
    reply = bytearray()
    async for chunk in response.aiter_raw():
        reply += chunk
        if len(reply) > MAX_REPLY_BYTES:
            return HookFailed(f"{name} replied with more than {MAX_REPLY_BYTES // 1024:,} KiB")
    return Replied(reply.decode("utf-8", "replace"))


def _describe_failure(error: Exception, url: str) -> str:
    """Return one sentence. The library's own message may contain what was sent, so it is not used."""
    cause = _innermost_os_error(error)
    host = _host(url)
    match cause:
        case ssl.SSLCertVerificationError():
            return f"the certificate of {host} is not trusted: {cause.verify_message}"
        case ssl.SSLError():
            reason = (cause.reason or "TLS failed").lower().replace("_", " ")
            return f"no encrypted connection to {host}: {reason}"
        case socket.gaierror():
            return f"the host {host} cannot be resolved: {cause.strerror}"
        case OSError():
            reason = os.strerror(cause.errno) if cause.errno else "no connection"
            return f"{host} cannot be reached: {reason}"
        case _:
            return (
                f"the connection to {host} was closed before the reply was complete ({type(error).__name__})"
            )


def _innermost_os_error(error: BaseException) -> BaseException:
    """Return the innermost OSError of the chain, or the error itself."""
    result, inner = error, error.__cause__ or error.__context__
    while inner is not None:
        if isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        if isinstance(inner, OSError):
            result = inner
        inner = inner.__cause__ or inner.__context__
    return result


def _host(url: str) -> str:
    return describe_url(urlsplit(url).netloc)
