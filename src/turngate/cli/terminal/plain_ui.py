"""A conversation in plain lines, for pipes, files and terminals without prompt_toolkit.

Answers go to stdout and everything else to stderr, as with `-p`. No escape codes are printed.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from turngate.aio.threads import run_in_thread
from turngate.cli.terminal.format import strip_controls
from turngate.cli.terminal.ui import Activity, InputHandler, TextStyle

STDIN = 0
READ_BYTES = 65536


class PlainUI:
    def __init__(self) -> None:
        self.is_interactive = os.isatty(STDIN)
        self._line_is_open = False  # the answer has not ended its line
        self._input_expected = asyncio.Event()

    def print(self, text: str, style: TextStyle = "plain") -> None:  # noqa: ARG002 # plain text has no styles
        self.end_stream()
        print(strip_controls(text), file=sys.stderr, flush=True)

    def stream(self, text: str) -> None:
        sys.stdout.write(strip_controls(text))
        sys.stdout.flush()
        self._line_is_open = not text.endswith("\n")

    def end_stream(self) -> None:
        if self._line_is_open:
            self._line_is_open = False
            print(flush=True)

    def set_activity(self, activity: Activity | None) -> None:
        pass

    def ask(self, question: str | None) -> None:
        if question:
            self.print(question)
            self._input_expected.set()

    def prompt(self) -> None:
        if self.is_interactive:
            self.end_stream()
            print("> ", end="", file=sys.stderr, flush=True)
        self._input_expected.set()

    async def listen(self, handler: InputHandler) -> None:
        """Read messages; from a pipe each one waits for the answer to the one before it."""
        lines = _read_lines()
        while True:
            if not self.is_interactive:
                await self._input_expected.wait()
                self._input_expected.clear()
            message = await _read_message(lines)
            if message is None:
                handler.on_eof()
                return
            handler.on_message(message)


async def _read_message(lines: AsyncIterator[str]) -> str | None:
    """Return the next message; a backslash at the end of a line joins the next line to it."""
    parts: list[str] = []
    async for line in lines:
        if line.endswith("\\"):
            parts.append(line[:-1])
        elif parts or line.strip():
            return "\n".join([*parts, line])
    return "\n".join(parts) if parts else None


async def _read_lines() -> AsyncIterator[str]:
    """Yield lines from the descriptor: a thread that blocks in sys.stdin would delay the exit."""
    rest = b""
    while True:
        try:
            data = await run_in_thread(os.read, STDIN, READ_BYTES)
        except OSError:  # stdin is closed, or its terminal is gone
            data = b""
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield line.decode("utf-8", "replace").rstrip("\r")
        if not data:
            if rest:
                yield rest.decode("utf-8", "replace")
            return
