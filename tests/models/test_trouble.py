"""What a user reads when a provider does not answer as it should: one table, directly and through pydantic-ai."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.certificates import make_certificate, server_context
from tests.support.providers import KEY, REQUEST
from tests.support.servers.http import serve_answers
from tests.support.servers.raw import Step, response, serve_raw, stream
from turngate.core.conversation.messages import Reply
from turngate.errors import ModelError
from turngate.http.connection import Timeouts
from turngate.models.live import LiveModel
from turngate.models.pydantic_ai_model import PydanticAiModel

# Short only for the server that is silent, so that a slow machine changes nothing.
TIMEOUTS = {
    "a slow first byte": Timeouts(first_byte=0.2),
    "a stall in the middle": Timeouts(silence=0.2),
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def event(kind: str, **fields: Any) -> str:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


BEGUN: dict[str, Any] = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "x",
    "content": [],
    "stop_reason": None,
    "stop_sequence": None,
    "usage": {"input_tokens": 1, "output_tokens": 1},
}
HALF = (
    event("message_start", message=BEGUN),
    event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    event("content_block_delta", index=0, delta={"type": "text_delta", "text": "half"}),
)
OVERLOADED = event("error", error={"type": "overloaded_error", "message": "Overloaded"})
NO_ANSWER = "the connection to anthropic failed: "
UNREADABLE = "anthropic sent an answer that cannot be read: "
LATE = "anthropic did not answer in time: nothing came for 0.2 s"
ASKED = "; the Messages API was asked at HOST; check ANTHROPIC_BASE_URL, whose default is https://api.anthropic.com"
CHUNKS = "peer closed connection without sending complete message body (incomplete chunked read)"
NOTHING = f"{UNREADABLE}Streamed response ended without content or tool calls"


def failed(status: int, kind: str, **headers: str) -> bytes:
    body = {"type": "error", "error": {"type": kind, "message": "said"}}
    return response(status, json.dumps(body).encode(), **headers)


# Name, what the server sends, the kind, what the user reads directly; and through pydantic-ai, if that differs.
ROWS: list[tuple[str, Sequence[Step], str, str, str | tuple[str, str]]] = [
    (
        "closed without an answer",
        (),
        "network",
        f"{NO_ANSWER}HOST closed the connection without an answer",
        f"{NO_ANSWER}Server disconnected without sending a response",
    ),
    (
        "reset without an answer",
        ("reset",),
        "network",
        f"{NO_ANSWER}HOST broke off the connection: Connection reset by peer",
        f"{NO_ANSWER}[Errno 104] Connection reset by peer",
    ),
    (
        "half a head",
        (b"HTTP/1.1 200 OK\r\nContent-",),
        "network",
        f"{NO_ANSWER}HOST closed the connection in the middle of its answer",
        f"{NO_ANSWER}Server disconnected without sending a response",
    ),
    (
        "another protocol",
        (b"SSH-2.0-OpenSSH\r\n\r\n", "wait"),
        "network",
        f"{NO_ANSWER}HOST does not speak HTTP",
        f"{NO_ANSWER}illegal status line: bytearray(b'SSH-2.0-OpenSSH')",
    ),
    (
        "cut in the middle",
        (stream(*HALF, end=False),),
        "network",
        f"{NO_ANSWER}HOST closed the connection in the middle of its answer",
        f"{NO_ANSWER}{CHUNKS}",
    ),
    (
        "no finish reason",
        (stream(*HALF),),
        "network",
        "anthropic ended the stream in the middle of its answer",
        "",
    ),
    (
        "half an event",
        (stream(*HALF[:2], HALF[2][:30]),),
        "network",
        "anthropic ended the stream in the middle of its answer",
        "",
    ),
    (
        "an event that is not JSON",
        (stream("data: {no\n\n"),),
        "network",
        f"{UNREADABLE}an event is not JSON",
        NOTHING,
    ),
    (
        "not UTF-8",
        (response(200, b"data: \xff\n\n", "text/event-stream"),),
        "network",
        f"{NO_ANSWER}the stream of events is not UTF-8",
        (
            "invalid",
            (
                "the request to anthropic failed: Failed to decode response as JSON: "
                "'utf-8' codec can't decode byte 0xff in position 6: invalid start byte"
            ),
        ),
    ),
    (
        "a page instead of a stream",
        (response(200, b"<html>log in</html>", "text/html"),),
        "invalid",
        f"{UNREADABLE}its type is text/html, expected text/event-stream{ASKED}",
        ("network", NOTHING),
    ),
    (
        "a compressed stream",
        (response(200, b"\x1f\x8b", "text/event-stream", Content_Encoding="gzip"),),
        "network",
        f"{UNREADABLE}it is compressed, which was not requested",
        NOTHING,
    ),
    (
        "no content",
        (response(204, b""),),
        "invalid",
        f"anthropic answered 204: it has no content{ASKED}",
        ("network", NOTHING),
    ),
    (
        "a redirect",
        (response(301, b"", Location="https://elsewhere.example/"),),
        "invalid",
        f"anthropic answered 301: it redirects to another address, and no request follows{ASKED}",
        "the request to anthropic failed: Error code: 301",
    ),
    (
        "an error in the stream",
        (stream(*HALF, OVERLOADED),),
        "overloaded",
        "anthropic answered 529: Overloaded",
        "",
    ),
    (
        "401",
        (failed(401, "authentication_error"),),
        "auth",
        "anthropic answered 401: said; check ANTHROPIC_API_KEY",
        "anthropic answered 401: said",
    ),
    ("403", (failed(403, "permission_error"),), "auth", "anthropic answered 403: said", ""),
    (
        "404",
        (failed(404, "not_found_error"),),
        "invalid",
        f"anthropic answered 404: said{ASKED}",
        "anthropic answered 404: said",
    ),
    ("408", (failed(408, "timeout_error"),), "network", "anthropic answered 408: said", ""),
    ("413", (failed(413, "request_too_large"),), "context", "anthropic answered 413: said", ""),
    ("429", (failed(429, "rate_limit_error"),), "overloaded", "anthropic answered 429: said", ""),
    ("500", (failed(500, "api_error"),), "overloaded", "anthropic answered 500: said", ""),
    ("529", (failed(529, "overloaded_error"),), "overloaded", "anthropic answered 529: said", ""),
    (
        "half of a surrogate pair",
        (response(400, b'{"error": {"message": "said \\ud800"}}'),),
        "invalid",
        "anthropic answered 400: said ?",
        "",
    ),
    (
        "502 of a gateway",
        (response(502, b"<html>Bad Gateway</html>", "text/html"),),
        "overloaded",
        "anthropic answered 502: <html>Bad Gateway</html>",
        "",
    ),
    ("a slow first byte", ("wait",), "network", f"{LATE} after the request", LATE),
    (
        "a stall in the middle",
        (stream(*HALF, end=False), "wait"),
        "network",
        f"{LATE} in the middle of its answer",
        LATE,
    ),
]


def answer(model: LiveModel) -> Reply:
    async def ask() -> Reply:
        try:
            return await model.ask(REQUEST, lambda _: None)
        finally:
            await model.close()

    return asyncio.run(ask())


def fail(model: LiveModel | PydanticAiModel) -> ModelError:
    async def ask() -> ModelError:
        try:
            await model.ask(REQUEST, lambda _: None)
        except ModelError as error:
            return error
        finally:
            await model.close()
        raise AssertionError("there was an answer")

    return asyncio.run(ask())


@pytest.mark.parametrize(("name", "steps", "kind", "told"), [row[:4] for row in ROWS])
def test_what_a_user_reads_about_trouble(
    name: str, steps: Sequence[Step], kind: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_raw(*steps) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        found = fail(LiveModel("anthropic:x", timeouts=TIMEOUTS.get(name)))
    host = server.url.removeprefix("http://")
    assert (found.kind, str(found), len(server.requests)) == (kind, told.replace("HOST", host), 1)


def through_pydantic_ai(kind: str, told: str, other: str | tuple[str, str]) -> tuple[str, str]:
    return other if isinstance(other, tuple) else (kind, other or told)


@pytest.mark.parametrize(
    ("name", "steps", "kind", "told"), [(*row[:2], *through_pydantic_ai(*row[2:])) for row in ROWS]
)
def test_what_a_user_reads_about_trouble_through_pydantic_ai(
    name: str, steps: Sequence[Step], kind: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_raw(*steps) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        found = fail(PydanticAiModel("pydantic-ai:anthropic:x", TIMEOUTS.get(name)))
    assert (found.kind, str(found), len(server.requests)) == (kind, told, 1)


@pytest.mark.parametrize("name", ["direct", "pydantic-ai"])
def test_the_pause_that_a_provider_asks_for_is_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_raw(failed(429, "rate_limit_error", Retry_After="7")) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        model = LiveModel("anthropic:x") if name == "direct" else PydanticAiModel("pydantic-ai:anthropic:x")
        assert fail(model).retry_after == 7


WHOLE = (
    *HALF,
    event("content_block_stop", index=0),
    event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 1}),
    event("message_stop"),
)
CHAT = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "x"}
WHOLE_CHAT = (
    {**CHAT, "error": None, "choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": None}]},
    {**CHAT, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
)
MESSAGE = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "half"}]}
COMPLETED = event("response.completed", response={"id": "r", "status": "completed", "output": [MESSAGE]})
AFTER = f"data: {json.dumps({'type': 'error', 'error': {'message': 'too late'}})}\n\n"


@pytest.mark.parametrize(
    ("model", "events"),
    [
        ("anthropic:x", WHOLE),
        ("openai-chat:x", (*(f"data: {json.dumps(chunk)}\n\n" for chunk in WHOLE_CHAT), "data: [DONE]\n\n")),
        ("openai:x", (COMPLETED,)),
    ],
)
def test_an_answer_ends_with_its_last_event(
    model: str, events: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever follows: nothing, although the connection stays open, or events that belong to no answer."""
    with serve_raw(stream(*events, AFTER, end=False), "wait") as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        reply = answer(LiveModel(model))
    assert (reply.text, reply.stop_reason) == ("half", "end_turn")


def test_the_query_of_an_address_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_raw(stream(*WHOLE)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{server.url}/a b/?version=2")
        answer(LiveModel("anthropic:x"))
    assert server.requests[0].partition(b"\r\n")[0] == b"POST /a%20b/v1/messages?version=2 HTTP/1.1"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"))


@pytest.mark.parametrize("name", ["direct", "pydantic-ai"])
def test_a_certificate_that_is_not_trusted_is_not_asked_again(
    name: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_answers(tls=server_context(certificate)) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        model = LiveModel("anthropic:x") if name == "direct" else PydanticAiModel("pydantic-ai:anthropic:x")
        found = fail(model)
    assert (found.is_transient, "self-signed certificate" in str(found)) == (False, True)


# Another API than the one that was asked


CHAT_CHUNK = {
    "id": "c",
    "object": "chat.completion.chunk",
    "choices": [{"index": 0, "delta": {"content": "hi"}}],
}


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        (
            response(404, b'{"detail": "Not Found"}'),
            "openai answered 404: Not Found",
        ),
        (
            stream(f"data: {json.dumps(CHAT_CHUNK)}\n\n", "data: [DONE]\n\n"),
            "openai sent an answer that cannot be read: it is not an event of the Responses API",
        ),
    ],
    ids=["it answers 404", "it answers in its own form"],
)
def test_a_server_with_chat_completions_alone_is_named(
    sent: bytes, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serve_raw(sent) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{server.url}/v1")
        found = fail(LiveModel("openai:small"))
    host = server.url.removeprefix("http://")
    assert (found.kind, str(found)) == (
        "invalid",
        (
            f"{told}; the Responses API was asked at {host}; "
            "use --model openai-chat:small for a server with chat completions alone"
        ),
    )
