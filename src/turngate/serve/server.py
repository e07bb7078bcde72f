"""A web server for one page and its data: on loopback, read-only, for the one person who has the token.

Every connection serves one request, within limits of size and time. When there are too many that have not shown the
token yet, the oldest is closed, so that others cannot keep the person out. The token is in the fragment of the address,
which a browser does not send, and then in the storage of the page, which no other port of this machine can read: there
is no cookie that a browser would add to the requests of other pages.
"""

import asyncio
import base64
import hashlib
import re
import secrets
import time
from collections.abc import Callable
from http import HTTPStatus
from importlib.resources import files
from urllib.parse import parse_qsl

from turngate.aio.threads import run_in_thread
from turngate.errors import UsageError
from turngate.history.sessions import History
from turngate.serve.views import Views, page_json

MAX_HEAD_BYTES = 16 * 1024
HEAD_TIMEOUT_S = 5.0
SEND_TIMEOUT_S = 20.0
MAX_STRANGERS = 64  # connections that have not shown the token yet
MAX_VIEWS = 4  # that are made at the same time
POLL_S = 0.3
READ_S = 0.5
_DATA = '<script type="application/json" id="data">'  # what follows in the page: null
_HEADERS = """\
X-Content-Type-Options: nosniff
Referrer-Policy: no-referrer
Cross-Origin-Opener-Policy: same-origin
Cross-Origin-Resource-Policy: same-origin
Cache-Control: no-store
Connection: close
"""


def read_page() -> tuple[str, str]:
    """Return the page, and its policy: only its own style and script run, and it connects only to its server."""
    page = files("turngate.serve").joinpath("page.html").read_text(encoding="utf-8")
    hashes = {}
    for name in ("style", "script"):
        (text,) = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        hashes[name] = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    rules = [f"{name}-src 'sha256-{value}'" for name, value in hashes.items()]
    rules += ["connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    return page, "; ".join(["default-src 'none'", *rules])


def make_file(views: Views) -> str:
    """Return one HTML file with the page and all that it shows."""
    page, policy = read_page()
    meta = f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    data = page_json({"made": time.time(), **dict(views.export())})
    return page.replace('<meta charset="utf-8">', meta, 1).replace(f"{_DATA}null", _DATA + data, 1)


class _Refused(Exception):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Server:
    """Serves `views`, and `version`, for which a page asks again and again: it changes when the history does."""

    def __init__(self, views: Views) -> None:
        self._views, self._token = views, secrets.token_urlsafe(24)
        self._page, policy = read_page()
        self._policy = f"{policy}; frame-ancestors 'none'"
        self._strangers = dict[asyncio.StreamWriter, None]()  # in the order in which they came
        self._slots = asyncio.Semaphore(MAX_VIEWS)
        self._hosts = tuple[str, ...]()

    async def run(self, port: int, on_open: Callable[[str], None]) -> None:
        """Serve until this task is cancelled; `on_open` gets the address. Raises UsageError if the port is taken."""
        try:
            server = await asyncio.start_server(self._handle, "127.0.0.1", port, limit=MAX_HEAD_BYTES)
        except OSError as error:
            raise UsageError(f"--port {port}: {error.strerror}; choose another one") from None
        async with server:
            port = server.sockets[0].getsockname()[1]
            self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
            on_open(f"http://{self._hosts[0]}/#token={self._token}")
            await self._watch()

    async def _watch(self) -> None:
        """Read what changes; more sessions make the intervals longer."""
        history = self._views.history
        while True:
            begun = time.monotonic()
            await run_in_thread(_read_some, history)
            await asyncio.sleep(0 if history.unread else max(POLL_S, 5 * (time.monotonic() - begun)))

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._strangers[writer] = None
        if len(self._strangers) > MAX_STRANGERS:
            next(iter(self._strangers)).transport.abort()
        try:
            try:
                await self._answer(await _read_head(reader), writer)
            except _Refused as refused:
                await self._send(writer, refused.status, f"{refused}\n")
        except (OSError, EOFError, TimeoutError):  # the client has left, or is too slow
            writer.transport.abort()
        except asyncio.CancelledError:  # the server ends; asyncio would print it as an error if it went on
            writer.transport.abort()
        finally:
            writer.close()
            self._strangers.pop(writer, None)

    async def _answer(self, head: bytes, writer: asyncio.StreamWriter) -> None:
        method, target, headers = _parse(head)
        if headers.get("host") not in self._hosts:
            raise _Refused(403, "this address is not that of the server")
        if headers.get("origin", f"http://{headers['host']}") != f"http://{headers['host']}":
            raise _Refused(403, "another site asks")
        if method != "GET":
            raise _Refused(405, "only GET")
        path, _, text = target.partition("?")
        if path == "/":
            return await self._send(writer, 200, self._page, "text/html")
        given, wanted = headers.get("authorization", ""), f"Bearer {self._token}"
        if not secrets.compare_digest(given.encode(), wanted.encode()):
            raise _Refused(403, "open the address that `turngate serve` printed last")
        try:
            query = dict(parse_qsl(text, max_num_fields=8))
        except ValueError:
            raise _Refused(400, "there are too many fields") from None
        self._strangers.pop(writer, None)
        if path == "/version":
            return await self._send(writer, 200, str(self._views.history.version), "application/json")
        try:
            async with self._slots:
                name = path.removeprefix("/data/")
                view = await run_in_thread(lambda: page_json(self._views.view(name, query)))
        except (LookupError, ValueError):
            raise _Refused(404, "there is no such view") from None
        return await self._send(writer, 200, view, "application/json")

    async def _send(
        self, writer: asyncio.StreamWriter, status: int, body: str, kind: str = "text/plain"
    ) -> None:
        data = body.encode("utf-8", "replace")
        lines = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\nContent-Type: {kind}; charset=utf-8\n{_HEADERS}"
        )
        head = f"{lines}Content-Security-Policy: {self._policy}\nContent-Length: {len(data)}\n\n"
        writer.write(head.replace("\n", "\r\n").encode() + data)
        async with asyncio.timeout(SEND_TIMEOUT_S):
            await writer.drain()


def _read_some(history: History) -> None:
    """Read for a moment what has changed, the newest first: what changes meanwhile does not wait for the rest."""
    end = time.monotonic() + READ_S
    for _ in history.refresh():
        if time.monotonic() > end:
            return


async def _read_head(reader: asyncio.StreamReader) -> bytes:
    try:
        async with asyncio.timeout(HEAD_TIMEOUT_S):
            return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise _Refused(431, "the request is too large") from None


def _parse(head: bytes) -> tuple[str, str, dict[str, str]]:
    first, *lines = head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")
    found = re.fullmatch(r"([A-Z]+) (/[!-~]*) HTTP/1\.[01]", first)
    pairs = [line.partition(":") for line in lines]
    headers = {name.lower(): value.strip(" \t") for name, _, value in pairs}
    is_right = len(headers) == len(pairs) and all(re.fullmatch(r"[!-9;-~]+", name) for name in headers)
    if not found or not is_right:
        raise _Refused(400, "this is not a request")
    return found[1], found[2], headers
