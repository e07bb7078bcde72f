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
from turngate.cli.console.conversation_text import parse_permission
from turngate.cli.console.ui import Activity, InputHandler, Menu, TextStyle
from turngate.core.text import strip_controls

STDIN = 0
READ_BYTES = 65536
HOOK_WAIT_S = 1.0  # before it is printed which hooks are running
CTRL_D = b"\x04"  # typed without line mode, it is a character and does not end the input
LOCAL_FLAGS = 3  # index in the list of termios


class PlainUI:
    def __init__(self) -> None:
        self.is_interactive = os.isatty(STDIN)
        self._line_is_open = False  # the answer has not ended its line
        self._input_expected = asyncio.Event()
        self._keys = SingleKeys()
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
            self._timer = asyncio.get_running_loop().call_later(HOOK_WAIT_S, self._print_wait)
        elif not self._waiting_for and self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _print_wait(self) -> None:
        self.print(self._waiting_for)

    def ask(self, question: str | None) -> None:
        if question is None:
            self._keys.stop()
            return
        self.print(question)
        self._input_expected.set()
        if self.is_interactive:
            self._keys.start()

    def show_menu(self, menu: Menu | None) -> None:
        """Print the rows with their numbers, and ask for a line."""
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
        rest, word, ended = b"", "", False
        while not ended:
            data = await _read_input()
            ended = not data
            if self.is_interactive and CTRL_D in data:
                data, ended = data.partition(CTRL_D)[0], True
            if self._keys.active:
                if key := data.decode("utf-8", "replace").strip()[:1]:
                    print(file=sys.stderr, flush=True)  # the terminal has printed the key
                    word = (parse_permission(key) or " ")[1:]
                    yield key
                continue
            *lines, rest = (rest + data).split(b"\n")
            for line in map(_decode, lines):
                if line.strip() != word or not word:  # `es` after `y` belongs to the answer
                    yield line
                word = ""
        if rest:
            yield _decode(rest)


async def _read_input() -> bytes:
    try:
        return await run_in_thread(os.read, STDIN, READ_BYTES)
    except OSError:  # stdin is closed, or its terminal is gone
        return b""


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
                self._before = termios.tcgetattr(STDIN)
                # After Ctrl-Z and `fg` the terminal has the mode of the shell.
                asyncio.get_running_loop().add_signal_handler(signal.SIGCONT, self._resume)
                # What was typed before the question is not an answer to it.
                self._set_mode(termios.TCSAFLUSH)

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
