"""A model on loopback that replays a script; each API adds its format."""

import itertools
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any

from tests.support.servers.loopback import Connection, Loopback

Json = dict[str, Any]
Replies = Iterable[str | Mapping[str, Any]]


class ModelServer(Loopback, ABC):
    def __init__(self, conversation: "type[Conversation]") -> None:
        super().__init__(conversation)
        self.url = f"http://127.0.0.1:{self.port}"
        self.requests: list[Json] = []  # the bodies, in the order in which they came
        self.broken = threading.Event()  # a client hung up during a reply
        self.ids = itertools.count(1)

    def next_reply(self, body: Json, headers: dict[str, str]) -> Json:
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            return self.scripted()

    @abstractmethod
    def scripted(self) -> Json:
        """Return the scripted reply to the latest request."""


class Conversation(Connection, ABC):
    """A reply of any API may have `delay`, `chunk_delay` (seconds before each piece) and `cut`."""

    disable_nagle_algorithm = True
    server: ModelServer
    piece: str  # suffix of the type of an event with a piece of the answer

    @abstractmethod
    def complaint(self, body: Json) -> Json | None:
        """Return the error for a request that this API does not support."""

    @abstractmethod
    def answer(self, body: Json, reply: Json) -> None: ...

    def handle(self) -> None:
        try:
            super().handle()
        except ConnectionError:
            self.server.broken.set()

    def do_POST(self) -> None:  # noqa: N802 (its name in the standard library)
        headers, data = self.received()
        body = json.loads(data)
        if complaint := self.complaint(body):
            self.send(404, complaint)
            return
        reply = self.server.next_reply(body, headers)
        self.server.over.wait(reply.get("delay", 0))
        self.answer(body, reply)

    def send(self, status: int, content: Json) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, reply: Json, events: Iterable[Json]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            is_piece = event["type"].endswith(self.piece)
            if is_piece:
                self.server.over.wait(reply.get("chunk_delay", 0))
            self._chunk(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode())
            if is_piece and reply.get("cut"):
                self.close_connection = True
                return
        self._chunk(b"")

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))


def plain(replies: Replies) -> list[Json]:
    return [{"text": reply} if isinstance(reply, str) else dict(reply) for reply in replies]


def pieces(text: str) -> list[str]:
    """Split a text into pieces of ten characters, a long one into about a hundred."""
    size = max(10, len(text) // 100)
    return [text[place : place + size] for place in range(0, len(text), size)]
