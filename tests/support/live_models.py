"""Runs the command with a model behind a real connection, for tests of kills and interrupts."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.anthropic import AnthropicServer, serve_script
from tests.support.servers.model import Json
from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S
from tests.support.warm_cli import Program

MODEL = "anthropic:claude-sonnet-5-5"
NEVER_REPLY: Json = {"text": "never", "delay": 100 * HANG_TIMEOUT_S}


def block_real_providers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the client at a closed port."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test-key")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")


@contextmanager
def serve_model(monkeypatch: pytest.MonkeyPatch, *replies: Any) -> Iterator[AnthropicServer]:
    """Serve a model with these replies; processes that start now use it."""
    with serve_script({"main": replies}) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        yield server
        server.over.set()  # a delayed reply is sent now and finds that its client is gone
        wait_until(lambda: not server._open, "a client is still connected")


def wait_until(condition: Callable[[], object], complaint: str) -> None:
    end = time.monotonic() + HANG_TIMEOUT_S
    while not condition():
        assert time.monotonic() < end, complaint
        time.sleep(POLL_INTERVAL_S)


def run_arguments(project: Path, prompt: str, *more: str) -> list[str]:
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
def start_run(project: Path, prompt: str, *more: str, own_group: bool = False) -> Iterator[Program]:
    program = Program(run_arguments(project, prompt, *more), start_new_session=own_group)
    try:
        yield program
    finally:
        program.kill()
        program.communicate()


def conversation(body: Json) -> list[tuple[str, str]]:
    """Return the role and the text of each block in a request."""
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
