"""A server on loopback for the duration of a test: its thread, connections and shutdown."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeVar

S = TypeVar("S", bound="Loopback")


@contextmanager
def run_server(server: S) -> Iterator[S]:
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.hang_up()
        server.server_close()


class Loopback(ThreadingHTTPServer):
    daemon_threads = False  # so that server_close waits for them
    request_queue_size = 256

    def __init__(self, connection: "type[Connection]") -> None:
        super().__init__(("127.0.0.1", 0), connection)
        self.port = self.server_address[1]
        self.headers: list[dict[str, str]] = []  # of each request, in the order in which they came
        self.connections = 0
        self.over = threading.Event()
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()

    def opened(self, connection: socket.socket) -> None:
        with self._lock:
            self.connections += 1
            self._open.add(connection)

    def closed(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)

    def hang_up(self) -> None:
        """Close idle connections and end slow answers, so that the shutdown does not wait for a client."""
        self.over.set()
        with self._lock:
            for connection in self._open:
                with suppress(OSError):  # the client closed it first
                    connection.shutdown(socket.SHUT_RDWR)


class Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Loopback

    def setup(self) -> None:
        super().setup()
        self.server.opened(self.connection)

    def finish(self) -> None:
        self.server.closed(self.connection)
        super().finish()

    def received(self) -> tuple[dict[str, str], bytes]:
        """Return the headers of a request, with lower-case names, and its body."""
        headers = {name.lower(): value for name, value in self.headers.items()}
        return headers, self.rfile.read(int(headers["content-length"]))

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 (its name in the standard library)
        """Do not log."""
