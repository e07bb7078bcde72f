"""A conversation in plain lines, for pipes, files and terminals without prompt_toolkit.

Answers go to stdout and everything else to stderr, as with `-p`. No escape codes are printed.
"""

import asyncio
import contextlib
import os
import signal
import sys
import termios
from collections.abc import AsyncIterator
from typing import Any

from turngate.aio.threads import run_in_thread
from turngate.cli.terminal.format import parse_permission, strip_controls
from turngate.cli.terminal.ui import Activity, InputHandler, TextStyle

STDIN = 0
READ_BYTES = 65536
CTRL_D = b"\x04"  # without line mode it does not end the input
LOCAL_FLAGS = 3  # index in the list of termios


class PlainUI:
    def __init__(self) -> None:
        self.is_interactive = os.isatty(STDIN)
        self._line_is_open = False  # the answer has not ended its line
        self._input_expected = asyncio.Event()
        self._keys = SingleKeys()

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
        if question is None:
            self._keys.stop()
            return
        self.print(question)
        self._input_expected.set()
        if self.is_interactive:
            self._keys.start()

    def prompt(self) -> None:
        if self.is_interactive:
            self.end_stream()
            print("> ", end="", file=sys.stderr, flush=True)
        self._input_expected.set()

    async def listen(self, handler: InputHandler) -> None:
        """Read messages; from a pipe each one waits for the answer to the one before it."""
        lines = self._read_lines()
        try:
            while True:
                if not self.is_interactive:
                    await self._input_expected.wait()
                    self._input_expected.clear()
                message = await _read_message(lines)
                if message is None:
                    handler.on_eof()
                    return
                handler.on_message(message)
        finally:
            self._keys.stop()

    async def _read_lines(self) -> AsyncIterator[str]:
        """Yield lines from the descriptor: a thread that blocks in sys.stdin would delay the exit.

        While a question waits for a single key, that key is a line.
        """
        rest, word = b"", ""
        while True:
            try:
                data = await run_in_thread(os.read, STDIN, READ_BYTES)
            except OSError:  # stdin is closed, or its terminal is gone
                data = b""
            if self._keys.active and data:
                key = data.decode("utf-8", "replace").strip()[:1]
                if data.startswith(CTRL_D):
                    return
                if key:
                    print(file=sys.stderr, flush=True)  # the terminal has printed the key
                    word = (parse_permission(key) or " ")[1:]
                    yield key
                continue
            *lines, rest = (rest + data).split(b"\n")
            for line in map(_decode, lines):
                if line.strip() != word or not word:  # `es` after `y` belongs to the answer
                    yield line
                word = ""
            if not data:
                if rest:
                    yield _decode(rest)
                return


class SingleKeys:
    """The terminal passes on each key without waiting for Enter, from `start` to `stop`."""

    def __init__(self) -> None:
        self._before: list[Any] | None = None

    @property
    def active(self) -> bool:
        return self._before is not None

    def start(self) -> None:
        if self._before is None:
            with contextlib.suppress(OSError, termios.error):  # stdin is not a terminal after all
                before = termios.tcgetattr(STDIN)
                # What was typed before the question is not an answer to it.
                self._set_mode(termios.TCSAFLUSH)
                self._before = before
                # After Ctrl-Z and `fg` the terminal has the mode of the shell.
                asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, self._resume)

    def _resume(self) -> None:
        with contextlib.suppress(OSError, termios.error):  # the terminal is gone
            self._set_mode(termios.TCSANOW)

    @staticmethod
    def _set_mode(when: int) -> None:
        mode = termios.tcgetattr(STDIN)
        mode[LOCAL_FLAGS] &= ~termios.ICANON
        termios.tcsetattr(STDIN, when, mode)

    def stop(self) -> None:
        before, self._before = self._before, None
        if before is not None:
            asyncio.get_running_loop().remove_signal_handler(signal.SIGCONT)
            with contextlib.suppress(OSError, termios.error):  # the terminal is gone
                termios.tcsetattr(STDIN, termios.TCSADRAIN, before)


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
