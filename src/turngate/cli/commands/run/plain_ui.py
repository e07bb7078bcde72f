"""A conversation in plain lines, for pipes, files and terminals without prompt_toolkit.

Answers go to stdout and everything else to stderr, as with `-p`. No escape codes are printed.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator

from turngate.aio.threads import run_in_thread
from turngate.cli.console.questions import discard_typed_input
from turngate.cli.console.ui import Activity, InputHandler, Menu, TextStyle
from turngate.core.text import strip_controls

STDIN = 0
READ_BYTES = 65536
HOOK_WAIT_S = 1.0  # before it is printed which hooks are running


class PlainUI:
    def __init__(self) -> None:
        self.is_interactive = os.isatty(STDIN)
        self._line_is_open = False  # the answer has not ended its line
        self._input_expected = asyncio.Event()
        self._waiting_for = ""  # hooks
        self._timer: asyncio.TimerHandle | None = None  # until `_waiting_for` is printed

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
        """Print at a terminal which hooks take more than a second, once per wait."""
        self._waiting_for = f"{activity.label}{activity.limit} …" if activity and activity.limit else ""
        if self._waiting_for and self._timer is None and self.is_interactive:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(HOOK_WAIT_S, lambda: self.print(self._waiting_for))
        elif not self._waiting_for and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def set_summary(self, model: str, figures: str) -> None:
        """Do nothing: the end of each turn has its figures."""

    def ask(self, question: str | None) -> None:
        if question is not None:
            if self.is_interactive:
                discard_typed_input()
            self.print(question)
            self._input_expected.set()

    def show_menu(self, menu: Menu | None) -> None:
        if menu is not None:
            self.print(menu.title)
            for number, (text, _) in enumerate(menu.rows, 1):
                self.print(f"{number:>3}  {text}")
            self.print(menu.words)
            self.prompt()

    def prompt(self) -> None:
        if self.is_interactive:
            self.end_stream()
            print("> ", end="", file=sys.stderr, flush=True)
        self._input_expected.set()

    async def listen(self, handler: InputHandler) -> None:
        """Read messages; from a pipe each one waits for the answer to the one before it."""
        lines = self._read_lines()
        while True:
            if not self.is_interactive:
                await self._input_expected.wait()
                self._input_expected.clear()
            message = await _read_message(lines)
            if message is None:
                handler.on_eof()
                return
            handler.on_message(message)

    async def _read_lines(self) -> AsyncIterator[str]:
        """Yield lines from the descriptor: a thread that blocks in sys.stdin would delay the exit."""
        rest = b""
        while data := await _read_input():
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                yield _decode(line)
        if rest:
            yield _decode(rest)


async def _read_input() -> bytes:
    try:
        return await run_in_thread(os.read, STDIN, READ_BYTES)
    except OSError:  # stdin is closed, or its terminal is gone
        return b""


def _decode(line: bytes) -> str:
    return line.decode("utf-8", "replace").rstrip("\r")


async def _read_message(lines: AsyncIterator[str]) -> str | None:
    """Return the next message; a backslash at the end of a line joins the next line to it."""
    parts: list[str] = []
    async for line in lines:
        if line.endswith("\\"):
            parts.append(line[:-1])
        elif parts or line.strip():
            return "\n".join([*parts, line])
    return "\n".join(parts) if parts else None
