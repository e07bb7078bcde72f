"""Models behind OpenAI's chat completions, against a server on loopback, directly and through pydantic-ai."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.providers import KEY, Exchange, Provider, without_details
from tests.support.servers.model import Json
from tests.support.servers.openai_chat import serve_chat
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

NAME = "openai-chat:small"
USED = Usage(input_tokens=10, output_tokens=5)
SHELL = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
ANSWER = {
    "type": "object",
    "properties": {"ok": {"type": "boolean"}},
    "required": ["ok"],
    "additionalProperties": False,
}
CHAT = Provider(NAME, "OPENAI", serve_chat)


@pytest.fixture(autouse=True, params=[CHAT, CHAT.through_pydantic_ai()], ids=["direct", "pydantic-ai"])
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Provider:
    chosen: Provider = request.param
    return chosen.block_real_provider(monkeypatch)


# Where pydantic-ai's client behaves otherwise; what it does is in the comment.
direct = pytest.mark.parametrize("provider", [CHAT], ids=["direct"], indirect=True)


def reply(*blocks: Text | ToolUse, **fields: Any) -> Reply:
    return Reply(blocks, **{"usage": USED, "model": "small", "id": "chat_1", **fields})


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
        ToolUse("call_2", "Bash", {"command": "ls -l /some/where"}),
        ToolUse("call_3", "Todo", {}),
        stop_reason="tool_use",
    )


@direct  # the library demands the index
def test_tool_calls_without_an_index_are_told_apart_by_their_ids(exchange: Callable[..., Exchange]) -> None:
    tools = [{"name": "Bash", "input": {"command": "ls -l /some/where"}}, {"name": "Todo", "input": {"a": 1}}]
    found = exchange({"tools": tools, "no_index": True})
    assert found.reply == reply(
        ToolUse("call_2", "Bash", {"command": "ls -l /some/where"}),
        ToolUse("call_3", "Todo", {"a": 1}),
        stop_reason="tool_use",
    )


def test_what_was_read_from_the_cache_is_counted_apart(exchange: Callable[..., Exchange]) -> None:
    used = {"prompt_tokens": 100, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 60}}
    assert exchange({"text": "hi", "usage": used}).reply.usage == Usage(
        input_tokens=40, output_tokens=7, cache_read_input_tokens=60
    )


@pytest.mark.parametrize(
    ("why", "meant"), [("stop", "end_turn"), ("length", "max_tokens"), ("content_filter", "refusal")]
)
def test_why_the_model_ended_is_known(exchange: Callable[..., Exchange], why: str, meant: str) -> None:
    assert exchange({"text": "so", "finish_reason": why}).reply == reply(Text("so"), stop_reason=meant)


@direct  # the library reports the call as an error
def test_a_call_that_was_truncated_is_left_out(exchange: Callable[..., Exchange]) -> None:
    tools = [{"name": "Bash", "input": {"command": "ls -l /some/where"}}]
    found = exchange({"text": "looking", "tools": tools, "finish_reason": "length", "truncated": True})
    assert found.reply == reply(Text("looking"), stop_reason="max_tokens")


def test_the_conversation_and_the_tools_are_sent(exchange: Callable[..., Exchange]) -> None:
    found = exchange(
        "It is here.",
        UserMessage("where is it?"),
        Reply((Text("looking"), ToolUse("call_7", "Bash", {"command": "ls"}))),
        ToolResults((ToolResult("call_7", ""),)),
        system="be brief",
        tools=(ToolSpec("Bash", "runs a command", SHELL),),
    )
    body = found.body
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert (body["messages"][0]["content"], body["messages"][1]["content"]) == ("be brief", "where is it?")
    [call] = body["messages"][2]["tool_calls"]
    assert (call["id"], call["function"]["name"]) == ("call_7", "Bash")
    assert body["messages"][3] == {"role": "tool", "tool_call_id": "call_7", "content": "(no output)"}
    assert body["tools"][0]["function"]["parameters"]["properties"] == SHELL["properties"]


def test_a_judge_is_given_the_schema_of_its_answer(exchange: Callable[..., Exchange]) -> None:
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    body = exchange('{"ok": true}', system="judge", agent="judge", schema=schema).body
    assert body["response_format"]["json_schema"]["schema"] == ANSWER


@pytest.mark.parametrize(
    ("said", "kind", "told"),
    [
        ({"error": 401, "message": "wrong key"}, "auth", "openai-chat answered 401: wrong key"),
        ({"error": 429, "message": "slow down"}, "overloaded", "openai-chat answered 429: slow down"),
    ],
)
def test_what_goes_wrong_has_its_kind(
    failure: Callable[..., tuple[str, str]], said: Json, kind: str, told: str
) -> None:
    assert failure(said) == (kind, told)


@direct  # the library takes the end of the stream for the end of the answer
def test_an_answer_without_a_finish_reason_is_no_answer(failure: Callable[..., tuple[str, str]]) -> None:
    told = "openai-chat ended the stream in the middle of its answer"
    assert failure({"text": "half", "finish_reason": None}) == ("network", told)


def test_an_error_in_the_middle_of_an_answer_is_no_answer(failure: Callable[..., tuple[str, str]]) -> None:
    kind, told = failure({"text": "half", "failed": {"message": "oops", "type": "server_error", "code": 500}})
    assert (kind, "oops" in told) == ("overloaded", True)


def test_a_connection_that_breaks_in_the_middle_is_a_network_error(
    failure: Callable[..., tuple[str, str]],
) -> None:
    found = failure({"text": "half an answer", "cut": True})
    assert without_details(found) == ("network", "the connection to openai-chat failed")
