"""LiveModel: ask a provider's model over HTTP, one streamed request at a time."""

import asyncio
import json
import os
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from turngate.core.conversation.messages import ModelRequest, Reply
from turngate.errors import ModelError, UsageError
from turngate.http.connection import Timeouts
from turngate.models import providers
from turngate.models.known_models import known_model
from turngate.models.providers import ALIASES, PROVIDERS, Provider, safe_line
from turngate.models.wire.base import AnswerReader, OtherApi, StreamError, Unreadable, WireFormat

try:
    from turngate.http.client import HttpClient, Response
    from turngate.http.connection import HttpError, HttpSetupError, HttpTimeout, request_target
    from turngate.http.event_stream import EventDecoder
except ImportError:
    from turngate.extra_install import install_command

    raise UsageError(
        f"live models need a library that is not installed: {install_command('agent')}; "
        "--model scripted:FILE needs none"
    ) from None

MAX_ANSWER_BYTES = 64 * 1024 * 1024
MAX_ERROR_BYTES = 64 * 1024
END_S = 0.5
_KEY = re.compile(r"[!-~]+")


class LiveModel:
    """`LiveModel("anthropic:claude-…")`. It keeps its connection for the next request, until `close`."""

    def __init__(
        self, name: str, environ: Mapping[str, str] = os.environ, timeouts: Timeouts | None = None
    ) -> None:
        """Keys and addresses come from `environ`. Raises UsageError."""
        self.name = name
        self._provider_name, _, self._model = name.partition(":")
        provider = PROVIDERS.get(ALIASES.get(self._provider_name, self._provider_name))
        if provider is None:
            unknown = f"unknown provider {self._provider_name!r} in the model {name!r}"
            raise UsageError(f"{unknown}; the providers are {providers.describe_providers()}")
        self._provider = provider
        self._key_variable, self._key = providers.find_key(name, provider, environ)
        self._url = (environ.get(provider.url_variable) or provider.url).strip().rstrip("/")
        self._wire = _wire_format(provider)
        self._environ, self._timeouts = dict(environ), timeouts
        self._client = self._new_client()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._known = known_model(provider.known_as, self._model)
        self.context = self._known.context

    def prepare(self) -> None:
        """Begin to open a connection, in the running event loop, for the first request."""
        self._connect().prepare()

    async def ask(self, request: ModelRequest, tell: Callable[[str], None]) -> Reply:
        if self._key and not _KEY.fullmatch(self._key):
            raise ModelError("auth", f"the key for {self._provider_name} contains a space or a line break")
        body = json.dumps(self._wire.body(self._model, request)).encode()
        parts = urlsplit(self._url)
        path = request_target(parts._replace(path=parts.path.rstrip("/") + self._wire.path).geturl())
        reader = self._wire.reader()
        try:
            async with self._connect().post(path, self._headers(), body) as response:
                await self._read(response, reader, tell)
            reply = reader.reply
        except HttpTimeout as error:
            raise ModelError("network", f"{self._provider_name} did not answer in time: {error}") from None
        except HttpError as error:
            kind = "invalid" if isinstance(error, HttpSetupError) else "network"
            raise ModelError(kind, f"the connection to {self._provider_name} failed: {error}") from None
        except StreamError as error:
            raise stream_error(self._provider_name, error.error, self._key) from None
        except Unreadable as error:
            text = f"{self._provider_name} sent an answer that cannot be read: {error}"
            if isinstance(error, OtherApi):
                raise ModelError("invalid", f"{text}; {self._hint()}") from None
            raise ModelError("network", text) from None
        if reply is None:
            raise ModelError("network", f"{self._provider_name} ended the stream in the middle of its answer")
        return replace(reply, cost=self._known.cost(reply.usage))

    async def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._loop is asyncio.get_running_loop():
            self._client.close()
            await asyncio.sleep(0)  # let the event loop close the sockets

    def _connect(self) -> HttpClient:
        """Return the client of this event loop; a connection works only in the loop that opened it."""
        loop = asyncio.get_running_loop()
        if self._loop not in (None, loop):
            self._client = self._new_client()
        self._loop = loop
        return self._client

    def _new_client(self) -> HttpClient:
        try:
            return HttpClient(self._url, self._environ, self._timeouts)
        except ValueError as error:
            raise UsageError(
                f"the model {self.name!r} cannot be used: {self._provider.url_variable} is not a valid address: {error}"
            ) from None

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "text/event-stream",
            "Accept-Encoding": "identity",
            "User-Agent": "turngate",
            **self._wire.headers,
        }
        if self._key_variable == "ANTHROPIC_API_KEY":
            headers["x-api-key"] = self._key
        elif self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return headers

    async def _read(self, response: Response, reader: AnswerReader, tell: Callable[[str], None]) -> None:
        if response.status != 200:
            raise await self._failure(response)
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "text/event-stream":
            raise OtherApi(f"its type is {kind or 'not named'}, expected text/event-stream")
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise Unreadable("it is compressed, which was not requested")
        decoder, size = EventDecoder(), 0
        pieces = aiter(response)
        async for piece in pieces:
            size += len(piece)
            if size > MAX_ANSWER_BYTES:
                raise Unreadable(f"it is larger than {MAX_ANSWER_BYTES // 2**20} MiB")
            for event in decoder.feed(piece):
                if text := reader.take(event):
                    tell(text)
                if reader.is_finished:
                    with suppress(
                        TimeoutError, HttpError
                    ):  # the connection is only used again if the rest comes soon
                        async with asyncio.timeout(END_S):
                            async for _ in pieces:
                                pass
                    return

    async def _failure(self, response: Response) -> ModelError:
        body = await response.read(MAX_ERROR_BYTES)
        error = status_error(self._provider_name, response.status, response.headers, body, self._key)
        if response.status == 401:
            variable = self._key_variable or self._provider.key_variables[0]
            return ModelError(error.kind, f"{error}; check {variable}")
        if response.status < 400 or (response.status in (404, 405) and b"model" not in body):
            return ModelError(error.kind, f"{error}; {self._hint()}")
        return error

    def _hint(self) -> str:
        """Return what to do about a server that does not seem to have this API."""
        advice = f"check {self._provider.url_variable}, whose default is {self._provider.url}"
        if self._provider.wire == "responses":
            advice = f"use --model openai-chat:{self._model} for a server with chat completions alone"
        return f"{self._wire.title} was asked at {self._client.server.name}; {advice}"


def _wire_format(provider: Provider) -> WireFormat:
    """Return the wire format; only the one that is used is loaded."""
    if provider.wire == "anthropic":
        from turngate.models.wire.anthropic import MESSAGES  # noqa: PLC0415 - lazy: see above

        return MESSAGES
    from turngate.models.wire.openai import CHAT_COMPLETIONS, RESPONSES  # noqa: PLC0415 - lazy: see above

    return CHAT_COMPLETIONS if provider.wire == "chat" else RESPONSES


# What a provider answers instead of a reply → ModelError


def status_error(
    provider: str, status: int, headers: Mapping[str, str], body: bytes, *secrets: str
) -> ModelError:
    try:
        error = providers.error_object(json.loads(body))
    except (ValueError, RecursionError):
        error = {}
    text = safe_line(
        providers.error_message(error) or body.decode("utf-8", "replace").strip() or "no message", *secrets
    )
    if status < 400:
        redirects = "it redirects to another address, and no request follows"
        text = redirects if status >= 300 else "it has no content"
    return providers.model_error(provider, status, error, text, providers.retry_after(headers))


def stream_error(provider: str, error: Mapping[str, Any], *secrets: str) -> ModelError:
    names = [error.get(name) for name in ("type", "code")]
    named = (providers.STATUSES.get(name) for name in names if isinstance(name, str))
    numbers = (code for code in names if isinstance(code, int) and 400 <= code < 600)
    status = next(filter(None, (*named, *numbers)), 500)
    text = safe_line(providers.error_message(error) or "no message", *secrets)
    return providers.model_error(provider, status, error, text, None)
