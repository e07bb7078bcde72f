"""The command with a model behind a real connection: what tests of kills and of interrupts share."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.anthropic import AnthropicServer, playing
from tests.support.servers.model import Json
from tests.support.warm_cli import Program

MODEL = "anthropic:claude-sonnet-5-5"
PATIENCE = 40.0  # seconds; only against a test that hangs
NEVER: Json = {"text": "never", "delay": 3600}


def only_on_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until a model is started, nobody is there."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key-of-nobody")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, *replies: Any) -> Iterator[AnthropicServer]:
    """A model that says this; whoever is started then asks it."""
    with playing({"main": replies}) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        yield server
        server.over.set()  # whoever still waits to speak finds that its client is gone
        until(lambda: not server._open, "somebody is still connected")


def until(true: Callable[[], object], complaint: str) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, complaint
        time.sleep(0.01)


def words(project: Path, prompt: str, *more: str) -> list[str]:
    return [
        "run",
        "-p",
        prompt,
        "--session",
        "x",
        "--model",
        MODEL,
        "--project",
        str(project),
        "--allow",
        "Bash",
        *more,
    ]


@contextmanager
def running(project: Path, prompt: str, *more: str, own_group: bool = False) -> Iterator[Program]:
    program = Program(words(project, prompt, *more), start_new_session=own_group)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def conversation(body: Json) -> list[tuple[str, str]]:
    """What a request carries, block by block: who, and what."""
    return [_block(message["role"], block) for message in body["messages"] for block in blocks(message)]


def blocks(message: Json) -> Sequence[Json]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _block(role: str, block: Json) -> tuple[str, str]:
    match block:
        case {"type": "tool_use", "name": name}:
            return "call", name
        case {"type": "tool_result", "content": [{"text": text}]} | {
            "type": "tool_result",
            "content": str(text),
        }:
            return "result", text
        case _:
            return role, block["text"]
