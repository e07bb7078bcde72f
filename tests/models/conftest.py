"""Fixtures that send one request to the provider of a test file, which defines `provider`."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests.support.providers import REQUEST, Exchange, Point, Provider
from turngate.core.conversation.messages import Message, ModelRequest


@pytest.fixture
def point(provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Point:
    return lambda url: monkeypatch.setenv(f"{provider.variables}_BASE_URL", url)


@pytest.fixture
def exchange(provider: Provider, point: Point) -> Callable[..., Exchange]:
    def exchange(said: Any, *messages: Message, **fields: Any) -> Exchange:
        with provider.giving(said) as server:
            point(server.url)
            pieces: list[str] = []
            request = ModelRequest(messages=messages or REQUEST.messages, **fields)
            reply = asyncio.run(provider.ask_once(request, pieces.append))
            free = replace(reply, cost=None)  # prices change with the table of the library
            return Exchange(free, pieces, server.requests[0], server.headers[0])

    return exchange


@pytest.fixture
def failure(provider: Provider, point: Point) -> Callable[..., tuple[str, str]]:
    def failure(said: Any) -> tuple[str, str]:
        with provider.giving(said) as server:
            point(server.url)
            found = asyncio.run(provider.fail_once())
            assert len(server.requests) == 1  # the session tries again, not the SDK
            return found

    return failure
