"""The line on stderr that says what a command waits for."""

import contextlib
import os
import shutil
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence

from turngate.cli.console.streams import own_sequence
from turngate.core.text import strip_controls, truncate

CLEAR_LINE = "\r\033[K"
UPDATE_INTERVAL_S = 1.0
MIN_FURTHER_CHARS = 12


class ProgressLine:
    """Show what a command waits for, from the first second on.

    At a terminal one line is rewritten every second. Elsewhere a line is printed once per wait, and again every
    `repeat_s` seconds if that is given. `idle` is shown at a terminal while `waiting_for` returns nothing.
    """

    def __init__(
        self,
        waiting_for: Callable[[], Sequence[str]],
        *,
        idle: str = "",
        hint: str = "",
        repeat_s: float | None = None,
        last_line: Callable[[], str] = str,
    ) -> None:
        """`last_line`: what was printed last by what the command waits for; shown at a terminal."""
        self._last_line = last_line
        self._waiting_for = waiting_for
        self._idle = idle
        self._hint = hint
        self._repeat_s = repeat_s
        self._is_terminal = _can_rewrite_lines()
        self._visible = False

    @contextlib.asynccontextmanager
    async def shown(self) -> AsyncIterator[None]:
        """Update the line in a task of its own, and remove it at the end."""
        import asyncio  # noqa: PLC0415 # lazy: --help of a command does not need it

        task = asyncio.create_task(self.run())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def run(self) -> None:
        """Update the line until this task is cancelled."""
        import asyncio  # noqa: PLC0415 # lazy: as above

        was_waiting, seconds = False, 0
        try:
            while True:
                await asyncio.sleep(UPDATE_INTERVAL_S)
                names = strip_controls(", ".join(self._waiting_for()))
                seconds = seconds + 1 if was_waiting == bool(names) else 1
                was_waiting = bool(names)
                if self._is_terminal:
                    self.clear()
                    if text := f"waiting for {names}" if names else self._idle:
                        _rewrite_line(f"{text} … {seconds} s{self._hint}", strip_controls(self._last_line()))
                        self._visible = True
                elif names and (seconds == 1 or (self._repeat_s and seconds % self._repeat_s == 0)):
                    print(f"waiting for {names} …", file=sys.stderr, flush=True)
        finally:
            self.clear()

    def print(self, text: str) -> None:
        """Print a line of its own on stderr, in place of the progress line."""
        self.clear()
        print(text, file=sys.stderr, flush=True)

    def clear(self) -> None:
        if self._visible:
            _clear_line()
            self._visible = False


@contextlib.contextmanager
def show_if_slow(text: str | Callable[[], str]) -> Iterator[None]:
    """Show at a terminal what a command does if it takes more than a second; the line is removed afterward.

    A function is asked every second.
    """
    if not _can_rewrite_lines():
        yield
        return
    done = threading.Event()

    def count_seconds() -> None:
        seconds = 0
        while not done.wait(UPDATE_INTERVAL_S):
            seconds += 1
            _rewrite_line(f"{text if isinstance(text, str) else text()} … {seconds} s")
        if seconds:
            _clear_line()

    thread = threading.Thread(target=count_seconds, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def print_above_progress(text: str) -> None:
    """Print a line on stderr; the line of `show_if_slow`, if there is one, is written again below it."""
    print((CLEAR_LINE if _can_rewrite_lines() else "") + text, file=sys.stderr, flush=True)


def _rewrite_line(text: str, further: str = "") -> None:
    """Write the end of the text, and as much of the further one as there is room for."""
    columns = max(20, shutil.get_terminal_size().columns - 1)
    if further and len(text) + MIN_FURTHER_CHARS < columns:
        text += f" · {truncate(further.expandtabs(4), columns - len(text) - 3)}"
    print(own_sequence(CLEAR_LINE, sys.stderr) + text[-columns:], end="", file=sys.stderr, flush=True)


def _clear_line() -> None:
    print(own_sequence(CLEAR_LINE, sys.stderr), end="", file=sys.stderr, flush=True)


def _can_rewrite_lines() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
