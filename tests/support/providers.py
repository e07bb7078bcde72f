"""Shared by the tests of every live API: a provider, its server, and the result of a request."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.support.servers.model import Json, ModelServer
from turngate.core.conversation.messages import ModelRequest, Reply, UserMessage
from turngate.errors import ModelError
from turngate.models.resolve import open_model

KEY = "test-key"
REQUEST = ModelRequest(messages=(UserMessage("hello"),))

Point = Callable[[str], None]  # the client at an address


@dataclass(frozen=True)
class Provider:
    """A model name and a server that replies in the format of its API."""

    model: str
    variables: str  # prefix of the variables that its client reads
    giving: Callable[[Any], AbstractContextManager[ModelServer]]

    def block_real_provider(self, monkeypatch: pytest.MonkeyPatch) -> "Provider":
        """Point the client at a closed port."""
        monkeypatch.setenv(f"{self.variables}_API_KEY", KEY)
        monkeypatch.setenv(f"{self.variables}_BASE_URL", "http://127.0.0.1:9")
        return self

    async def ask_once(
        self, request: ModelRequest = REQUEST, tell: Callable[[str], None] = lambda _: None
    ) -> Reply:
        model = open_model(self.model)
        try:
            return await model.ask(request, tell)
        finally:
            await model.close()

    async def fail_once(self) -> tuple[str, str]:
        with pytest.raises(ModelError) as caught:
            await self.ask_once()
        # Only our own client knows the variable of the key; `test_trouble.py` has the whole sentence.
        return caught.value.kind, str(caught.value).removesuffix(f"; check {self.variables}_API_KEY")

    def through_pydantic_ai(self) -> "Provider":
        return replace(self, model=f"pydantic-ai:{self.model}")


@dataclass(frozen=True)
class Exchange:
    reply: Reply
    pieces: list[str]
    body: Json
    headers: dict[str, str]


def without_details(failure: tuple[str, str]) -> tuple[str, str]:
    """Return a failure without the text of the operating system after the colon."""
    kind, message = failure
    return kind, message.partition(": ")[0]
