"""OpenAI's two APIs: chat completions, which most other providers and local servers understand as well, and Responses."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, assert_never

from turngate.core.conversation import messages
from turngate.core.conversation.messages import ModelRequest, Reply, StopReason, Text, ToolUse, Usage
from turngate.http.event_stream import Event
from turngate.models.wire.base import (
    Json,
    OtherApi,
    StreamError,
    WireFormat,
    closed_schema,
    content_of,
    count_of,
    list_of,
    nonblank,
    object_of,
    parse_event,
    read_call,
    text_of,
    whole_reply,
)

_STOP_REASONS: dict[str, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}


def _function(tool: messages.ToolSpec) -> Json:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}


def _items(
    request: ModelRequest,
    reply: Callable[[list[Text | ToolUse]], list[Json]],
    result: Callable[[messages.ToolResult], Json],
) -> list[Json]:
    """Return the system prompt and the messages. The APIs differ in the form of replies and of results of tools."""
    items: list[Json] = [{"role": "system", "content": request.system}] if request.system else []
    for message in request.messages:
        match message:
            case messages.UserMessage(text):
                items.append({"role": "user", "content": text})
            case Reply(blocks):
                items += reply(nonblank(blocks))
            case messages.ToolResults(results):
                items += map(result, results)
            case _:
                assert_never(message)
    return items


def _named_schema(schema: Mapping[str, Any]) -> Json:
    """Return the schema of an answer; OpenAI holds an answer to it strictly if every property is required."""
    strict = set(schema.get("required", ())) == set(schema.get("properties", ()))
    return {"name": "judgment", "schema": closed_schema(schema), "strict": strict}


def _read_usage(used: Mapping[str, Any], sent: str, received: str) -> Usage:
    """Return the counts under these names. As in Anthropic's API, cached tokens are not part of `input_tokens`."""
    details = object_of(used.get(f"{sent}_details"))
    cached, written = count_of(details, "cached_tokens"), count_of(details, "cache_write_tokens")
    return Usage(
        input_tokens=max(0, count_of(used, sent) - cached - written),
        output_tokens=count_of(used, received),
        cache_creation_input_tokens=written,
        cache_read_input_tokens=cached,
    )


# Chat completions


def _chat_body(model: str, request: ModelRequest) -> Json:
    body: Json = {
        "model": model,
        "messages": _items(request, _chat_reply, _chat_result),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.tools:
        body["tools"] = [{"type": "function", "function": _function(tool)} for tool in request.tools]
    if request.schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": _named_schema(request.schema)}
    return body


def _chat_result(result: messages.ToolResult) -> Json:
    return {"role": "tool", "tool_call_id": result.tool_use_id, "content": content_of(result)}


def _chat_reply(blocks: list[Text | ToolUse]) -> list[Json]:
    text = "\n".join(block.text for block in blocks if isinstance(block, Text))
    calls = [
        {
            "id": use.id,
            "type": "function",
            "function": {"name": use.name, "arguments": json.dumps(dict(use.input))},
        }
        for use in blocks
        if isinstance(use, ToolUse)
    ]
    if not text and not calls:
        return []
    return [{"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}]


@dataclass
class _Call:
    """One call of a tool, whose parts arrive in pieces."""

    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class _ChatReader:
    """Events: chunks with a delta of the answer; the last ones have a finish reason and the usage."""

    def __init__(self) -> None:
        self._head: Json = {}
        self._usage: Json = {}
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._finish_reason = ""
        self.is_finished = False

    def take(self, event: Event) -> str:
        if event.data.strip() == "[DONE]":
            self.is_finished = True
            return ""
        chunk = parse_event(event)
        if chunk.get("error") or event.name == "error":
            raise StreamError(object_of(chunk.get("error")) or chunk)
        self._head = self._head or chunk
        self._usage = object_of(chunk.get("usage")) or self._usage
        choices = [each for each in list_of(chunk.get("choices")) if not count_of(each, "index")]
        return "".join(map(self._add, choices))

    def _add(self, choice: Json) -> str:
        delta = object_of(choice.get("delta"))
        text = text_of(delta.get("content"))
        self._text.append(text)
        self._refusal.append(text_of(delta.get("refusal")))
        for call in list_of(delta.get("tool_calls")):
            self._add_call(call)
        self._finish_reason = text_of(choice.get("finish_reason")) or self._finish_reason
        return text

    def _add_call(self, piece: Json) -> None:
        """Some servers leave out the index: then a piece with an id begins the next call."""
        index = piece.get("index")
        if not isinstance(index, int):
            index = len(self._calls) - (0 if piece.get("id") or not self._calls else 1)
        call = self._calls.setdefault(index, _Call())
        function = object_of(piece.get("function"))
        call.id = call.id or text_of(piece.get("id"))
        call.name = call.name or text_of(function.get("name"))
        call.arguments.append(text_of(function.get("arguments")))

    @property
    def reply(self) -> Reply | None:
        if not self._finish_reason:
            return None
        stop_reason = _STOP_REASONS.get(self._finish_reason, "end_turn")
        calls = [
            use
            for _, call in sorted(self._calls.items())
            for use in read_call(call.id, call.name, "".join(call.arguments), stop_reason)
        ]
        refusal, text = "".join(self._refusal), "".join(self._text)
        blocks = [*([Text(text or refusal)] if text or refusal else ()), *calls]
        usage = _read_usage(self._usage, "prompt_tokens", "completion_tokens")
        return whole_reply(blocks, stop_reason, usage, self._head, refused=bool(refusal) and not text)


CHAT_COMPLETIONS = WireFormat("chat completions", "/chat/completions", _chat_body, _ChatReader)


# Responses

_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


def _response_body(model: str, request: ModelRequest) -> Json:
    body: Json = {
        "model": model,
        "input": _items(request, lambda blocks: [*map(_block, blocks)], _response_result),
        "stream": True,
        "store": False,  # the conversation is sent whole each time
    }
    if request.tools:
        body["tools"] = [{"type": "function", **_function(t), "strict": False} for t in request.tools]
    if request.schema is not None:
        body["text"] = {"format": {"type": "json_schema", **_named_schema(request.schema)}}
    return body


def _response_result(result: messages.ToolResult) -> Json:
    return {"type": "function_call_output", "call_id": result.tool_use_id, "output": content_of(result)}


def _block(block: Text | ToolUse) -> Json:
    if isinstance(block, Text):
        return {"role": "assistant", "content": block.text}
    arguments = json.dumps(dict(block.input))
    return {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments}


class _ResponseReader:
    """Events: deltas to show; `response.output_item.done` with each item; at the end the whole response."""

    def __init__(self) -> None:
        self._items: dict[int, Json] = {}
        self._response: Json = {}
        self._is_responses = False

    @property
    def is_finished(self) -> bool:
        return bool(self._response)

    def take(self, event: Event) -> str:
        if event.data.strip() == "[DONE]":
            return ""
        data = parse_event(event)
        kind = text_of(data.get("type"))
        self._check(kind, data)
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                return text_of(data.get("delta"))
            case "response.output_item.done":
                self._items[count_of(data, "output_index")] = object_of(data.get("item"))
            case "response.completed" | "response.incomplete":
                self._response = object_of(data.get("response"))
            case "response.failed":
                raise StreamError(object_of(object_of(data.get("response")).get("error")))
            case "error":
                raise StreamError(object_of(data.get("error")) or data)
            case _:
                pass
        return ""

    def _check(self, kind: str, data: Json) -> None:
        """A server with chat completions alone may answer in that form."""
        self._is_responses = self._is_responses or kind.startswith("response.") or kind == "error"
        if not self._is_responses:
            if "error" in data:
                raise StreamError(object_of(data.get("error")))
            raise OtherApi("it is not an event of the Responses API")

    @property
    def reply(self) -> Reply | None:
        if not self._response:
            return None
        why = text_of(object_of(self._response.get("incomplete_details")).get("reason"))
        stop_reason = _INCOMPLETE.get(why, "end_turn")
        items = [item for _, item in sorted(self._items.items())] or list_of(self._response.get("output"))
        blocks = [block for item in items for block in _read_item(item, stop_reason)]
        parts = [part for item in items for part in list_of(item.get("content"))]
        usage = _read_usage(object_of(self._response.get("usage")), "input_tokens", "output_tokens")
        refused = any(part.get("type") == "refusal" for part in parts)
        return whole_reply(blocks, stop_reason, usage, self._response, refused=refused)


def _read_item(item: Json, stop_reason: StopReason) -> Sequence[Text | ToolUse]:
    match item.get("type"):
        case "message":
            parts = list_of(item.get("content"))
            texts = [text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts]
            return [Text(text) for text in texts if text]
        case "function_call":
            arguments = text_of(item.get("arguments"))
            return read_call(item.get("call_id"), item.get("name"), arguments, stop_reason)
        case _:
            return []


RESPONSES = WireFormat("the Responses API", "/responses", _response_body, _ResponseReader)
