"""Models behind OpenAI's Responses API, against a server on loopback, directly and through pydantic-ai."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule
from tests.support.providers import KEY, Exchange, Point, Provider, without_details
from tests.support.servers.model import Json
from tests.support.servers.openai import OpenAIServer, serve_replies
from tests.support.sessions import block_first
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.agent.session import Session
from turngate.core.conversation.messages import (
    Reply,
    Text,
    ToolResult,
    ToolResults,
    ToolSpec,
    ToolUse,
    Usage,
    UserMessage,
)
from turngate.core.events.stream_events import TurnResult
from turngate.core.settings import Settings
from turngate.models.resolve import open_model

NAME = "openai:gpt-6.1-sol"
USED = Usage(input_tokens=10, output_tokens=5)
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}

OPENAI = Provider(NAME, "OPENAI", serve_replies)


@pytest.fixture(autouse=True, params=[OPENAI, OPENAI.through_pydantic_ai()], ids=["direct", "pydantic-ai"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Provider:
    chosen: Provider = request.param
    return chosen.block_real_provider(monkeypatch)


def reply(*blocks: Text | ToolUse, **fields: Any) -> Reply:
    return Reply(blocks, **{"usage": USED, "model": "gpt-6.1-sol", "id": "resp_1", **fields})


# An answer


def test_a_text_is_streamed_in_pieces_and_returned_whole(exchange: Callable[..., Exchange]) -> None:
    found = exchange("an answer in several pieces")
    assert found.reply == reply(Text("an answer in several pieces"))
    assert found.pieces == ["an answer ", "in several", " pieces"]
    assert found.headers["authorization"] == f"Bearer {KEY}"


def test_tool_calls_come_with_their_input_parsed_and_in_order(exchange: Callable[..., Exchange]) -> None:
    tools = [{"name": "Bash", "input": {"command": "ls -l /some/where"}}, {"name": "Todo"}]
    found = exchange({"text": "looking", "tools": tools})
    assert found.reply == reply(
        Text("looking"),
        ToolUse("call_3", "Bash", {"command": "ls -l /some/where"}),
        ToolUse("call_4", "Todo", {}),
        stop_reason="tool_use",
    )


def test_what_was_read_from_the_cache_is_counted_apart(exchange: Callable[..., Exchange]) -> None:
    used = {"input_tokens": 100, "output_tokens": 7, "total_tokens": 107}
    details = {"cached_tokens": 60, "cache_write_tokens": 0}
    found = exchange({"text": "hi", "usage": {**used, "input_tokens_details": details}})
    assert found.reply.usage == Usage(
        input_tokens=40, output_tokens=7, cache_creation_input_tokens=0, cache_read_input_tokens=60
    )


@pytest.mark.parametrize(
    ("why", "meant"), [("max_output_tokens", "max_tokens"), ("content_filter", "refusal")]
)
def test_an_answer_that_ended_early_says_why(exchange: Callable[..., Exchange], why: str, meant: str) -> None:
    assert exchange({"text": "half an", "incomplete": why}).reply == reply(Text("half an"), stop_reason=meant)


# What is sent


def test_the_tools_and_the_system_prompt_are_sent(exchange: Callable[..., Exchange]) -> None:
    found = exchange("hi", system="be brief", tools=(ToolSpec("Bash", "runs a command", SHELL),))
    [tool] = found.body["tools"]
    assert [_item(item) for item in found.body["input"]] == [("system", "be brief"), ("user", "hello")]
    assert (tool["type"], tool["name"], tool["description"]) == ("function", "Bash", "runs a command")
    assert tool["parameters"]["properties"] == SHELL["properties"]


def test_a_tool_call_and_its_result_are_sent_with_the_next_request(exchange: Callable[..., Exchange]) -> None:
    found = exchange(
        "It is here.",
        UserMessage("where is it?"),
        Reply((Text("looking"), ToolUse("call_7", "Bash", {"command": "ls"}))),
        ToolResults((ToolResult("call_7", "here"),)),
    )
    assert conversation(found.body) == [
        ("user", "where is it?"),
        ("assistant", "looking"),
        ("call call_7", {"command": "ls"}),
        ("result call_7", "here"),
    ]


def conversation(body: Json) -> list[tuple[str, Any]]:
    """Return the roles and contents of a request without the system prompt."""
    return [_item(item) for item in body["input"] if item.get("role") != "system"]


def _item(item: Json) -> tuple[str, Any]:
    match item:
        case {"type": "function_call", "call_id": call, "arguments": arguments}:
            return f"call {call}", json.loads(arguments)
        case {"type": "function_call_output", "call_id": call, "output": output}:
            return f"result {call}", output
        case {"role": role, "content": str(text)} | {"role": role, "content": [{"text": text}]}:
            return role, text
        case _:
            raise AssertionError(item)


# What goes wrong


@pytest.mark.parametrize(
    ("status", "fields", "kind", "told"),
    [
        (
            429,
            {"type": "requests", "code": "rate_limit_exceeded", "message": "slow down"},
            "overloaded",
            "openai answered 429: slow down",
        ),
        (500, {"message": "oops"}, "overloaded", "openai answered 500: oops"),
        (503, {"message": "soon"}, "overloaded", "openai answered 503: soon"),
        (
            401,
            {"type": "invalid_request_error", "code": "invalid_api_key", "message": "wrong key"},
            "auth",
            "openai answered 401: wrong key",
        ),
        (403, {"message": "not you"}, "auth", "openai answered 403: not you"),
        (
            429,
            {"type": "insufficient_quota", "code": "insufficient_quota", "message": "pay first"},
            "quota",
            "openai reports: pay first",
        ),
        (
            400,
            {"type": "invalid_request_error", "message": "no such field"},
            "invalid",
            "openai answered 400: no such field",
        ),
        (
            400,
            {"type": "invalid_request_error", "code": "context_length_exceeded", "message": "too much"},
            "context",
            "the conversation is too long for the model: too much",
        ),
        (
            404,
            {"type": "invalid_request_error", "code": "model_not_found", "message": "no such model"},
            "invalid",
            "openai answered 404: no such model",
        ),
    ],
)
def test_each_answer_that_is_an_error_has_its_kind(
    failure: Callable[..., tuple[str, str]], status: int, fields: Json, kind: str, told: str
) -> None:
    assert failure({"error": status, **fields}) == (kind, told)


def test_a_failure_in_the_middle_of_an_answer_is_no_answer(failure: Callable[..., tuple[str, str]]) -> None:
    said = {"code": "server_error", "message": "oops"}
    kind, told = failure({"text": "half an", "failed": said})
    assert (kind, "oops" in told) == ("overloaded", True)


def test_a_connection_that_breaks_in_the_middle_is_a_network_error(
    failure: Callable[..., tuple[str, str]],
) -> None:
    found = failure({"text": "half an answer", "cut": True})
    assert without_details(found) == ("network", "the connection to openai failed")


def test_an_answer_without_an_end_is_a_network_error(failure: Callable[..., tuple[str, str]]) -> None:
    assert failure({"text": "half an answer", "endless": True}) == (
        "network",
        "openai ended the stream in the middle of its answer",
    )


def test_a_refused_connection_is_a_network_error(provider: Provider) -> None:
    assert without_details(asyncio.run(provider.fail_once())) == (
        "network",
        "the connection to openai failed",
    )


@pytest.mark.parametrize("said", [f"{KEY} is wrong", "sk-proj-abcdefgh is wrong"])
def test_no_error_message_contains_a_key(failure: Callable[..., tuple[str, str]], said: str) -> None:
    assert failure({"error": 401, "message": said}) == ("auth", "openai answered 401: … is wrong")


def test_a_cancelled_request_hangs_up(point: Point, provider: Provider) -> None:
    async def scene(server: OpenAIServer) -> None:
        asking = asyncio.create_task(provider.ask_once())
        while not server.requests:
            await asyncio.sleep(0.01)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    with serve_replies({"text": "late", "delay": 600}) as server:
        point(server.url)
        asyncio.run(asyncio.wait_for(scene(server), HANG_TIMEOUT_S))
        assert len(server.requests) == 1


# In a session


def turn(project: Path, model: str, *rules: str) -> TurnResult:
    settings = Settings(rules=tuple(rule(command) for command in rules))

    async def play() -> TurnResult:
        async with Session(
            str(project), open_model(model), settings, allow=["Bash"], retries=(0.01, 0.01)
        ) as session:
            return await session.send("where is it?")

    return asyncio.run(play())


def test_a_whole_turn_calls_a_tool_is_blocked_continues_and_adds_up_its_usage(
    point: Point, project: Path, provider: Provider
) -> None:
    call = {"text": "looking", "tools": [{"name": "Bash", "input": {"command": "echo here"}}]}
    with serve_replies(call, "It is here.", "The tests pass.") as server:
        point(server.url)
        result = turn(project, provider.model, block_first(1))
    assert (result.outcome, result.result, result.continuations, result.model_requests, result.usage) == (
        "completed",
        "The tests pass.",
        1,
        3,
        Usage(input_tokens=30, output_tokens=15),
    )
    assert conversation(server.requests[-1]) == [
        ("user", "where is it?"),
        ("assistant", "looking"),
        ("call call_3", {"command": "echo here"}),
        ("result call_3", "here"),
        ("assistant", "It is here."),
        ("user", "[Stop hook requested continuation]\nrun the tests"),
    ]


@pytest.mark.parametrize(
    "trouble",
    [
        {"error": 429, "message": "slow down"},
        {"error": 503, "message": "soon"},
        {"text": "half", "cut": True},
    ],
    ids=["429", "503", "cut"],
)
def test_a_transient_error_is_retried_and_leaves_nothing_behind(
    point: Point, project: Path, provider: Provider, trouble: Json
) -> None:
    with serve_replies(trouble, "It is here.") as server:
        point(server.url)
        result = turn(project, provider.model)
    assert (result.outcome, result.result, result.model_requests, len(result.notices)) == (
        "completed",
        "It is here.",
        2,
        1,
    )
    assert [conversation(body) for body in server.requests] == [[("user", "where is it?")]] * 2


def test_a_wrong_key_is_not_retried_and_runs_no_stop_hook(
    point: Point, project: Path, provider: Provider
) -> None:
    with serve_replies({"error": 401, "message": "wrong key"}, "never") as server:
        point(server.url)
        result = turn(project, provider.model, "touch asked")
    why = str(result.stop_reason).removesuffix("; check OPENAI_API_KEY")  # which only our own client knows
    assert (result.outcome, why, len(server.requests), (project / "asked").exists()) == (
        "error",
        "the model failed (auth): openai answered 401: wrong key",
        1,
        False,
    )
