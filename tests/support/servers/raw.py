"""A server on loopback that sends exactly these bytes, for answers that no library would send."""

import socket
import struct
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Literal

from tests.support.timeouts import HANG_TIMEOUT_S

Step = bytes | Literal["wait", "reset"]  # send bytes; wait until the client leaves; reset the connection


class RawServer:
    def __init__(self, steps: Sequence[Step]) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.requests: list[bytes] = []
        self._steps = steps

    def serve(self) -> None:
        with suppress(OSError):  # closed at the end
            while True:
                connection, _ = self.listener.accept()
                with connection, suppress(OSError):
                    connection.settimeout(HANG_TIMEOUT_S)
                    self._answer(connection)

    def _answer(self, connection: socket.socket) -> None:
        request = _read_request(connection)
        if not request:
            return
        self.requests.append(request)
        for step in self._steps:
            match step:
                case bytes():
                    connection.sendall(step)
                case "wait":
                    while connection.recv(65536):
                        pass
                case "reset":
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return b""
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    size = next(
        (
            int(line.split(b":")[1])
            for line in head.split(b"\r\n")
            if line.lower().startswith(b"content-length")
        ),
        0,
    )
    while len(body) < size:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


@contextmanager
def serve_raw(*steps: Step) -> Iterator[RawServer]:
    server = RawServer(steps)
    thread = threading.Thread(target=server.serve)
    thread.start()
    try:
        yield server
    finally:
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
        thread.join()


def response(status: int, body: bytes, kind: str = "application/json", **headers: str) -> bytes:
    """Return a whole response."""
    fields = {"Content-Type": kind, "Content-Length": str(len(body)), **headers}
    lines = [
        f"HTTP/1.1 {status} X",
        *(f"{name.replace('_', '-')}: {value}" for name, value in fields.items()),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def stream(*events: str, end: bool = True) -> bytes:
    """Return a response whose body is a stream of events, each in a chunk of its own."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(event.encode()), event.encode()) for event in events)
    return head + chunks + (b"0\r\n\r\n" if end else b"")
