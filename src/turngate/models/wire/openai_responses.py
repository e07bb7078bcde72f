"""OpenAI's Responses API."""

import json
from collections.abc import Mapping
from typing import assert_never

from turngate.core.conversation.messages import (
    Message,
    ModelRequest,
    Reply,
    StopReason,
    Text,
    ToolResults,
    ToolUse,
    UserMessage,
)
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

_INCOMPLETE: dict[str, StopReason] = {"max_output_tokens": "max_tokens", "content_filter": "refusal"}


class Responses:
    title = "the Responses API"
    path = "/responses"
    headers: Mapping[str, str] = {}

    def body(self, model: str, request: ModelRequest) -> Json:
        system = [{"role": "system", "content": request.system}] if request.system else []
        body: Json = {
            "model": model,
            "input": [*system, *(item for message in request.messages for item in _items(message))],
            "stream": True,
            "store": False,  # the conversation is sent whole each time
        }
        if request.tools:
            body["tools"] = [
                {
                    "type": "function",
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": dict(tool.schema),
                    "strict": False,
                }
                for tool in request.tools
            ]
        if request.schema is not None:
            body["text"] = {"format": {"type": "json_schema", **named_schema(request.schema)}}
        return body

    def reader(self) -> "_Reader":
        return _Reader()


def _items(message: Message) -> list[Json]:
    match message:
        case UserMessage(text):
            return [{"role": "user", "content": text}]
        case Reply(blocks):
            return [_block(block) for block in nonblank(blocks)]
        case ToolResults(results):
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


class _Reader:
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
            if any(isinstance(block, ToolUse) for block in blocks):
                stop_reason = "tool_use"
            elif any(
                part.get("type") == "refusal" for item in items for part in list_of(item.get("content"))
            ):
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
