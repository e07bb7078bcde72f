"""A proxy in front of a server on a Unix socket, which cuts all connections when it is told to."""

import asyncio
import contextlib
import threading
from pathlib import Path
from typing import Self

BLOCK_BYTES = 65536


class CuttingProxy:
    """Passes bytes between clients of `own` and the server at `target` until `cut` aborts what is open."""

    def __init__(self, own: Path, target: Path) -> None:
        self._own, self._target = own, target
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._is_ready = threading.Event()
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._serve(),))

    def __enter__(self) -> Self:
        self._thread.start()
        self._is_ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()

    def cut(self) -> int:
        """Abort the connections, in the middle of what they pass; return how many there were."""
        count = len(self._writers) // 2
        self._loop.call_soon_threadsafe(self._abort)
        return count

    def _abort(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self) -> None:
        self._ended = asyncio.Event()
        async with await asyncio.start_unix_server(self._connect, self._own):
            self._is_ready.set()
            await self._ended.wait()
            self._abort()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            server_reader, server = await asyncio.open_unix_connection(self._target)
        except OSError:  # it is down
            writer.transport.abort()
            return
        self._writers |= {writer, server}
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        await asyncio.gather(self._pass(reader, server), self._pass(server_reader, writer))
        self._writers -= {writer, server}

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while block := await reader.read(BLOCK_BYTES):
                writer.write(block)
                await writer.drain()
        writer.close()
