"""A model on loopback that speaks as OpenAI's Responses API does and says what a script tells it to."""

import itertools
import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]
Replies = Sequence[str | Mapping[str, Any]]


@contextmanager
def playing(*replies: str | Mapping[str, Any]) -> "Iterator[OpenAIServer]":
    """The replies are handed out in order, the last one again and again.

    A reply is a text, `{"text"}`, `{"tools": [{"name", "input"}], "text"}` or `{"error": 429, "type", "code",
    "message"}`, plus `usage`, `incomplete` (why the answer ended early), `failed` (an error inside of the stream),
    `delay` (seconds before it), `cut` (the connection breaks in the middle) and `endless` (the end never comes).
    """
    server = OpenAIServer(replies)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.hang_up()
        server.server_close()


class OpenAIServer(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close waits for them

    def __init__(self, replies: Replies) -> None:
        super().__init__(("127.0.0.1", 0), Conversation)
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self.requests: list[Json] = []  # the bodies, in the order in which they came
        self.headers: list[dict[str, str]] = []
        self.ids = itertools.count(1)
        self.broken = threading.Event()  # somebody hung up while we were speaking
        self.over = threading.Event()
        self._replies: list[Json] = [{"text": r} if isinstance(r, str) else dict(r) for r in replies]
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def next_reply(self, body: Json, headers: dict[str, str]) -> Json:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            return self._replies[min(len(self.requests), len(self._replies)) - 1]

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def hang_up(self) -> None:
        """No client keeps us waiting."""
        self.over.set()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):  # its client hung up first
                    connection.shutdown(socket.SHUT_RDWR)


class Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: OpenAIServer

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
        if self.path.partition("?")[0] != "/v1/responses" or not body.get("stream"):
            self._send(404, _error({"message": f"no {self.path} without a stream here"}))
            return
        reply = self.server.next_reply(body, {name.lower(): value for name, value in self.headers.items()})
        self.server.over.wait(reply.get("delay", 0))
        if "error" in reply:
            self._send(reply["error"], _error(reply))
        else:
            self._stream(reply, _events(reply, body, self.server.ids))

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
        for number, event in enumerate(events):
            data = json.dumps({**event, "sequence_number": number})
            self._chunk(f"event: {event['type']}\ndata: {data}\n\n".encode())
            if reply.get("cut") and event["type"].endswith(".delta"):
                self.close_connection = True
                return
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name in the standard library)
        pass


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
        "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
        **reply.get("usage", {}),
    }  # fmt: skip
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
        "id": f"resp_{number}", "object": "response", "created_at": 1_700_000_000, "status": "in_progress",
        "model": body["model"], "output": [], "error": None, "incomplete_details": None, "instructions": None,
        "metadata": {}, "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [],
        "top_p": 1.0, "usage": None,
    }  # fmt: skip


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
        "id": f"fc_{number}", "type": "function_call", "call_id": f"call_{number}", "name": tool["name"],
        "arguments": json.dumps(tool.get("input", {})), "status": "completed",
    }  # fmt: skip


def _text_events(index: int, item: Json) -> Iterator[Json]:
    [part] = item["content"]
    place = {"item_id": item["id"], "output_index": index, "content_index": 0}
    begun = {**item, "content": [], "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    yield {"type": "response.content_part.added", **place, "part": {**part, "text": ""}}
    for piece in _pieces(part["text"]):
        yield {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
    yield {"type": "response.output_text.done", **place, "text": part["text"], "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": part}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _call_events(index: int, item: Json) -> Iterator[Json]:
    place = {"item_id": item["id"], "output_index": index}
    begun = {**item, "arguments": "", "status": "in_progress"}
    yield {"type": "response.output_item.added", "output_index": index, "item": begun}
    for piece in _pieces(item["arguments"]):
        yield {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield {"type": "response.function_call_arguments.done", **place, **done}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


def _pieces(text: str) -> list[str]:
    return [text[place : place + 10] for place in range(0, len(text), 10)]


def _error(reply: Json) -> Json:
    said = {"message": reply.get("message", "scripted error"), "type": reply.get("type", "server_error")}
    return {"error": {**said, "param": None, "code": reply.get("code")}}
