"""What the tests of every live API share: a provider, the way to its server, and what came of a request."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import pytest

from tests.support.servers.model import Json, ModelServer
from turngate.core.messages import ModelRequest, Reply, UserMessage
from turngate.errors import ModelError
from turngate.models.live import LiveModel

KEY = "test-key-of-nobody"
REQUEST = ModelRequest(messages=(UserMessage("hello"),))
ELSEWHERE = (
    "HTTP_PROXY",
    "http_proxy",
    "ALL_PROXY",
    "all_proxy",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_ORG_ID",
    "OPENAI_PROJECT_ID",
)

Point = Callable[[str], None]  # the client at an address


@dataclass(frozen=True)
class Provider:
    """The model that is asked, and a server that gives one reply as its API does."""

    model: str
    variables: str  # how the names of the variables begin that its client reads
    giving: Callable[[Any], AbstractContextManager[ModelServer]]

    def only_on_loopback(self, monkeypatch: pytest.MonkeyPatch) -> "Provider":
        """Until a test points the client at a server, nobody is there."""
        for name in ELSEWHERE:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv(f"{self.variables}_API_KEY", KEY)
        monkeypatch.setenv(f"{self.variables}_BASE_URL", "http://127.0.0.1:9")
        return self

    async def ask_once(
        self, request: ModelRequest = REQUEST, tell: Callable[[str], None] = lambda _: None
    ) -> Reply:
        model = LiveModel(self.model)
        try:
            return await model.ask(request, tell)
        finally:
            await model.close()

    async def fail_once(self) -> tuple[str, str]:
        with pytest.raises(ModelError) as caught:
            await self.ask_once()
        return caught.value.kind, str(caught.value)


@dataclass(frozen=True)
class Exchange:
    reply: Reply
    pieces: list[str]
    body: Json
    headers: dict[str, str]


def begins(found: tuple[str, str]) -> tuple[str, str]:
    """A failure without what the machine adds to it after the colon."""
    kind, told = found
    return kind, told.partition(": ")[0]
