"""A model on loopback that replays a script in the format of OpenAI's Responses API."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from tests.support.servers.loopback import run_server
from tests.support.servers.model import Conversation, Json, ModelServer, Replies, pieces, plain


def serve_replies(*replies: str | Mapping[str, Any]) -> "AbstractContextManager[OpenAIServer]":
    """Give the replies in order and repeat the last one.

    A reply is a text, `{"text"}`, `{"tools": [{"name", "input"}], "text"}` (a tool may have a `namespace`) or
    `{"error": 429, "type", "code", "message"}`, plus `usage`, `incomplete` (why the answer ended early), `failed` (an
    error inside of the stream), `delay` (seconds before it), `cut` (the connection breaks in the middle) and
    `endless` (the end never comes).
    """
    return run_server(OpenAIServer(replies))


class OpenAIServer(ModelServer):
    def __init__(self, replies: Replies) -> None:
        super().__init__(_Responses)
        self.url += "/v1"
        self._replies = plain(replies)

    def scripted(self) -> Json:
        return self._replies[min(len(self.requests), len(self._replies)) - 1]


class _Responses(Conversation):
    piece = ".delta"

    def complaint(self, body: Json) -> Json | None:
        if self.path.partition("?")[0] == "/v1/responses" and body.get("stream"):
            return None
        return _error({"message": f"no {self.path} without a stream here"})

    def answer(self, body: Json, reply: Json) -> None:
        if "error" in reply:
            self.send(reply["error"], _error(reply))
        else:
            events = enumerate(_events(reply, body, self.server.ids))
            self.stream(reply, ({**event, "sequence_number": number} for number, event in events))


def _events(reply: Json, body: Json, ids: Iterator[int]) -> Iterator[Json]:
    response = _response(body, next(ids))
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    items = [_said(reply["text"], next(ids))] if "text" in reply else []
    items += [_call(tool, next(ids)) for tool in reply.get("tools", [])]
    for index, item in enumerate(items):
        yield from (_text_events if item["type"] == "message" else _call_events)(index, item)
    if reply.get("endless"):
        return
    usage = {
        "input_tokens": 10,
        "output_tokens": 5,
        "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
        **reply.get("usage", {}),
    }
    ended = {**response, "output": items, "usage": usage}
    if "failed" in reply:
        yield {"type": "response.failed", "response": {**ended, "status": "failed", "error": reply["failed"]}}
    elif "incomplete" in reply:
        why = {"status": "incomplete", "incomplete_details": {"reason": reply["incomplete"]}}
        yield {"type": "response.incomplete", "response": {**ended, **why}}
    else:
        yield {"type": "response.completed", "response": {**ended, "status": "completed"}}


def _response(body: Json, number: int) -> Json:
    return {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1_700_000_000,
        "status": "in_progress",
        "model": body["model"],
        "output": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _said(text: str, number: int) -> Json:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }


def _call(tool: Mapping[str, Any], number: int) -> Json:
    return {
        "id": f"fc_{number}",
        "type": "function_call",
        "call_id": f"call_{number}",
        "name": tool["name"],
        "arguments": json.dumps(tool.get("input", {})),
        "status": "completed",
        **({"namespace": tool["namespace"]} if "namespace" in tool else {}),
    }


def _text_events(index: int, item: Json) -> Iterator[Json]:
    [part] = item["content"]
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    begun = {**item, "content": [], "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for piece in pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _call_events(index: int, item: Json) -> Iterator[Json]:
    place = {"item_id": item["id"], "output_index": index}
    begun = {**item, "arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    for piece in pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **place, **done}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _error(reply: Json) -> Json:
    error = {"message": reply.get("message", "scripted error"), "type": reply.get("type", "server_error")}
    return {"error": {**error, "param": None, "code": reply.get("code")}}
