"""A model on loopback that replays a script in the format of Anthropic's API."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tests.support.servers.loopback import run_server
from tests.support.servers.model import Conversation, Json, ModelServer, pieces, plain

Script = Mapping[str, Sequence[str | Mapping[str, Any]]]
AgentOf = Callable[[Json], str]  # finds the agent in the body of a request


def serve_script(
    script: Script | None = None, who: AgentOf = lambda _body: "main"
) -> "AbstractContextManager[AnthropicServer]":
    """`{"main": [...], "sub": [...], "hook": [...]}`: each is given in order, and the last one is repeated.

    A reply is a text, `{"text"}`, `{"texts": []}`, `{"tool", "input", "text"}`, `{"tools": [{"name", "input"}]}`
    or `{"error": 529, "type", "message"}`, plus `delay`, `stop_reason`, `repeat`; `{n}` in a text is the number
    of that agent's request. For tests of the client there is more: `usage`, `chunk_delay` (seconds before each
    piece), `cut` (the connection breaks in the middle), and an `error` with a text comes after the text.
    """
    return run_server(AnthropicServer(script or {"main": ["answer {n}"]}, who))


class AnthropicServer(ModelServer):
    def __init__(self, script: Script, who: AgentOf) -> None:
        super().__init__(_Messages)
        self.agents: list[str] = []  # who made each of the requests
        self._who = who
        self._script = {agent: _expanded(plain(replies)) for agent, replies in script.items()}

    def scripted(self) -> Json:
        agent = self._who(self.requests[-1])
        self.agents.append(agent)
        number = self.agents.count(agent)
        replies = self._script.get(agent) or [
            {"error": 400, "message": f"the script has no answer for {agent!r}"}
        ]
        return _numbered(replies[min(number, len(replies)) - 1], number)


class _Messages(Conversation):
    piece = "content_block_delta"

    def complaint(self, body: Json) -> Json | None:  # noqa: ARG002 (the other API looks at it)
        if self.path.partition("?")[0] == "/v1/messages":
            return None
        return _error({"type": "not_found_error", "message": f"no {self.path} here"})

    def answer(self, body: Json, reply: Json) -> None:
        blocks = _blocks(reply, self.server.ids)
        if "error" in reply and not blocks:
            self.send(reply["error"], _error(reply))
        elif body.get("stream"):
            self.stream(reply, _events(reply, _message(body, reply, blocks, next(self.server.ids))))
        else:
            self.send(200, _message(body, reply, blocks, next(self.server.ids)))


def _expanded(replies: list[Json]) -> list[Json]:
    return [reply for reply in replies for _ in range(reply.get("repeat", 1))]


def _numbered(reply: Json, number: int) -> Json:
    texts = reply.get("texts", [reply["text"]] if "text" in reply else [])
    return {**reply, "texts": [text.replace("{n}", str(number)) for text in texts]}


def _blocks(reply: Json, ids: Iterator[int]) -> list[Json]:
    tools = [{"name": reply["tool"], "input": reply.get("input", {})}] if "tool" in reply else []
    return [{"type": "text", "text": text} for text in reply["texts"]] + [
        {"type": "tool_use", "id": f"toolu_{next(ids)}", "name": tool["name"], "input": tool.get("input", {})}
        for tool in (*tools, *reply.get("tools", []))
    ]


def _message(body: Json, reply: Json, blocks: list[Json], number: int) -> Json:
    wants_tools = any(block["type"] == "tool_use" for block in blocks)
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": reply.get("stop_reason", "tool_use" if wants_tools else "end_turn"),
        "stop_sequence": None,
        "usage": {"input_tokens": 10, "output_tokens": 5, **reply.get("usage", {})},
    }


def _events(reply: Json, message: Json) -> Iterator[Json]:
    usage = message["usage"]
    begun = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield {"type": "message_start", "message": begun}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        yield from _block_events(index, block)
    if "error" in reply:
        yield _error(reply)
        return
    ended = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def _block_events(index: int, block: Json) -> Iterator[Json]:
    if block["type"] == "text":
        start = {**block, "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    else:
        start = {**block, "input": {}}
        given = json.dumps(block["input"])
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(given)]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _error(reply: Json) -> Json:
    error = {"type": reply.get("type", "api_error"), "message": reply.get("message", "scripted error")}
    return {"type": "error", "error": error}
