"""HttpClient against servers and proxies on loopback."""

import asyncio
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.support.certificates import make_certificate, server_context
from tests.support.servers.http import Endpoint, serve_answers
from tests.support.servers.raw import response, serve_raw
from turngate.http.client import HttpClient
from turngate.http.connection import HttpError, HttpSetupError, Server, request_target

HOST = "api.example.test"
BODY = b'{"a": 1}'


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_certificate(tmp_path_factory.mktemp("tls"), f"DNS:{HOST},IP:127.0.0.1")


@pytest.fixture
def encrypted(certificate: Path) -> Iterator[Endpoint]:
    with serve_answers({"body": "fine"}, tls=server_context(certificate)) as endpoint:
        yield endpoint


def post(url: str, environ: Mapping[str, str] | None = None, times: int = 1) -> list[tuple[int, bytes]]:
    async def ask() -> list[tuple[int, bytes]]:
        client = HttpClient(url, environ or {})
        client.prepare()
        found = []
        try:
            for _ in range(times):
                async with client.post("/path", {"X-Test": "1"}, BODY) as answer:
                    found.append((answer.status, await answer.read(1000)))
        finally:
            client.close()
            await asyncio.sleep(0)
        return found

    return asyncio.run(ask())


def fail(url: str, environ: Mapping[str, str] | None = None) -> str:
    with pytest.raises(HttpError) as caught:
        post(url, environ)
    return str(caught.value)


def test_a_request_has_its_headers_and_its_body() -> None:
    with serve_answers({"body": "fine"}) as endpoint:
        assert post(endpoint.url) == [(200, b"fine")]
    assert (endpoint.paths, endpoint.raw, endpoint.headers) == (
        ["/path"],
        [BODY],
        [{"host": f"127.0.0.1:{endpoint.port}", "content-length": "8", "x-test": "1"}],
    )


def test_requests_use_one_connection() -> None:
    with serve_answers({"body": "fine"}) as endpoint:
        assert post(endpoint.url, times=3) == [(200, b"fine")] * 3
        assert endpoint.connections == 1


def test_a_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    with serve_raw(response(200, b"fine")) as server:  # closes after each answer
        assert post(server.url, times=3) == [(200, b"fine")] * 3
        assert len(server.requests) == 3


def test_a_body_is_read_up_to_a_limit() -> None:
    with serve_answers({"body": "x" * 5000}) as endpoint:
        assert post(endpoint.url) == [(200, b"x" * 1000)]


def test_a_head_without_an_end_takes_bounded_memory() -> None:
    head = b"HTTP/1.1 200 OK\r\n" + b"X-Long: %s\r\n" % (b"x" * 1000) * 200
    with serve_raw(head, "wait") as server:
        host = server.url.removeprefix("http://")
        assert fail(server.url) == f"{host} does not speak HTTP"


def test_a_certificate_that_is_not_trusted_is_rejected(encrypted: Endpoint) -> None:
    assert (fail(encrypted.url), encrypted.paths) == (
        (
            f"the certificate of 127.0.0.1:{encrypted.port} is not trusted: self-signed certificate; "
            "set SSL_CERT_FILE to a file that has its certificate"
        ),
        [],
    )


def test_a_certificate_of_ssl_cert_file_is_trusted(
    encrypted: Endpoint, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    assert post(encrypted.url, times=2) == [(200, b"fine")] * 2
    assert encrypted.connections == 1


def test_a_certificate_file_of_the_users_settings_is_trusted(encrypted: Endpoint, certificate: Path) -> None:
    assert post(encrypted.url, {"SSL_CERT_FILE": f"{certificate}.crt"}) == [(200, b"fine")]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (None, "the file that SSL_CERT_FILE names cannot be read: No such file or directory"),
        ("nothing", "the file that SSL_CERT_FILE names has no certificate"),
    ],
)
def test_a_certificate_file_that_cannot_be_used_is_named(
    encrypted: Endpoint, tmp_path: Path, content: str | None, told: str
) -> None:
    path = tmp_path / "own.pem"
    if content:
        path.write_text(content)
    assert fail(encrypted.url, {"SSL_CERT_FILE": str(path)}) == told


def test_https_to_a_server_without_it_is_not_worth_a_second_try() -> None:
    with serve_answers() as endpoint, pytest.raises(HttpSetupError) as caught:
        post(endpoint.url.replace("http:", "https:"))
    assert str(caught.value) == f"no encrypted connection to 127.0.0.1:{endpoint.port}: it does not speak TLS"


def test_an_interim_response_is_not_the_answer() -> None:
    with serve_raw(b"HTTP/1.1 103 Early Hints\r\n\r\n" + response(200, b"fine")) as server:
        assert post(server.url) == [(200, b"fine")]


@pytest.mark.parametrize(
    ("url", "server"),
    [
        ("https://a.example", Server("https", "a.example", 443)),
        ("http://[::1]:80/x", Server("http", "::1", 80)),
        ("http://bücher.example/", Server("http", "xn--bcher-kva.example", 80)),
        (
            "http://faß.example/",
            "its host must be written in ASCII (xn--…)",
        ),  # IDNA 2003 has another host for it
        ("http://a b/", "its host has characters that are not allowed"),
        ("http://a:b@c/", "a user name or password in it is not supported"),
        ("ftp://a", "expected http://HOST or https://HOST"),
    ],
)
def test_a_server_is_named_by_a_url(url: str, server: Server | str) -> None:
    try:
        found: Server | str = Server.of(url)
    except ValueError as error:
        found = str(error)
    assert found == server


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://a", "/"),
        ("http://a?b=c", "/?b=c"),
        ("http://a/b%20c/d e?f=ü g#h", "/b%20c/d%20e?f=%C3%BC%20g"),
    ],
)
def test_the_first_line_of_a_request_is_ascii(url: str, target: str) -> None:
    assert request_target(url) == target


def test_a_name_that_cannot_be_resolved_is_a_sentence() -> None:
    assert fail("http://no-such-host.invalid").startswith(
        "the host no-such-host.invalid cannot be resolved: "
    )
    assert fail("http://a.example", {"HTTP_PROXY": "no-such-host.invalid:8080"}).startswith(
        "the proxy no-such-host.invalid cannot be resolved: "
    )


# Proxies


class ConnectProxy:
    """A proxy that opens a tunnel to one port, whatever host is asked for."""

    def __init__(self, port: int, reply: bytes) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://me:secret@127.0.0.1:{self.listener.getsockname()[1]}"
        self.heads: list[bytes] = []
        self._port, self._reply = port, reply

    def serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                head = b""
                while b"\r\n\r\n" not in head:
                    head += client.recv(65536)
                self.heads.append(head)
                client.sendall(self._reply)
                if b" 200 " not in self._reply:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._port))
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=_copy, args=(one, other), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    for end in (source, target):
        end.close()


@contextmanager
def connect_proxy(
    port: int, reply: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n"
) -> Iterator[ConnectProxy]:
    proxy = ConnectProxy(port, reply)
    thread = threading.Thread(target=proxy.serve)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.listener.shutdown(socket.SHUT_RDWR)
        proxy.listener.close()
        thread.join()


def test_an_encrypted_request_goes_through_a_tunnel_of_the_proxy(
    encrypted: Endpoint, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
    with connect_proxy(encrypted.port) as proxy:
        assert post(f"https://{HOST}", {"HTTPS_PROXY": proxy.url}) == [(200, b"fine")]
    assert proxy.heads == [
        f"CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:443\r\n"
        "Proxy-Authorization: Basic bWU6c2VjcmV0\r\n\r\n".encode()
    ]
    assert (encrypted.paths, encrypted.headers[0]["host"]) == (["/path"], HOST)


@pytest.mark.parametrize(
    ("reply", "told"),
    [
        (
            b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n",
            f"the proxy 127.0.0.1 answered 407 to the request for a connection to {HOST}",
        ),
        (b"", "the proxy 127.0.0.1 gave no answer that can be read"),
        (b"\r\n\r\n", f"the proxy 127.0.0.1 answered nothing to the request for a connection to {HOST}"),
    ],
)
def test_a_proxy_that_opens_no_tunnel_is_named(reply: bytes, told: str) -> None:
    with connect_proxy(9, reply) as proxy:
        assert fail(f"https://{HOST}", {"HTTPS_PROXY": proxy.url}) == told


def test_a_plain_request_names_the_whole_url_to_the_proxy() -> None:
    with serve_answers({"body": "fine"}) as proxy:
        url = proxy.url.replace("//", "//me:secret@")
        assert post(f"http://{HOST}", {"HTTP_PROXY": url}) == [(200, b"fine")]
    sent = proxy.headers[0]
    assert (proxy.paths, sent["host"], sent["proxy-authorization"]) == (
        [f"http://{HOST}/path"],
        HOST,
        "Basic bWU6c2VjcmV0",
    )


def test_a_proxy_that_cannot_be_reached_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        told = fail(f"https://{HOST}", {"HTTPS_PROXY": f"http://me:secret@127.0.0.1:{port}"})
    assert told == f"the proxy 127.0.0.1:{port} cannot be reached: Connection refused"
