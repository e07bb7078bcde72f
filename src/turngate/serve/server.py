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
from turngate.serve.views import Views, page_json

MAX_HEAD_BYTES = 16 * 1024
HEAD_TIMEOUT_S = 5.0
SEND_TIMEOUT_S = 20.0
MAX_STRANGERS = 64  # connections that have not shown the token yet
MAX_VIEWS = 4  # that are made at the same time
POLL_S = 0.3
READ_S = 0.5
_DATA = '<script type="application/json" id="data">'  # what follows in the page: null
_TEXT, _JSON = "text/plain", "application/json"
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
    rules = ["default-src 'none'"]
    for name in ("style", "script"):
        (text,) = re.findall(f"<{name}>(.*?)</{name}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        rules.append(f"{name}-src 'sha256-{digest}'")
    return page, "; ".join(
        [*rules, "connect-src 'self'", "img-src data:", "base-uri 'none'", "form-action 'none'"]
    )


def make_file(views: Views) -> str:
    """Return one HTML file with the page and all that it shows."""
    page, policy = read_page()
    meta = f'<meta charset="utf-8">\n<meta http-equiv="Content-Security-Policy" content="{policy}">'
    data = page_json({"made": time.time(), **dict(views.export())})
    return page.replace('<meta charset="utf-8">', meta, 1).replace(f"{_DATA}null", _DATA + data, 1)


class Server:
    """Serves `views`, and `version`, for which a page asks again and again: it changes when the history does."""

    def __init__(self, views: Views) -> None:
        self._views, self._token = views, secrets.token_urlsafe(24)
        self._page, self._policy = read_page()
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
            while True:  # more sessions make the intervals longer
                begun = time.monotonic()
                await run_in_thread(self._read_some)
                seconds = max(POLL_S, 5 * (time.monotonic() - begun))
                await asyncio.sleep(0 if self._views.history.unread else seconds)

    def _read_some(self) -> None:
        """Read for a moment what has changed, the newest first: what changes meanwhile does not wait for the rest."""
        end = time.monotonic() + READ_S
        for _ in self._views.history.refresh():
            if time.monotonic() > end:
                return

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._strangers[writer] = None
        if len(self._strangers) > MAX_STRANGERS:
            next(iter(self._strangers)).transport.abort()
        try:
            status, kind, body = await self._answer(reader, writer)
            data = body.encode("utf-8", "replace")
            head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\nContent-Type: {kind}; charset=utf-8\n"
            head += f"{_HEADERS}Content-Security-Policy: {self._policy}; frame-ancestors 'none'\n"
            head += f"Content-Length: {len(data)}\n\n"
            writer.write(head.replace("\n", "\r\n").encode() + data)
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await writer.drain()
        # The client has left, or is too slow; or the server ends, which asyncio would print as an error.
        except (OSError, EOFError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            writer.close()
            self._strangers.pop(writer, None)

    async def _answer(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> tuple[int, str, str]:
        """Return the status, the type and the body of the answer to a request."""
        try:
            async with asyncio.timeout(HEAD_TIMEOUT_S):
                head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError:
            return 431, _TEXT, "the request is too large\n"
        request = _parse(head.decode("latin-1").removesuffix("\r\n\r\n"))
        if request is None:
            return 400, _TEXT, "this is not a request\n"
        method, path, query, headers = request
        if (host := headers.get("host")) not in self._hosts:
            return 403, _TEXT, "this address is not that of the server\n"
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return 403, _TEXT, "another site asks\n"
        if method != "GET":
            return 405, _TEXT, "only GET\n"
        if path == "/":
            return 200, "text/html", self._page
        given, wanted = headers.get("authorization", ""), f"Bearer {self._token}"
        if not secrets.compare_digest(given.encode(), wanted.encode()):
            return 403, _TEXT, "open the address that `turngate serve` printed last\n"
        self._strangers.pop(writer, None)
        if path == "/version":
            return 200, _JSON, str(self._views.history.version)
        try:
            async with self._slots:
                name = path.removeprefix("/data/")
                return 200, _JSON, await run_in_thread(lambda: page_json(self._views.view(name, query)))
        except (LookupError, ValueError):
            return 404, _TEXT, "there is no such view\n"


def _parse(head: str) -> tuple[str, str, dict[str, str], dict[str, str]] | None:
    """Return the method, the path, the query and the headers of a request; None if it is none."""
    first, *lines = head.split("\r\n")
    found = re.fullmatch(r"([A-Z]+) (/[!-~]*) HTTP/1\.[01]", first)
    pairs = [line.partition(":") for line in lines]
    headers = {name.lower(): value.strip(" \t") for name, _, value in pairs}
    is_right = len(headers) == len(pairs) and all(re.fullmatch(r"[!-9;-~]+", name) for name in headers)
    if not found or not is_right:
        return None
    path, _, text = found[2].partition("?")
    try:
        return found[1], path, dict(parse_qsl(text, max_num_fields=8)), headers
    except ValueError:  # too many fields
        return None
