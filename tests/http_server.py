"""An endpoint on loopback that answers as a test tells it to, and keeps what it was sent."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Mapping[str, Any]  # status, body, type, headers, delay (seconds), endless


@contextmanager
def answering(*answers: Answer, tls: ssl.SSLContext | None = None) -> "Iterator[Endpoint]":
    """Each answer is given once, in order, and the last one again and again."""
    endpoint = Endpoint(answers or ({},), tls)
    thread = threading.Thread(target=endpoint.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield endpoint
    finally:
        endpoint.shutdown()
        thread.join()
        endpoint.hang_up()
        endpoint.server_close()


class Endpoint(ThreadingHTTPServer):
    daemon_threads = False

    def __init__(self, answers: Sequence[Answer], tls: ssl.SSLContext | None) -> None:
        super().__init__(("127.0.0.1", 0), _Request)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.port = self.server_address[1]
        self.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.port}"
        self.bodies: list[Any] = []  # the JSON of each request
        self.raw: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.asked = threading.Event()
        self.left = threading.Event()  # a client hung up while it waited
        self.over = threading.Event()
        self._answers = answers
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()

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
        """A client that hangs up, or does not trust us, is no error here."""

    def watch(self, connection: socket.socket, seconds: float) -> None:
        """Waits; notes when the client is gone before that."""
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

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)

    def hang_up(self) -> None:
        self.over.set()
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


class _Request(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.next_answer(self.path, headers, body)
        if answer.get("delay"):
            self.server.watch(self.connection, answer["delay"])
            self.close_connection = True
            return
        if "raw" in answer:
            self.wfile.write(answer["raw"])
            self.close_connection = True
            return
        said = str(answer.get("body", "")).encode()
        self.send_response(answer.get("status", 200))
        self.send_header("Content-Type", answer.get("type", "application/json"))
        for name, value in answer.get("headers", {}).items():
            self.send_header(name, value)
        if answer.get("endless"):
            self.send_header("Connection", "close")
            self.end_headers()
            self._talk()
            return
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def _talk(self) -> None:
        try:
            while not self.server.over.is_set():
                self.wfile.write(b" " * 65536)
        except OSError:
            self.server.left.set()
        self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""
