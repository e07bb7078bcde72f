"""A model on loopback that replays a script in the format of Gemini's API."""

import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from tests.support.servers.loopback import run_server
from tests.support.servers.model import Conversation, Json, ModelServer, Replies, pieces, plain


def serve_gemini(*replies: str | Mapping[str, Any]) -> "AbstractContextManager[GeminiServer]":
    """Give the replies in order and repeat the last one.

    A reply is a text, `{"text"}`, `{"tools": [{"name", "input"}], "text"}` or `{"error": 429, "message"}`, plus
    `delay` and `usage`.
    """
    return run_server(GeminiServer(replies))


class GeminiServer(ModelServer):
    def __init__(self, replies: Replies) -> None:
        super().__init__(_Contents)
        self._replies = plain(replies)

    def scripted(self) -> Json:
        return self._replies[min(len(self.requests), len(self._replies)) - 1]


class _Contents(Conversation):
    piece = ".delta"

    def complaint(self, body: Json) -> Json | None:  # noqa: ARG002 (the other APIs look at it)
        if self.path.partition("?")[0].endswith((":streamGenerateContent", ":generateContent")):
            return None
        return _error({"error": 404, "message": f"no {self.path} here"})

    def answer(self, body: Json, reply: Json) -> None:  # noqa: ARG002 (the other APIs look at it)
        if "error" in reply:
            self.send(reply["error"], _error(reply))
        elif ":streamGenerateContent" not in self.path:
            self.send(200, _whole(reply))
        else:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for chunk in _chunks(reply):
                self._chunk(f"data: {json.dumps(chunk)}\r\n\r\n".encode())
            self._chunk(b"")


def _chunks(reply: Json) -> Iterator[Json]:
    for piece in pieces(reply.get("text", "")):
        yield _candidate([{"text": piece}])
    yield {**_candidate(_calls(reply), finishReason="STOP"), **_usage(reply)}


def _whole(reply: Json) -> Json:
    said = [{"text": reply["text"]}] if "text" in reply else []
    return {**_candidate(said + _calls(reply), finishReason="STOP"), **_usage(reply)}


def _calls(reply: Json) -> list[Json]:
    return [
        {"functionCall": {"name": tool["name"], "args": tool.get("input", {})}}
        for tool in reply.get("tools", [])
    ]


def _candidate(parts: list[Json], **more: str) -> Json:
    content = {"role": "model", "parts": parts or [{"text": ""}]}
    return {"candidates": [{"index": 0, "content": content, **more}], "modelVersion": "scripted"}


def _usage(reply: Json) -> Json:
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}
    return {"usageMetadata": {**usage, **reply.get("usage", {})}}


def _error(reply: Json) -> Json:
    message = reply.get("message", "scripted error")
    return {"error": {"code": reply["error"], "message": message, "status": "INTERNAL"}}
