"""A conversation in plain lines: for pipes and files, and for terminals without prompt_toolkit.

The answers go to stdout and everything else to stderr, as with `-p`; there are no escape codes.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from turngate.aio.threads import run_in_thread
from turngate.cli.terminal.format import clean
from turngate.cli.terminal.ui import Activity, InputHandler, Look

STDIN = 0


class Plain:
    def __init__(self) -> None:
        self.for_people = os.isatty(STDIN)
        self._open_line = False  # a piece of an answer stands on it
        self._wanted = asyncio.Event()

    def say(self, text: str, look: Look = "plain") -> None:  # noqa: ARG002 - plain is plain
        self.end_stream()
        print(clean(text), file=sys.stderr, flush=True)

    def stream(self, text: str) -> None:
        sys.stdout.write(clean(text))
        sys.stdout.flush()
        self._open_line = not text.endswith("\n")

    def end_stream(self) -> None:
        if self._open_line:
            self._open_line = False
            print(flush=True)

    def doing(self, doing: Activity | None) -> None:
        pass

    def ask(self, question: str | None) -> None:
        if question:
            self.say(question)
            self._wanted.set()

    def ready(self) -> None:
        if self.for_people:
            self.end_stream()
            print("> ", end="", file=sys.stderr, flush=True)
        self._wanted.set()

    async def listen(self, ear: InputHandler) -> None:
        """From a pipe each line waits until the one before is answered; a person may type ahead."""
        lines = _lines()
        while True:
            if not self.for_people:
                await self._wanted.wait()
                self._wanted.clear()
            message = await _message(lines)
            if message is None:
                ear.end()
                return
            ear.hear(message)


async def _message(lines: AsyncIterator[str]) -> str | None:
    """One message; a backslash at the end of a line joins the next one to it."""
    said: list[str] = []
    async for line in lines:
        if line.endswith("\\"):
            said.append(line[:-1])
        elif said or line.strip():
            return "\n".join([*said, line])
    return "\n".join(said) if said else None


async def _lines() -> AsyncIterator[str]:
    """Read without Python's own stdin: a thread that waits in it holds up the end of the program."""
    rest = b""
    while True:
        try:
            data = await run_in_thread(os.read, STDIN, 65536)
        except OSError:  # there is no input, or its terminal has gone
            data = b""
        *whole, rest = (rest + data).split(b"\n")
        for line in whole:
            yield line.decode("utf-8", "replace").rstrip("\r")
        if not data:
            if rest:
                yield rest.decode("utf-8", "replace")
            return
