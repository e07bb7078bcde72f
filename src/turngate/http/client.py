"""HttpClient: send POST requests to one server and read the responses as they arrive.

A connection is kept for the next request. h11 reads and writes the protocol.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import h11

from turngate.http.connection import (
    HttpError,
    HttpTimeout,
    Server,
    Streams,
    Timeouts,
    connect,
    describe_os_error,
)

READ_BYTES = 64 * 1024
MAX_HEAD_BYTES = 100 * 1024


class Connection:
    """One connection and the state of its protocol."""

    def __init__(self, streams: Streams, server: Server, timeouts: Timeouts) -> None:
        self.streams, self.server, self.timeouts = streams, server, timeouts
        self.protocol = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD_BYTES)
        self.used = False  # by an earlier request
        self.beginning = b""  # the first bytes of the response to this request

    @property
    def has_response(self) -> bool:
        return bool(self.beginning)

    @property
    def is_open(self) -> bool:
        return not (self.streams.reader.at_eof() or self.streams.writer.is_closing())

    async def exchange(self, path: str, headers: Mapping[str, str], body: bytes) -> h11.Response:
        """Send a request and return the head of its response."""
        if proxy := self.streams.proxy:
            path = f"{self.server.scheme}://{self.server.name}{path}"
            login = {"Proxy-Authorization": proxy.authorization} if proxy.authorization else {}
            headers = {**headers, **login}
        request = h11.Request(method="POST", target=path, headers=list(headers.items()))
        self.beginning = b""
        parts = (request, h11.Data(body), h11.EndOfMessage())
        try:
            self.streams.writer.write(b"".join(self.protocol.send(part) or b"" for part in parts))
            await self.streams.writer.drain()
        except OSError as error:
            raise self._lost(error) from None
        while isinstance(event := await self.next_event(), h11.InformationalResponse):
            pass  # 100 Continue, 103 Early Hints
        if not isinstance(event, h11.Response):
            raise HttpError(f"{self.server.name} closed the connection without an answer")
        return event

    async def next_event(self) -> h11.Event:
        data = None
        try:
            while not isinstance(event := self.protocol.next_event(), h11.Event):
                data = await self._read()
                self.protocol.receive_data(data)
        except h11.RemoteProtocolError:
            raise HttpError(self._describe_end(data)) from None
        except OSError as error:
            raise self._lost(error) from None
        return event

    def _lost(self, error: OSError) -> HttpError:
        return HttpError(f"{self.server.name} broke off the connection: {describe_os_error(error)}")

    def _describe_end(self, data: bytes | None) -> str:
        """Return why a response is not complete; without data the server closed the connection."""
        if data or not b"HTTP/".startswith(self.beginning):
            return f"{self.server.name} does not speak HTTP"
        if self.has_response:
            return f"{self.server.name} closed the connection in the middle of its answer"
        return f"{self.server.name} closed the connection without an answer"

    async def _read(self) -> bytes:
        seconds = self.timeouts.silence if self.has_response else self.timeouts.first_byte
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                data = await self.streams.reader.read(READ_BYTES)
        except TimeoutError:
            if not limit.expired():  # the operating system's
                raise
            where = "in the middle of its answer" if self.has_response else "after the request"
            raise HttpTimeout(f"nothing came for {seconds:g} s {where}") from None
        self.beginning = self.beginning or data[:5]
        return data

    def finish(self) -> bool:
        """Prepare for the next request. Return False if the connection cannot be used again."""
        if self.protocol.our_state is not h11.DONE or self.protocol.their_state is not h11.DONE:
            return False
        self.protocol.start_next_cycle()
        self.used = True
        return self.is_open

    def close(self) -> None:
        self.streams.writer.transport.abort()


class Response:
    """The head of a response, and its body as an asynchronous iterator of bytes."""

    def __init__(self, connection: Connection, head: h11.Response) -> None:
        self._connection = connection
        self.status = head.status_code
        self.headers = {name.decode("ascii").lower(): value.decode("latin-1") for name, value in head.headers}

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while True:
            event = await self._connection.next_event()
            if isinstance(event, h11.Data):
                yield bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return

    async def read(self, limit: int) -> bytes:
        """Return the beginning of the body, at most `limit` bytes."""
        body = bytearray()
        async for piece in self:
            body += piece
            if len(body) >= limit:
                break
        return bytes(body[:limit])


class HttpClient:
    """Requests to one server. It belongs to the event loop in which it was first used."""

    def __init__(self, url: str, environ: Mapping[str, str], timeouts: Timeouts | None = None) -> None:
        """Raises ValueError if the URL names no server."""
        self.server = Server.of(url)
        self._environ = environ
        self._timeouts = timeouts or Timeouts()
        self._idle: list[Connection] = []
        self._preparing: asyncio.Task[None] | None = None

    def prepare(self) -> None:
        """Begin to open a connection for the first request."""
        if self._preparing is None and not self._idle:
            self._preparing = asyncio.create_task(self._prepare())

    async def _prepare(self) -> None:
        with suppress(HttpError):  # reported by the request that needs the connection
            self._idle.append(await self._open())

    @asynccontextmanager
    async def post(self, path: str, headers: Mapping[str, str], body: bytes) -> AsyncIterator[Response]:
        """Send a request; yield its response. Raises HttpError, also while the body is read."""
        fields = {"Host": self.server.name, "Content-Length": str(len(body)), **headers}
        connection = await self._take()
        try:
            try:
                head = await connection.exchange(path, fields, body)
            except HttpError as error:  # the server may have closed a connection that was kept
                if isinstance(error, HttpTimeout) or not connection.used or connection.has_response:
                    raise
                connection.close()
                connection = await self._open()
                head = await connection.exchange(path, fields, body)
            yield Response(connection, head)
            if connection.finish():
                self._idle.append(connection)
                return
            connection.close()
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        """Close idle connections; the next request opens a new one."""
        if self._preparing is not None:
            self._preparing.cancel()
            self._preparing = None
        while self._idle:
            self._idle.pop().close()

    async def _take(self) -> Connection:
        if self._preparing is not None:
            await asyncio.wait({self._preparing})
        while self._idle:
            connection = self._idle.pop()
            if connection.is_open:
                return connection
            connection.close()
        return await self._open()

    async def _open(self) -> Connection:
        streams = await connect(self.server, self._environ, seconds=self._timeouts.connect)
        return Connection(streams, self.server, self._timeouts)
