"""A program between an editor and an agent that passes bytes on, and does nothing else: the floor of `turngate acp`."""

import asyncio
import sys
from asyncio import StreamReader, StreamWriter
from io import FileIO

READ_BYTES = 1024 * 1024


async def pass_on(reader: StreamReader, writer: StreamWriter) -> None:
    while data := await reader.read(READ_BYTES):
        writer.write(data)
        await writer.drain()


async def main() -> None:
    loop, pipe = asyncio.get_running_loop(), asyncio.subprocess.PIPE
    agent = await asyncio.create_subprocess_exec(
        *sys.argv[1:], stdin=pipe, stdout=pipe, limit=READ_BYTES, pipesize=READ_BYTES
    )
    assert agent.stdin
    assert agent.stdout
    reader = StreamReader(limit=READ_BYTES)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), FileIO(0, closefd=False))
    stdout = FileIO(1, "wb", closefd=False)
    transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdout)
    writer = StreamWriter(transport, protocol, None, loop)
    passing = pass_on(reader, agent.stdin), pass_on(agent.stdout, writer)
    await asyncio.wait([asyncio.create_task(work) for work in passing], return_when=asyncio.FIRST_COMPLETED)
    agent.kill()
    await agent.wait()


if __name__ == "__main__":
    asyncio.run(main())
