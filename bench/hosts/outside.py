"""A proxy that lets nothing through: it keeps what programs try to reach beyond loopback."""

from contextlib import AbstractContextManager

from tests.support.servers.loopback import Connection, Loopback, run_server


class Outside(Loopback):
    def __init__(self) -> None:
        super().__init__(_Refusal)
        self.url = f"http://127.0.0.1:{self.port}"
        self.tried: list[str] = []  # host:port, or a URL


class _Refusal(Connection):
    server: Outside

    def refuse(self) -> None:
        self.server.tried.append(self.path)
        self.send_error(403)

    do_CONNECT = do_GET = do_POST = refuse  # noqa: N815 (their names in the standard library)


def serve_outside() -> AbstractContextManager[Outside]:
    return run_server(Outside())
