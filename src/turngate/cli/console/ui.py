"""The interface between a conversation and the terminal it runs on."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

from turngate._frozen_dataclass import frozen

SLOW_S = 1.0  # what usually takes less is shown after this time

TextStyle = Literal["plain", "dim", "notice", "alert", "user", "good", "bad"]


@frozen
class Activity:
    """What runs now, for the status line."""

    label: str
    since: float  # time.monotonic()
    queued: int = 0  # messages typed while the agent works
    limit: str = ""  # of hooks: how long they may take
    output: Callable[[], Sequence[str]] = tuple  # of hooks: the last line that each of them has printed


MenuKey = Literal["up", "down", "enter", "y", "n", "q"]


@frozen
class Menu:
    """Rows of which one is selected by keys, or named by its number where there are only lines."""

    title: str
    rows: tuple[tuple[str, TextStyle], ...]
    selected: int
    keys: str  # what they do
    words: str  # what a line can say instead


class InputHandler(Protocol):
    """What a terminal calls when the user types or presses a key."""

    @property
    def is_busy(self) -> bool: ...

    def on_message(self, text: str) -> None:
        """Handle a complete message."""

    def on_menu_key(self, key: MenuKey) -> None:
        """Handle a key while a menu is shown."""

    def on_ctrl_c(self) -> None: ...

    def on_eof(self) -> None:
        """Handle the end of the input."""

    def interrupt(self) -> None: ...

    def quit(self, code: int = 0) -> None: ...


class TerminalUI(Protocol):
    """A terminal: `ScreenUI` with a status line and an editor, or `PlainUI` with plain lines."""

    is_interactive: bool  # a person reads and types

    def print(self, text: str, style: TextStyle = "plain") -> None:
        """Print complete lines."""

    def stream(self, text: str) -> None:
        """Print a part of the agent's answer; the next `print` starts on a new line."""

    def end_stream(self) -> None: ...

    def set_activity(self, activity: Activity | None) -> None: ...

    def set_summary(self, model: str, figures: str) -> None:
        """Show the model, and tokens, cost and gates, where there is a status line."""

    def ask(self, question: str | None) -> None:
        """Show a question that the next line answers; None withdraws it."""

    def show_menu(self, menu: Menu | None) -> None:
        """Show a menu, or its next state; None removes it. Without keys, the next line says what to do."""

    def prompt(self) -> None:
        """Show that the next message is expected."""

    async def listen(self, handler: InputHandler) -> None:
        """Pass input to the handler until it ends; restore the terminal when cancelled."""


@contextmanager
def call_if_slow(function: Callable[..., None], *args: object) -> Iterator[None]:
    """Call a function if what runs meanwhile takes more than a second."""
    timer = asyncio.get_running_loop().call_later(SLOW_S, function, *args)
    try:
        yield
    finally:
        timer.cancel()
