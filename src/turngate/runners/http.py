"""Http hooks: POST the event to an endpoint, which replies as a command would on its stdout."""

from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from turngate.core.answers.report_types import HookFailed, Replied, Report
from turngate.core.events.events import Event
from turngate.core.events.hook_input import encode
from turngate.core.hooks.http_policy import Headers, read_headers, redirect_target, same_origin, url_problem
from turngate.core.hooks.kinds import HttpHook
from turngate.core.hooks.plugin_variables import describe_user_config, used_user_config
from turngate.core.redaction import join_redactors
from turngate.core.settings import Settings
from turngate.core.text import describe_url
from turngate.http.connection import UNLIMITED, HttpError, request_target
from turngate.ports import HookRunContext, World
from turngate.runners.command import environ_and_level

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
    """Send the event, from this machine. `source` is the level of the hook: a project's hook may not send it unencrypted."""
    environ, source = environ_and_level(source, world)
    if found := used_user_config(hook):
        return HookFailed(f"it {describe_user_config(found[0])}; write the value itself")
    if problem := url_problem(hook.url, source, settings.allowed_urls, settings.http_hook_urls):
        return HookFailed(problem)
    variables = {**environ, **settings.env}
    headers = read_headers(hook.headers, hook.allowed_env_vars, variables, settings.http_hook_variables)
    live.warnings.extend(headers.warnings)
    live.redactor = join_redactors(headers.redactor, live.redactor)
    body = encode(event, settings.dialect, settings.payload)
    try:
        from turngate.http.client import HttpClient  # noqa: PLC0415 - lazy: its library may not be installed

        # The engine's timeout is the only one; cancelling closes the connection.
        client = HttpClient(hook.url, world.own_environ, UNLIMITED)
    except ImportError:
        from turngate.extra_install import install_command  # noqa: PLC0415 - lazy: only needed here

        return HookFailed(f"http hooks need a library that is not installed: {install_command('http')}")
    except ValueError:
        return HookFailed(f"{describe_url(hook.url)} is not a valid URL")
    with closing(client):
        try:
            report = await _post(client, hook.url, body, headers, settings, source)
        except HttpError as error:
            report = HookFailed(str(error))
    return HookFailed(headers.redact(report.error)) if isinstance(report, HookFailed) else report


async def _post(
    client: Any, url: str, body: bytes, headers: Headers, settings: Settings, source: str
) -> Report:
    """Send the event and follow redirects to the same host. `client` is an HttpClient."""
    request_headers = {**headers.fields, "Content-Type": "application/json", "Accept-Encoding": "identity"}
    for _ in range(MAX_REDIRECTS + 1):
        name = _describe_url(url, headers)
        async with client.post(request_target(url), request_headers, body) as response:
            location = response.headers.get("location", "")
            target = redirect_target(url, location)
            if response.status not in _REDIRECTS or not location or target == url:
                return await _read_reply(response, name)
        if target is None:
            return HookFailed(f"{name} redirects to a URL that is not valid")
        if not same_origin(url, target):
            host = describe_url(urlsplit(target).netloc) if headers.redact(target) == target else "…"
            return HookFailed(f"{name} redirects to {host}: nothing is sent to another host")
        lists = settings.allowed_urls, settings.http_hook_urls
        if problem := url_problem(target, source, *lists, name=_describe_url(target, headers)):
            return HookFailed(problem)
        url = target
    return HookFailed(f"{_describe_url(url, headers)} redirects more than {MAX_REDIRECTS} times")


def _describe_url(url: str, headers: Headers) -> str:
    """Redact before truncating, so that no half of a secret stays."""
    return describe_url(headers.redact(url))


async def _read_reply(response: Any, name: str) -> Report:
    if not 200 <= response.status < 300:
        return HookFailed(f"HTTP {response.status} from {name}")  # Claude Code's words
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        return HookFailed(f"{name} replied with compressed content, which was not requested")
    reply: bytes = await response.read(MAX_REPLY_BYTES + 1)
    if len(reply) > MAX_REPLY_BYTES:
        return HookFailed(f"{name} replied with more than {MAX_REPLY_BYTES // 1024:,} KiB")
    return Replied(reply.decode("utf-8", "replace"))
