"""Anthropic's Messages API."""

import json
from collections.abc import Sequence
from dataclasses import fields
from typing import assert_never

from turngate.core.conversation import messages
from turngate.core.conversation.messages import Message, ModelRequest, Reply, StopReason, Text, ToolUse, Usage
from turngate.http.event_stream import Event
from turngate.models.known_models import known_model
from turngate.models.wire.base import (
    Json,
    StreamError,
    WireFormat,
    closed_schema,
    content_of,
    count_of,
    is_repeated,
    nonblank,
    object_of,
    parse_event,
    read_call,
    text_of,
    whole_reply,
)

DEFAULT_MAX_TOKENS = 16_384  # for a model whose largest answer is not known
_CACHE = {"type": "ephemeral", "ttl": "5m"}
_STOP_REASONS: dict[str, StopReason] = {
    "max_tokens": "max_tokens",
    "model_context_window_exceeded": "max_tokens",
    "refusal": "refusal",
}


def _body(model: str, request: ModelRequest) -> Json:
    known = known_model("anthropic", model)
    cached = is_repeated(request)
    body: Json = {
        "model": model,
        "max_tokens": known.max_output or DEFAULT_MAX_TOKENS,
        "messages": [message for each in request.messages if (message := _message(each))],
        "stream": True,
    }
    if request.system:
        body["system"] = [_cached({"type": "text", "text": request.system}, cached)]
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": dict(tool.schema)}
            for tool in request.tools
        ]
        body["tools"][-1] = _cached(body["tools"][-1], cached)
    if cached:
        body["cache_control"] = _CACHE
    if request.schema is not None and known.schemas:
        form = {"type": "json_schema", "schema": closed_schema(request.schema)}
        body["output_config"] = {"format": form}
    return body


def _cached(block: Json, cached: bool) -> Json:
    return {**block, "cache_control": _CACHE} if cached else block


def _message(message: Message) -> Json | None:
    match message:
        case messages.UserMessage(text):
            return {"role": "user", "content": [_text(text)]}
        case Reply(blocks):
            content = [_block(block) for block in nonblank(blocks)]
            return {"role": "assistant", "content": content} if content else None
        case messages.ToolResults(results):
            return {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": result.tool_use_id,
                        "content": [_text(content_of(result))],
                        "is_error": result.is_error,
                    }
                    for result in results
                ],
            }
        case _:
            assert_never(message)


def _text(text: str) -> Json:
    return {"type": "text", "text": text}


def _block(block: Text | ToolUse) -> Json:
    if isinstance(block, Text):
        return _text(block.text)
    return {"type": "tool_use", "id": block.id, "name": block.name, "input": dict(block.input)}


class _Reader:
    """Events: message_start, then for each block its start, deltas and stop, then message_delta and message_stop."""

    def __init__(self) -> None:
        self._message: Json = {}
        self._usage: Json = {}
        self._blocks: dict[int, Json] = {}
        self._pieces: dict[int, list[str]] = {}
        self._stop_reason = ""
        self.is_finished = False

    def take(self, event: Event) -> str:
        data = parse_event(event)
        match data.get("type"):
            case "message_start":
                self._message = object_of(data.get("message"))
                self._usage.update(object_of(self._message.get("usage")))
            case "content_block_start":
                return self._start(count_of(data, "index"), object_of(data.get("content_block")))
            case "content_block_delta":
                delta = object_of(data.get("delta"))
                text = text_of(delta.get("text"))
                pieces = self._pieces.setdefault(count_of(data, "index"), [])
                pieces.append(text or text_of(delta.get("partial_json")))
                return text
            case "message_delta":
                self._stop_reason = text_of(object_of(data.get("delta")).get("stop_reason"))
                self._usage.update(object_of(data.get("usage")))
            case "message_stop":
                self.is_finished = True
            case "error":
                raise StreamError(object_of(data.get("error")))
            case _:
                pass
        return ""

    def _start(self, index: int, block: Json) -> str:
        self._blocks[index] = block
        text = text_of(block.get("text")) if block.get("type") == "text" else ""
        self._pieces[index] = [text]
        return text

    @property
    def reply(self) -> Reply | None:
        if not self._stop_reason:
            return None
        stop_reason = _STOP_REASONS.get(self._stop_reason, "end_turn")
        blocks = [block for index in sorted(self._blocks) for block in self._read_block(index, stop_reason)]
        usage = Usage(**{field.name: count_of(self._usage, field.name) for field in fields(Usage)})
        return whole_reply(blocks, stop_reason, usage, self._message)

    def _read_block(self, index: int, stop_reason: StopReason) -> Sequence[Text | ToolUse]:
        start, pieces = self._blocks[index], "".join(self._pieces[index])
        match start.get("type"):
            case "text":
                return [Text(pieces)]
            case "tool_use":
                arguments = pieces or json.dumps(object_of(start.get("input")))
                return read_call(start.get("id"), start.get("name"), arguments, stop_reason)
            case _:
                return []


MESSAGES = WireFormat(
    title="the Messages API",
    path="/v1/messages",
    body=_body,
    reader=_Reader,
    headers={"anthropic-version": "2023-06-01"},
)
