"""A conversation on a screen: what was said scrolls up, and below it lives the line that is typed."""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Iterable

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History
from prompt_toolkit.input.defaults import create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.utils import get_cwidth
from prompt_toolkit.widgets import SearchToolbar

from turngate.cli.terminal.format import clean, permission
from turngate.cli.terminal.ui import Activity, InputHandler, Look

TICK = 0.15  # seconds between two pictures of the clock
KEPT = 1000  # messages in the history
CODES: dict[Look, str] = {"plain": "", "dim": "2", "note": "33", "loud": "1;31", "you": "1"}
WHEEL = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Screen:
    for_people = True

    def __init__(self, history: str) -> None:
        self._output = Vt100_Output.from_pty(
            sys.stdout, term=os.environ.get("TERM"), default_color_depth=ColorDepth.from_env()
        )
        # It is never asked where its cursor is: an answer that comes late ends up in the user's shell.
        self._output.enable_cpr = False
        self._colours = not os.environ.get("NO_COLOR")
        self._wheel = WHEEL if "utf" in self._output.encoding().lower() else "|/-\\"
        self._buffer = Buffer(multiline=True, history=Past(history))
        self._search = SearchToolbar()
        self._ear: InputHandler | None = None
        self._line = ""  # the last line of an answer, while it grows
        self._doing: Activity | None = None
        self._question: str | None = None
        self._draft: Document | None = None  # what was being typed when a question came
        self._app: Application[None] = Application(
            Layout(self._rows()),
            key_bindings=self._keys(),
            output=self._output,
            input=create_input(),
            erase_when_done=True,
        )
        self._app.ttimeoutlen = 0.1  # an Escape that nothing follows for so long is the key itself
        self._app.timeoutlen = 0.2

    # What is shown

    def say(self, text: str, look: Look = "plain") -> None:
        self.end_stream()
        self._print(clean(text), look)

    def stream(self, text: str) -> None:
        *whole, self._line = (self._line + clean(text)).split("\n")
        if whole:
            self._print("\n".join(whole), "plain")
        self._app.invalidate()

    def end_stream(self) -> None:
        if self._line:
            line, self._line = self._line, ""
            self._print(line, "plain")

    def doing(self, doing: Activity | None) -> None:
        if doing is None:
            self._erase()  # the room of the status line is given back
        self._doing = doing
        self._app.invalidate()

    def ask(self, question: str | None) -> None:
        """An answer is typed on an empty line: what was being typed comes back afterwards."""
        if question and self._draft is None:
            self._draft = self._buffer.document
            self._buffer.reset()
        elif question is None and self._draft is not None:
            self._buffer.set_document(self._draft)
            self._draft = None
        self._question = clean(question) if question else None
        self._app.invalidate()

    def ready(self) -> None:
        self._app.invalidate()

    async def listen(self, ear: InputHandler) -> None:
        self._ear = ear
        ticking = asyncio.create_task(self._tick())
        try:
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        except (EOFError, OSError):  # the terminal has gone
            ear.leave()
        finally:
            ticking.cancel()

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK)
            if self._doing:
                self._app.invalidate()

    def _print(self, text: str, look: Look) -> None:
        """Writes above the line that lives, which is drawn anew."""
        self._erase()
        code = CODES[look] if self._colours else ""
        shown = f"\x1b[{code}m{text}\x1b[0m" if code else text
        with contextlib.suppress(OSError):  # nobody sits there any more; the work has its end to come to
            self._output.write_raw(shown.replace("\n", "\r\n") + "\r\n")
            self._output.flush()
        self._app.invalidate()

    def _erase(self) -> None:
        if self._app.is_running:
            with contextlib.suppress(OSError):
                self._app.renderer.erase()

    # The rows at the bottom

    def _rows(self) -> HSplit:
        def row(text: FormattedTextControl, shown: Condition, *, wrap: bool = False) -> ConditionalContainer:
            return ConditionalContainer(Window(text, dont_extend_height=True, wrap_lines=wrap), shown)

        return HSplit(
            [
                row(FormattedTextControl(self._growing), Condition(lambda: bool(self._line)), wrap=True),
                row(FormattedTextControl(self._asked), Condition(lambda: bool(self._question)), wrap=True),
                row(
                    FormattedTextControl(self._status),
                    Condition(lambda: self._doing is not None and not self._question),
                ),
                Window(
                    BufferControl(self._buffer, search_buffer_control=self._search.control),
                    dont_extend_height=True,
                    wrap_lines=True,
                    get_line_prefix=self._prefix,
                ),
                self._search,
            ]
        )

    def _growing(self) -> str:
        """As much of the growing line as half of the screen holds."""
        size = self._output.get_size()
        room = max(1, size.rows // 2) * size.columns
        text = self._line.expandtabs(4)[-room:]
        while get_cwidth(text) > room:
            text = text[len(text) // 8 + 1 :]
        return text

    def _asked(self) -> StyleAndTextTuples:
        return [("bold ansiyellow", self._question or "")]

    def _status(self) -> StyleAndTextTuples:
        if self._doing is None:
            return []
        seconds = time.monotonic() - self._doing.since
        mark = self._wheel[int(time.monotonic() / TICK) % len(self._wheel)]
        waiting = f" · {self._doing.waiting} waiting" if self._doing.waiting else ""
        what = self._doing.what
        width = self._output.get_size().columns - 40
        what = what if len(what) <= width else what[: max(10, width)] + "…"
        return [("ansicyan", f"{mark} {what} · {seconds:.0f} s"), ("", f"{waiting} · Esc interrupts")]

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        if line or wrapped:
            return [("", "  ")]
        return [("bold", "? " if self._question else "> ")]

    # The keys

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        typing = ~is_searching
        empty = Condition(lambda: not self._buffer.text)

        @keys.add("enter", filter=typing)
        def _(_: KeyPressEvent) -> None:
            if self._buffer.document.text_before_cursor.endswith("\\") and not self._question:
                self._buffer.delete_before_cursor()
                self._buffer.insert_text("\n")
            elif self._buffer.text.strip():
                self._enter(self._buffer.text)

        @keys.add("escape", "enter", filter=typing)
        def _(_: KeyPressEvent) -> None:
            self._buffer.insert_text("\n")

        @keys.add("escape", filter=typing)
        def _(_: KeyPressEvent) -> None:
            if self._ear:
                self._ear.interrupt()

        @keys.add("c-c", filter=typing)
        def _(_: KeyPressEvent) -> None:
            if self._ear and (self._ear.busy or not self._buffer.text):
                self._ear.ctrl_c()
            else:
                self._buffer.reset()

        @keys.add("c-d", filter=typing & empty)
        def _(_: KeyPressEvent) -> None:
            if self._ear:
                self._ear.end()

        @keys.add("c-z", filter=typing)
        def _(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        return keys

    def _enter(self, text: str) -> None:
        asked = self._question
        self._buffer.reset(append_to_history=not asked or permission(text) is None)
        self._print(clean(f"{asked} {text}" if asked else f"> {text}".replace("\n", "\n  ")), "you")
        if self._ear:
            self._ear.hear(text)


class Past(History):
    """What was said before, for the arrow keys: one JSON string per line, readable by its owner alone."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def load_history_strings(self) -> Iterable[str]:
        """Newest first."""
        try:
            with open(self.path, encoding="utf-8", errors="replace") as file:
                lines = file.readlines()
        except OSError:
            return
        if len(lines) > 2 * KEPT:
            self._write(lines[-KEPT:])
        for line in reversed(lines[-KEPT:]):
            with contextlib.suppress(ValueError):
                said = json.loads(line)
                if isinstance(said, str):
                    yield said

    def append_string(self, string: str) -> None:
        if not string.startswith(" "):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        with contextlib.suppress(OSError):  # a full disk is no reason not to talk
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            fd = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            with open(fd, "a", encoding="utf-8") as file:
                file.write(json.dumps(string) + "\n")

    def _write(self, lines: list[str]) -> None:
        with contextlib.suppress(OSError):
            fd = os.open(f"{self.path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(fd, "w", encoding="utf-8") as file:
                file.writelines(lines)
            os.replace(f"{self.path}.new", self.path)
