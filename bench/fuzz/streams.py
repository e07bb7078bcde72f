"""The streams of models: what arrives is a whole reply, or an error that a session knows."""

import json
from random import Random
from typing import Any, NamedTuple

from bench.fuzz.target import Target
from bench.fuzz.values import damaged, json_value
from turngate.core.conversation.messages import Reply, Text, ToolUse
from turngate.http.connection import HttpError
from turngate.http.event_stream import EventDecoder
from turngate.models.live import status_error, stream_error
from turngate.models.wire.anthropic import MESSAGES
from turngate.models.wire.base import StreamError, Unreadable, WireFormat
from turngate.models.wire.openai import CHAT_COMPLETIONS, RESPONSES

WIRES: dict[str, WireFormat] = {
    "anthropic": MESSAGES,
    "chat": CHAT_COMPLETIONS,
    "responses": RESPONSES,
}
TYPES = {
    "anthropic": (
        *("message_start", "content_block_start", "content_block_delta", "content_block_stop"),
        *("message_delta", "message_stop", "error", "ping"),
    ),
    "chat": ("chat.completion.chunk",),
    "responses": (
        *("response.created", "response.output_text.delta", "response.output_item.done"),
        *("response.completed", "response.incomplete", "response.failed", "error"),
    ),
}
NAMES = (
    *(
        "type",
        "index",
        "delta",
        "content_block",
        "message",
        "usage",
        "stop_reason",
        "text",
        "partial_json",
        "input",
    ),
    *(
        "id",
        "name",
        "model",
        "choices",
        "content",
        "finish_reason",
        "tool_calls",
        "function",
        "arguments",
        "refusal",
    ),
    *(
        "response",
        "item",
        "output",
        "output_index",
        "call_id",
        "error",
        "code",
        "incomplete_details",
        "reason",
    ),
    *("input_tokens", "output_tokens", "prompt_tokens", "prompt_tokens_details", "cached_tokens"),
)
WORDS = (
    *(
        "text",
        "tool_use",
        "text_delta",
        "input_json_delta",
        "message",
        "function_call",
        "output_text",
        "refusal",
    ),
    *(
        "end_turn",
        "max_tokens",
        "stop",
        "length",
        "tool_calls",
        "overloaded_error",
        "{}",
        '{"a": 1}',
        "{",
        "Bash",
    ),
    *(0, 1, 2, -1, 10**30, 0.5),
)


class Stream(NamedTuple):
    wire: str
    pieces: list[bytes]


def make_stream(random: Random) -> Stream:
    wire = random.choice(list(WIRES))
    events = [_event(random, wire) for _ in range(random.randint(0, 8))]
    data = b"".join(f"event: {name}\ndata: {body}\n\n".encode("utf-8", "replace") for name, body in events)
    data = damaged(random, data, 0.1)
    size = random.choice([1, 7, 64, 4096])
    return Stream(wire, [data[place : place + size] for place in range(0, len(data), size)])


def _event(random: Random, wire: str) -> tuple[str, str]:
    kind = random.choice(TYPES[wire])
    fields: dict[str, Any] = {
        name: json_value(random, NAMES, WORDS) for name in random.sample(NAMES, random.randint(1, 5))
    }
    if wire == "chat" and random.random() < 0.8:
        fields = {"choices": [fields], **fields}
    return kind, json.dumps({**fields, "type": kind})


def check_stream(stream: Stream) -> None:
    found = _read(stream)
    if isinstance(found, Reply):
        _assert_sound(found)
    else:
        assert found is None or str(found), "an error without a sentence"


def _read(stream: Stream) -> Reply | Exception | None:
    decoder, reader = EventDecoder(), WIRES[stream.wire].reader()
    try:
        for piece in stream.pieces:
            for event in decoder.feed(piece):
                reader.take(event).encode()
        reply = reader.reply
    except StreamError as error:
        return stream_error("test", error.error)
    except (HttpError, Unreadable) as error:
        return error
    return reply


def _assert_sound(reply: Reply) -> None:
    for block in reply.blocks:
        assert isinstance(block, Text | ToolUse)
        if isinstance(block, ToolUse):
            assert isinstance(block.id, str)
            assert isinstance(block.name, str)
            assert isinstance(block.input, dict)
        else:
            assert isinstance(block.text, str)
    assert reply.usage.total >= 0
    assert isinstance(reply.model, str)
    assert isinstance(reply.id, str)


def make_error(random: Random) -> tuple[int, bytes, str]:
    body = json.dumps(json_value(random, NAMES, WORDS)).encode("utf-8", "replace")
    body = damaged(random, body)
    retry = random.choice(
        ["", "5", "-1", "nan", "inf", "1e999", "Wed, 21 Oct 2026 07:28:00 GMT", "x" * 99, "9" * 5000]
    )
    return random.choice([204, 301, 400, 401, 402, 404, 413, 429, 500, 529, 999]), body, retry


def check_error(value: tuple[int, bytes, str]) -> None:
    status, body, retry = value
    error = status_error("test", status, {"retry-after": retry}, body)
    assert len(str(error)) < 400, "a long message"
    assert "\n" not in str(error), "a message of several lines"
    assert error.retry_after is None or error.retry_after >= 0, "a pause that is no number"


TARGETS = (
    Target("model-streams", make_stream, check_stream),
    Target("model-errors", make_error, check_error),
)
