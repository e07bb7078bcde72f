"""Asks a running `turngate serve` as a browser does, or as an attacker."""

import json
import socket
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from tests.support.timeouts import HANG_TIMEOUT_S


@dataclass
class PageServer:
    """`address`: what the command has printed."""

    address: str
    pid: int

    @property
    def port(self) -> int:
        return urlsplit(self.address).port or 0

    @property
    def token(self) -> str:
        return urlsplit(self.address).fragment.removeprefix("token=")

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=HANG_TIMEOUT_S)

    def send(self, data: bytes) -> bytes:
        """Return what comes until the server closes the connection."""
        with self.connect() as connection:
            connection.sendall(data)
            return read_all(connection)

    def ask(
        self, target: str, *, method: str = "GET", token: bool = True, **headers: str
    ) -> tuple[int, str, str]:
        """Return status, head and body. An underscore in the name of a header is a hyphen; "" leaves it out."""
        given = {
            "Host": f"127.0.0.1:{self.port}",
            **({"Authorization": f"Bearer {self.token}"} if token else {}),
        }
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [
            f"{method} {target} HTTP/1.1",
            *(f"{name}: {value}" for name, value in given.items() if value),
        ]
        head, _, body = self.send("\r\n".join([*lines, "", ""]).encode()).decode().partition("\r\n\r\n")
        return int(head.split()[1]), head, body

    def view(self, name: str) -> Any:
        status, _, body = self.ask(f"/data/{name}")
        assert status == 200, (name, status, body)
        return json.loads(body)


def read_all(connection: socket.socket) -> bytes:
    data = b""
    while piece := connection.recv(1 << 16):
        data += piece
    return data
