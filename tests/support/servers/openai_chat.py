"""A model on loopback that replays a script in the format of OpenAI's chat completions."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from tests.support.servers.loopback import run_server
from tests.support.servers.model import Conversation, Json, ModelServer, Replies, pieces, plain


def serve_chat(*replies: str | Mapping[str, Any]) -> "AbstractContextManager[ChatServer]":
    """Give the replies in order and repeat the last one.

    A reply is a text, `{"text"}`, `{"tools": [{"name", "input"}], "text"}` or `{"error": 429, "message"}`, plus
    `usage`, `finish_reason` (None: there is none), `failed` (an error inside of the stream), `delay`, `cut`,
    `no_index` (of calls) and `truncated` (in the middle of a call).
    """
    return run_server(ChatServer(replies))


class ChatServer(ModelServer):
    def __init__(self, replies: Replies) -> None:
        super().__init__(_Chat)
        self.url += "/v1"
        self._replies = plain(replies)

    def scripted(self) -> Json:
        return self._replies[min(len(self.requests), len(self._replies)) - 1]


class _Chat(Conversation):
    piece = ".delta"

    def complaint(self, body: Json) -> Json | None:
        if self.path == "/v1/chat/completions" and body.get("stream"):
            return None
        return {"error": {"message": f"no {self.path} without a stream here"}}

    def answer(self, body: Json, reply: Json) -> None:
        if "error" in reply:
            self.send(reply["error"], {"error": {"message": reply.get("message", "scripted error")}})
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, chunk in enumerate(_chunks(reply, body, self.server.ids)):
            self._chunk(f": keep-alive\n\ndata: {json.dumps(chunk)}\n\n".encode())
            if number and reply.get("cut"):
                self.close_connection = True
                return
        self._chunk(b"data: [DONE]\n\n")
        self._chunk(b"")


def _chunks(reply: Json, body: Json, ids: Iterator[int]) -> Iterator[Json]:
    head = {"id": f"chat_{next(ids)}", "object": "chat.completion.chunk", "model": body["model"]}
    for delta in _deltas(reply, ids):
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    if "failed" in reply:
        yield {"error": reply["failed"]}
        return
    usual = "tool_calls" if reply.get("tools") else "stop"
    end = reply.get("finish_reason", usual)
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": end}]}
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, **reply.get("usage", {})}
    yield {**head, "choices": [], "usage": usage}


def _deltas(reply: Json, ids: Iterator[int]) -> Iterator[Json]:
    yield {"role": "assistant", "content": ""}
    for piece in pieces(reply.get("text", "")):
        yield {"content": piece}
    for index, tool in enumerate(reply.get("tools", [])):
        place = {} if reply.get("no_index") else {"index": index}
        first, *rest = [*pieces(json.dumps(tool["input"])), ""] if "input" in tool else [""]
        begin = {
            "id": f"call_{next(ids)}",
            "type": "function",
            "function": {"name": tool["name"], "arguments": first},
        }
        yield {"tool_calls": [{**place, **begin}]}
        for piece in rest if not reply.get("truncated") else []:
            yield {"tool_calls": [{**place, "function": {"arguments": piece}}]}
    if "refusal" in reply:
        yield {"refusal": reply["refusal"]}
