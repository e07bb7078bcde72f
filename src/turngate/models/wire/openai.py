"""OpenAI's two APIs: chat completions, which most other providers and local servers understand as well, and Responses."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from turngate.core.conversation import messages
from turngate.core.conversation.messages import Message, ModelRequest, Reply, StopReason, Text, ToolUse
from turngate.http.event_stream import Event
from turngate.models.wire.base import (
    Json,
    OtherApi,
    StreamError,
    content_of,
    count_of,
    list_of,
    named_schema,
    nonblank,
    object_of,
    parse_event,
    parse_tool_input,
    read_usage,
    text_of,
)

_STOP_REASONS: dict[str, StopReason] = {"length": "max_tokens", "content_filter": "refusal"}


def _function(tool: messages.ToolSpec) -> Json:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)}


class ChatCompletions:
    title = "chat completions"
    path = "/chat/completions"
    headers: Mapping[str, str] = {}

    def body(self, model: str, request: ModelRequest) -> Json:
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: Json = {
            "model": model,
            "messages": [*system, *(item for message in request.messages for item in _chat_items(message))],
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools:
            body["tools"] = [{"type": "function", "function": _function(tool)} for tool in request.tools]
        if request.schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": named_schema(request.schema)}
        return body

    def reader(self) -> "_ChatReader":
        return _ChatReader()


def _chat_items(message: Message) -> list[Json]:
    match message:
        case messages.UserMessage(text):
            return [{"role": "user", "content": text}]
        case Reply(blocks):
            return _reply_items(nonblank(blocks))
        case messages.ToolResults(results):
            return [
                {"role": "tool", "tool_call_id": result.tool_use_id, "content": content_of(result)}
                for result in results
            ]
        case _:
            assert_never(message)


def _reply_items(blocks: list[Text | ToolUse]) -> list[Json]:
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
            ToolUse(call.id, call.name, given)
            for _, call in sorted(self._calls.items())
            if (given := parse_tool_input(call.name, "".join(call.arguments), stop_reason)) is not None
        ]
        refusal, text = "".join(self._refusal), "".join(self._text)
        if calls and stop_reason == "end_turn":
            stop_reason = "tool_use"
        if refusal and not text and stop_reason == "end_turn":
            text, stop_reason = refusal, "refusal"
        return Reply(
            ((Text(text),) if text else ()) + tuple(calls),
            stop_reason,
            read_usage(self._usage, "prompt_tokens", "completion_tokens"),
            model=text_of(self._head.get("model")),
            id=text_of(self._head.get("id")),
        )


# Responses

_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


class Responses:
    title = "the Responses API"
    path = "/responses"
    headers: Mapping[str, str] = {}

    def body(self, model: str, request: ModelRequest) -> Json:
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: Json = {
            "model": model,
            "input": [*system, *(item for message in request.messages for item in _response_items(message))],
            "stream": True,
            "store": False,  # the conversation is sent whole each time
        }
        if request.tools:
            body["tools"] = [{"type": "function", **_function(t), "strict": False} for t in request.tools]
        if request.schema is not None:
            body["text"] = {"format": {"type": "json_schema", **named_schema(request.schema)}}
        return body

    def reader(self) -> "_ResponseReader":
        return _ResponseReader()


def _response_items(message: Message) -> list[Json]:
    match message:
        case messages.UserMessage(text):
            return [{"role": "user", "content": text}]
        case Reply(blocks):
            return [_block(block) for block in nonblank(blocks)]
        case messages.ToolResults(results):
            return [
                {"type": "function_call_output", "call_id": result.tool_use_id, "output": content_of(result)}
                for result in results
            ]
        case _:
            assert_never(message)


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
        if stop_reason == "end_turn":
            parts = [part for item in items for part in list_of(item.get("content"))]
            if any(isinstance(block, ToolUse) for block in blocks):
                stop_reason = "tool_use"
            elif any(part.get("type") == "refusal" for part in parts):
                stop_reason = "refusal"
        return Reply(
            tuple(blocks),
            stop_reason,
            read_usage(object_of(self._response.get("usage")), "input_tokens", "output_tokens"),
            model=text_of(self._response.get("model")),
            id=text_of(self._response.get("id")),
        )


def _read_item(item: Json, stop_reason: StopReason) -> list[Text | ToolUse]:
    match item.get("type"):
        case "message":
            parts = list_of(item.get("content"))
            texts = [text_of(part.get("text")) or text_of(part.get("refusal")) for part in parts]
            return [Text(text) for text in texts if text]
        case "function_call":
            name = text_of(item.get("name"))
            given = parse_tool_input(name, text_of(item.get("arguments")), stop_reason)
            return [] if given is None else [ToolUse(text_of(item.get("call_id")), name, given)]
        case _:
            return []
