"""An HTTP endpoint on loopback that gives prepared answers and keeps the requests."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from tests.support.servers.loopback import Connection, Loopback, run_server

Answer = Mapping[str, Any]  # status, body, type, headers, delay (seconds), endless


def serve_answers(*answers: Answer, tls: ssl.SSLContext | None = None) -> "AbstractContextManager[Endpoint]":
    """Give each answer once, in order, and repeat the last one."""
    return run_server(Endpoint(answers or ({},), tls))


class Endpoint(Loopback):
    def __init__(self, answers: Sequence[Answer], tls: ssl.SSLContext | None) -> None:
        super().__init__(_Request)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.bodies: list[Any] = []  # the JSON of each request
        self.raw: list[bytes] = []
        self.paths: list[str] = []
        self.asked = threading.Event()
        self.left = threading.Event()  # a client hung up while it waited
        self._answers = answers

    def next_answer(self, path: str, headers: dict[str, str], body: bytes) -> Answer:
        with self._lock:
            self.paths.append(path)
            self.headers.append(headers)
            self.raw.append(body)
            self.bodies.append(json.loads(body))
            answer = self._answers[min(len(self.paths), len(self._answers)) - 1]
        self.asked.set()
        return answer

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore clients that hang up or reject the certificate."""

    def watch(self, connection: socket.socket, seconds: float) -> None:
        """Wait; set `left` if the client hangs up before the end."""
        end = threading.Event()
        for _ in range(int(seconds / 0.02)):
            if self.over.is_set():
                return
            with contextlib.suppress(BlockingIOError, ssl.SSLError):
                connection.setblocking(False)
                if connection.recv(1, socket.MSG_PEEK) == b"":
                    self.left.set()
                    return
            end.wait(0.02)


class _Request(Connection):
    server: Endpoint

    def do_POST(self) -> None:  # noqa: N802 (its name in the standard library)
        headers, body = self.received()
        answer = self.server.next_answer(self.path, headers, body)
        if answer.get("delay"):
            self.server.watch(self.connection, answer["delay"])
            self.close_connection = True
            return
        if "raw" in answer:
            self.wfile.write(answer["raw"])
            self.close_connection = True
            return
        content = str(answer.get("body", "")).encode()
        self.send_response(answer.get("status", 200))
        self.send_header("Content-Type", answer.get("type", "application/json"))
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        if answer.get("endless"):
            self.send_header("Connection", "close")
            self.end_headers()
            self._talk()
            return
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _talk(self) -> None:
        try:
            while not self.server.over.is_set():
                self.wfile.write(b" " * 65536)
        except OSError:
            self.server.left.set()
        self.close_connection = True
