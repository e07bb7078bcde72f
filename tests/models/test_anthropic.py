"""Models behind Anthropic's Messages API, against a server on loopback, directly and through pydantic-ai."""

import asyncio
import json
import urllib.request
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.providers import KEY, REQUEST, Exchange, Point, Provider, without_details
from tests.support.servers.anthropic import AnthropicServer, Script, serve_script
from tests.support.servers.model import Json
from tests.support.timeouts import HANG_TIMEOUT_S, NEVER_S
from turngate.core.conversation.messages import (
    ModelRequest,
    Reply,
    Text,
    ToolResult,
    ToolResults,
    ToolSpec,
    ToolUse,
    Usage,
    UserMessage,
)
from turngate.models.resolve import open_model

NAME = "anthropic:claude-sonnet-5-5"
USED = Usage(input_tokens=10, output_tokens=5)

ANTHROPIC = Provider(NAME, "ANTHROPIC", lambda reply: serve_script({"main": [reply]}))


@pytest.fixture(
    autouse=True, params=[ANTHROPIC, ANTHROPIC.through_pydantic_ai()], ids=["direct", "pydantic-ai"]
)
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Provider:
    chosen: Provider = request.param
    return chosen.block_real_provider(monkeypatch)


def reply(*blocks: Text | ToolUse, id: str = "msg_1", **fields: Any) -> Reply:  # noqa: A002
    return Reply(blocks, **{"usage": USED, "model": "claude-sonnet-5-5", "id": id, **fields})


def test_a_plain_text_is_streamed_in_pieces_and_returned_whole(exchange: Callable[..., Exchange]) -> None:
    found = exchange("an answer in several pieces")
    assert found.reply == reply(Text("an answer in several pieces"))
    assert found.pieces == ["an answer ", "in several", " pieces"]


def test_pieces_arrive_while_the_model_still_answers(point: Point, provider: Provider) -> None:
    async def scene() -> list[tuple[str, bool]]:
        told: list[tuple[str, bool]] = []
        task = asyncio.create_task(provider.ask_once(tell=lambda piece: told.append((piece, task.done()))))
        while not told:
            await asyncio.sleep(0.005)
        assert not task.done()
        await task
        return told

    with serve_script({"main": [{"text": "first one second one", "chunk_delay": 0.1}]}) as server:
        point(server.url)
        assert asyncio.run(scene()) == [("first one ", False), ("second one", False)]


def test_text_blocks_stay_apart_and_in_order(exchange: Callable[..., Exchange]) -> None:
    found = exchange({"texts": ["part one", "part two"]})
    assert (found.reply, found.pieces) == (
        reply(Text("part one"), Text("part two")),
        ["part one", "part two"],
    )


def test_tool_calls_come_with_their_input_parsed(exchange: Callable[..., Exchange]) -> None:
    found = exchange({"text": "looking", "tool": "Bash", "input": {"command": "pytest -q", "timeout": 5}})
    assert found.reply == reply(
        Text("looking"),
        ToolUse("toolu_1", "Bash", {"command": "pytest -q", "timeout": 5}),
        id="msg_2",
        stop_reason="tool_use",
    )


def test_several_tool_calls_stay_in_order(exchange: Callable[..., Exchange]) -> None:
    found = exchange({"tools": [{"name": "Read"}, {"name": "Bash", "input": {"command": "ls"}}]})
    uses = ToolUse("toolu_1", "Read", {}), ToolUse("toolu_2", "Bash", {"command": "ls"})
    assert (found.reply, found.pieces) == (reply(*uses, id="msg_3", stop_reason="tool_use"), [])


def test_an_empty_answer_is_a_reply_without_blocks(exchange: Callable[..., Exchange]) -> None:
    assert exchange({"stop_reason": "end_turn"}).reply == reply()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("end_turn", "end_turn"),
        ("max_tokens", "max_tokens"),
        ("refusal", "refusal"),
        ("stop_sequence", "end_turn"),
        ("model_context_window_exceeded", "max_tokens"),
    ],
)
def test_why_the_model_ended_is_known(exchange: Callable[..., Exchange], said: str, meant: str) -> None:
    assert exchange({"text": "so", "stop_reason": said}).reply == reply(Text("so"), stop_reason=meant)


def test_usage_counts_the_cache_apart(exchange: Callable[..., Exchange]) -> None:
    counted = {"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100}
    assert exchange({"text": "so", "usage": {**counted, "output_tokens": 7}}).reply == reply(
        Text("so"),
        usage=Usage(
            input_tokens=3, output_tokens=7, cache_creation_input_tokens=20, cache_read_input_tokens=100
        ),
    )


def test_the_whole_conversation_reaches_the_model(exchange: Callable[..., Exchange]) -> None:
    found = exchange(
        "done",
        UserMessage("fix it"),
        UserMessage("today", "context"),
        Reply((Text("looking"), ToolUse("a", "Bash", {"command": "make"}), ToolUse("b", "Read", {}))),
        ToolResults((ToolResult("a", "two tests fail"), ToolResult("b", "no such file", is_error=True))),
        UserMessage("hurry"),
        Reply((Text("done"),)),
        UserMessage("Stop hook feedback:\ntests fail", "stop_hook"),
    )
    assert found.body["messages"] == [
        user(text("fix it")),
        user(text("today")),
        {
            "role": "assistant",
            "content": [
                text("looking"),
                {"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "make"}},
                {"type": "tool_use", "id": "b", "name": "Read", "input": {}},
            ],
        },
        user(result("a", "two tests fail"), result("b", "no such file", is_error=True)),
        user(text("hurry")),
        {"role": "assistant", "content": [text("done")]},
        user(text("Stop hook feedback:\ntests fail")),
    ]


def test_nothing_blank_is_sent_because_providers_reject_it(exchange: Callable[..., Exchange]) -> None:
    found = exchange(
        "done",
        UserMessage("go"),
        Reply((Text("\n"), ToolUse("a", "Bash", {"command": "true"}))),
        ToolResults((ToolResult("a", ""),)),
        Reply((Text(" "),)),
        UserMessage("and?"),
    )
    assert found.body["messages"] == [
        user(text("go")),
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "a", "name": "Bash", "input": {"command": "true"}}],
        },
        user(result("a", "(no output)")),
        user(text("and?")),
    ]


def user(*content: Json) -> Json:
    return {"role": "user", "content": list(content)}


def text(said: str) -> Json:
    return {"type": "text", "text": said}


def result(call: str, content: str, *, is_error: bool = False) -> Json:
    return {"type": "tool_result", "tool_use_id": call, "content": [text(content)], "is_error": is_error}


KEPT = {"type": "ephemeral", "ttl": "5m"}


def test_the_system_prompt_and_the_tools_are_sent_and_kept_in_the_cache(
    exchange: Callable[..., Exchange],
) -> None:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
    body = exchange("done", system="be brief", tools=(ToolSpec("Bash", "runs a command", schema),)).body
    assert (body["system"], body["tools"], body["cache_control"]) == (
        [{**text("be brief"), "cache_control": KEPT}],
        [
            {
                "name": "Bash",
                "description": "runs a command",
                "input_schema": schema,
                "cache_control": KEPT,
            }
        ],
        KEPT,
    )


def test_a_judge_is_asked_once_and_keeps_nothing_in_the_cache(exchange: Callable[..., Exchange]) -> None:
    body = exchange("fine", system="judge", agent="judge").body
    assert (body["system"], "tools" in body, "cache_control" in body) == ([text("judge")], False, False)


@pytest.mark.parametrize(
    ("status", "type_", "said", "kind", "told"),
    [
        (529, "overloaded_error", "Overloaded", "overloaded", "anthropic answered 529: Overloaded"),
        (429, "rate_limit_error", "slow down", "overloaded", "anthropic answered 429: slow down"),
        (500, "api_error", "oops", "overloaded", "anthropic answered 500: oops"),
        (503, "api_error", "soon", "overloaded", "anthropic answered 503: soon"),
        (401, "authentication_error", "invalid key", "auth", "anthropic answered 401: invalid key"),
        (403, "permission_error", "not you", "auth", "anthropic answered 403: not you"),
        (402, "billing_error", "pay first", "quota", "anthropic reports: pay first"),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low.",
            "quota",
            "anthropic reports: Your credit balance is too low",
        ),
        (408, "timeout_error", "too slow", "network", "anthropic answered 408: too slow"),
        (
            400,
            "invalid_request_error",
            "prompt is too long",
            "context",
            "the conversation is too long for the model: prompt is too long",
        ),
        (400, "invalid_request_error", "no such field", "invalid", "anthropic answered 400: no such field"),
        (404, "not_found_error", "no such model", "invalid", "anthropic answered 404: no such model"),
    ],
)
def test_each_answer_that_is_an_error_has_its_kind(
    failure: Callable[..., tuple[str, str]], status: int, type_: str, said: str, kind: str, told: str
) -> None:
    assert failure({"error": status, "type": type_, "message": said}) == (kind, told)


def test_an_error_in_the_middle_of_an_answer_has_its_kind_too(
    failure: Callable[..., tuple[str, str]],
) -> None:
    assert failure(
        {"text": "half an", "error": 529, "type": "overloaded_error", "message": "Overloaded"}
    ) == ("overloaded", "anthropic answered 529: Overloaded")


def test_a_connection_that_breaks_in_the_middle_is_no_answer(failure: Callable[..., tuple[str, str]]) -> None:
    found = failure({"text": "half an answer", "cut": True})
    assert without_details(found) == ("network", "the connection to anthropic failed")


def test_an_answer_without_an_end_is_no_answer(failure: Callable[..., tuple[str, str]]) -> None:
    assert failure({"text": "half an answer", "stop_reason": None}) == (
        "network",
        "anthropic ended the stream in the middle of its answer",
    )


def test_a_refused_connection_is_a_network_error(provider: Provider) -> None:
    assert without_details(asyncio.run(provider.fail_once())) == (
        "network",
        "the connection to anthropic failed",
    )


@pytest.mark.parametrize("said", [f"{KEY} is wrong", "sk-ant-abcdefgh is wrong", "AIzaSyAbcdefg is wrong"])
def test_no_error_message_contains_a_key(failure: Callable[..., tuple[str, str]], said: str) -> None:
    found = failure({"error": 401, "type": "authentication_error", "message": said})
    assert found == ("auth", "anthropic answered 401: … is wrong")


def test_a_key_that_no_header_can_hold_is_not_in_the_message_either(
    point: Point, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}\n")
    with serve_script() as server:
        point(server.url)
        assert asyncio.run(provider.fail_once()) == (
            "auth",
            "the key for anthropic contains a space or a line break",
        )


def test_a_long_error_becomes_one_short_line(failure: Callable[..., tuple[str, str]]) -> None:
    _, told = failure({"error": 400, "message": "a line\n" * 1000})
    assert told == f"anthropic answered 400: {('a line ' * 1000)[:199]}…"


@pytest.mark.parametrize(
    "slow", [{"text": "x" * 10_000, "chunk_delay": 0.01}, {"text": "x" * 10_000, "delay": NEVER_S}]
)
def test_a_cancelled_request_hangs_up(point: Point, provider: Provider, slow: Json) -> None:
    async def scene(server: AnthropicServer) -> bool:
        model = open_model(provider.model)
        task = asyncio.create_task(model.ask(REQUEST, lambda _: None))
        while not server.requests:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        server.over.set()  # a delayed reply is sent now
        try:
            return await asyncio.to_thread(server.broken.wait, HANG_TIMEOUT_S)
        finally:
            await model.close()

    with serve_script({"main": [slow]}) as server:
        point(server.url)
        assert asyncio.run(scene(server))


def test_an_exception_of_the_listener_is_not_a_model_error(point: Point, provider: Provider) -> None:
    def refuse(_piece: str) -> None:
        raise RuntimeError("the screen is gone")

    with serve_script({"main": [{"text": "x" * 10_000, "chunk_delay": 0.01}]}) as server:
        point(server.url)
        with pytest.raises(RuntimeError, match="the screen is gone"):
            asyncio.run(provider.ask_once(tell=refuse))
        assert server.broken.wait(HANG_TIMEOUT_S)


def test_a_model_keeps_its_connection_and_survives_its_loop_and_its_close(
    point: Point, provider: Provider
) -> None:
    async def scene(times: int) -> list[str]:
        texts = [(await model.ask(REQUEST, lambda _: None)).text for _ in range(times)]
        await model.close()
        return texts

    with serve_script() as server:
        point(server.url)
        model = open_model(provider.model)
        texts = [asyncio.run(scene(3)), asyncio.run(scene(2))]
        assert texts == [["answer 1", "answer 2", "answer 3"], ["answer 4", "answer 5"]]
        assert server.connections == 2


def test_requests_of_one_model_may_overlap(point: Point, provider: Provider) -> None:
    async def scene() -> list[str]:
        model = open_model(provider.model)
        asked = [model.ask(ModelRequest(messages=(UserMessage(str(n)),)), lambda _: None) for n in range(20)]
        try:
            return sorted([found.text for found in await asyncio.gather(*asked)])
        finally:
            await model.close()

    with serve_script({"main": [{"text": "answer {n}", "delay": 0.05}]}) as server:
        point(server.url)
        assert asyncio.run(scene()) == sorted(f"answer {n}" for n in range(1, 21))


def test_the_server_tells_agents_apart(point: Point, provider: Provider) -> None:
    script: Script = {"main": ["main {n}", {"text": "again {n}", "repeat": 2}], "sub": ["sub {n}"]}
    with serve_script(
        script, who=lambda body: "sub" if "SUB" in json.dumps(body["messages"]) else "main"
    ) as server:
        point(server.url)
        said = ["a", "SUB", "b", "SUB", "c", "d"]
        texts = [
            asyncio.run(provider.ask_once(ModelRequest(messages=(UserMessage(text),)))).text for text in said
        ]
        assert texts == ["main 1", "sub 1", "again 2", "sub 2", "again 3", "again 4"]
        assert server.agents == ["main", "sub", "main", "sub", "main", "main"]


def test_the_server_answers_without_a_stream_too() -> None:
    with serve_script(
        {"main": [{"text": "looking {n}", "tool": "Bash", "input": {"command": "ls"}}]}
    ) as server:
        body = json.dumps({"model": "m", "messages": []}).encode()
        with urllib.request.urlopen(f"{server.url}/v1/messages", body) as answer:
            assert json.load(answer) == {
                "id": "msg_2",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [
                    text("looking 1"),
                    {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
                ],
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {"input_tokens": 10, "output_tokens": 5},
            }
