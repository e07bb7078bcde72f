"""A model on loopback that speaks as Anthropic's API does and says what a script tells it to."""

import contextlib
import itertools
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Script = Mapping[str, Sequence[str | Mapping[str, Any]]]
Teller = Callable[[Json], str]  # which agent asks, told by the request's body


@contextmanager
def playing(script: Script | None = None, who: Teller = lambda _body: "main") -> "Iterator[AnthropicServer]":
    """`{"main": [...], "sub": [...], "hook": [...]}`: each handed out in order, the last one again and again.

    A reply is a text, `{"text"}`, `{"texts": []}`, `{"tool", "input", "text"}`, `{"tools": [{"name", "input"}]}`
    or `{"error": 529, "type", "message"}`, plus `delay`, `stop_reason`, `repeat`; `{n}` in a text is the number
    of that agent's request. For tests of the client there is more: `usage`, `chunk_delay` (seconds before each
    piece), `cut` (the connection breaks in the middle), and an `error` with a text comes after the text.
    """
    server = AnthropicServer(script or {"main": ["answer {n}"]}, who)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.hang_up()
        server.server_close()


class AnthropicServer(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close waits for them
    request_queue_size = 256

    def __init__(self, script: Script, who: Teller) -> None:
        super().__init__(("127.0.0.1", 0), Conversation)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.requests: list[Json] = []  # the bodies, in the order in which they came
        self.headers: list[dict[str, str]] = []
        self.agents: list[str] = []  # who made each of them
        self.connections = 0
        self.broken = threading.Event()  # somebody hung up while we were speaking
        self.ids = itertools.count(1)
        self.over = threading.Event()
        self._who = who
        self._script = {agent: _expanded(replies) for agent, replies in script.items()}
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def next_reply(self, body: Json, headers: dict[str, str]) -> Json:
        agent = self._who(body)
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            self.agents.append(agent)
            number = self.agents.count(agent)
        replies = self._script.get(agent) or [
            {"error": 400, "message": f"the script has no answer for {agent!r}"}
        ]
        return _numbered(replies[min(number, len(replies)) - 1], number)

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self.connections += 1
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def hang_up(self) -> None:
        """No client keeps us waiting: neither with an idle connection nor for the rest of a slow answer."""
        self.over.set()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):  # the client was quicker
                    connection.shutdown(socket.SHUT_RDWR)


class Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: AnthropicServer

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        self.server.closed(self.connection)
        super().finish()

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.server.broken.set()

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path.partition("?")[0] != "/v1/messages":
            self._send(404, _error({"type": "not_found_error", "message": f"no {self.path} here"}))
            return
        reply = self.server.next_reply(body, {name.lower(): value for name, value in self.headers.items()})
        self.server.over.wait(reply.get("delay", 0))
        blocks = _blocks(reply, self.server.ids)
        if "error" in reply and not blocks:
            self._send(reply["error"], _error(reply))
        elif body.get("stream"):
            self._stream(reply, _events(reply, _message(body, reply, blocks, next(self.server.ids))))
        else:
            self._send(200, _message(body, reply, blocks, next(self.server.ids)))

    def _send(self, status: int, content: Json) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, reply: Json, events: Iterator[Json]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            if event["type"] == "content_block_delta":
                self.server.over.wait(reply.get("chunk_delay", 0))
            self._chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            if reply.get("cut") and event["type"] == "content_block_delta":
                self.close_connection = True
                return
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name in the standard library)
        pass


def _expanded(replies: Sequence[str | Mapping[str, Any]]) -> list[Json]:
    plain: list[Json] = [{"text": reply} if isinstance(reply, str) else dict(reply) for reply in replies]
    return [reply for reply in plain for _ in range(reply.get("repeat", 1))]


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
        deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
    else:
        start = {**block, "input": {}}
        pieces = _pieces(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    yield {"type": "content_block_start", "index": index, "content_block": start}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


def _pieces(text: str) -> list[str]:
    return [text[place : place + 10] for place in range(0, len(text), 10)]


def _error(reply: Json) -> Json:
    error = {"type": reply.get("type", "api_error"), "message": reply.get("message", "scripted error")}
    return {"type": "error", "error": error}
