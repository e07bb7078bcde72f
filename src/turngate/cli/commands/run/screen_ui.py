"""A conversation on a screen: the output scrolls, with a status line, an editor and menus below it."""

import asyncio
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TextIO, cast

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Size
from prompt_toolkit.document import Document
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import AnyFormattedText, StyleAndTextTuples
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

from turngate.cli.console.conversation_text import parse_permission
from turngate.cli.console.markdown import Markdown, styled
from turngate.cli.console.streams import SGR_CODES, RawStream, with_code
from turngate.cli.console.ui import SLOW_S, Activity, InputHandler, Menu, MenuKey, TextStyle
from turngate.core.text import strip_controls, truncate
from turngate.state.files import make_private_dir, open_regular_file, write_and_rename

KEYS: dict[str, MenuKey] = {"up": "up", "down": "down", "enter": "enter", "y": "y", "n": "n", "q": "q"}
KEYS |= {"escape": "q", "c-c": "q", "c-d": "q"}
STYLES: dict[TextStyle, str] = {"plain": "", "dim": "", "notice": "ansiyellow", "alert": "bold ansired"}
STYLES |= {"user": "bold", "good": "ansigreen", "bad": "ansired"}


def format_menu(menu: Menu, size: Size) -> StyleAndTextTuples:
    """Return the title, at most half a screen of rows around the selected one, and what the keys do."""
    room = max(3, size.rows // 2 - 2)
    first = max(0, min(menu.selected - room // 2, len(menu.rows) - room))
    shown: StyleAndTextTuples = [("bold", f"{menu.title}\n")]
    for number, (text, style) in enumerate(menu.rows[first : first + room], first):
        is_selected = number == menu.selected
        line = truncate(f"{'> ' if is_selected else '  '}{strip_controls(text)}", size.columns - 1)
        shown.append((f"{STYLES[style]}{' reverse' * is_selected}", f"{line}\n"))
    return [*shown, ("", menu.keys)]


def add_menu_keys(keys: KeyBindings, in_menu: Condition, on_key: Callable[[MenuKey], None]) -> None:
    """Bind the keys of a menu while one is shown; others do nothing."""

    def bind(name: str, meaning: MenuKey | None) -> None:
        @keys.add(name, filter=in_menu)
        def _(_: KeyPressEvent) -> None:
            if meaning:
                on_key(meaning)

    bind("<any>", None)
    for name, meaning in KEYS.items():
        bind(name, meaning)


REDRAW_INTERVAL_S = 0.15
MIN_REDRAW_INTERVAL_S = 0.02  # an answer of 1 MB comes in hundreds of thousands of pieces
MIN_MODEL_CHARS = 10  # a narrower terminal does not name the model
MAX_OUTPUT_ROWS = 4  # of hooks that run
ESCAPE_TIMEOUT_S = 0.1  # after it an Escape is the key itself and not the start of a sequence
KEY_SEQUENCE_TIMEOUT_S = 0.2
MAX_HISTORY_ENTRIES = 1000
MAX_HISTORY_BYTES = 1024 * 1024  # at the end of the file, which are read
MAX_ENTRY_BYTES = MAX_HISTORY_BYTES // 8  # a longer message is not stored: it would displace the others
SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
SETTLE_S = 0.3  # a key this soon after a question may be meant for something else
WORD_KEY_S = 1.0  # the keys of an answer that is typed as a word follow each other at least this fast
STATUS_MARGIN = 40  # columns for the seconds and the hint beside the activity


class ScreenUI:
    is_interactive = True

    def __init__(self, history_path: str) -> None:
        # Every text is cleaned here; prompt_toolkit adds the sequences that draw the screen.
        self._output = Vt100_Output.from_pty(
            cast("TextIO", RawStream(sys.stdout)),
            term=os.environ.get("TERM"),
            default_color_depth=ColorDepth.from_env(),
        )
        # Never ask for the cursor position: a late reply would end up in the user's shell.
        self._output.enable_cpr = False
        self._colors = not os.environ.get("NO_COLOR")
        has_unicode = "utf" in self._output.encoding().lower()
        self._spinner = SPINNER if has_unicode else "|/-\\"
        is_rendered = self._colors and has_unicode
        self._markdown = Markdown(lambda: self._output.get_size().columns) if is_rendered else None
        self._buffer = Buffer(multiline=True, history=InputHistory(history_path))
        self._search = SearchToolbar()
        self._handler: InputHandler  # from `listen` on, and before it no key is read
        self._line: list[str] = []  # the pieces of the incomplete last line of an answer
        self._summary = ("", "")  # the model, and the figures of the conversation
        self._activity: Activity | None = None
        self._menu: Menu | None = None
        self._question: str | None = None
        self._asked_at = 0.0  # when the question came up
        self._draft: Document | None = None  # the text in the editor when a question came up
        self._word = AnswerWord()
        self._app: Application[None] = Application(
            Layout(self._rows()),
            key_bindings=self._keys(),
            output=self._output,
            input=create_input(),
            erase_when_done=True,
            min_redraw_interval=MIN_REDRAW_INTERVAL_S,
        )
        self._app.ttimeoutlen = ESCAPE_TIMEOUT_S
        self._app.timeoutlen = KEY_SEQUENCE_TIMEOUT_S

    # Output

    def print(self, text: str, style: TextStyle = "plain") -> None:
        self.end_stream()
        self._print_above(strip_controls(text), style)

    def stream(self, text: str) -> None:
        first, *others = strip_controls(text).split("\n")
        self._line.append(first)
        if others:
            lines = ["".join(self._line), *others[:-1]]
            self._line = [others[-1]]
            self._print_answer(lines)
        self._app.invalidate()

    def end_stream(self) -> None:
        line, self._line = "".join(self._line), []
        self._print_answer([line] if line else [], is_end=True)

    def _print_answer(self, lines: list[str], *, is_end: bool = False) -> None:
        """Print complete lines of an answer; those of a table wait for its end."""
        if self._markdown is not None:
            rendered = [line for text in lines for line in self._markdown.feed(text)]
            rendered += self._markdown.end() if is_end else []
            lines = [styled(line, partial(with_code, stream=None)) for line in rendered]
        if lines:
            self._print_above("\n".join(lines), "plain")

    def set_activity(self, activity: Activity | None) -> None:
        if activity is None:
            self._erase()  # frees the row of the status line
        self._activity = activity
        self._app.invalidate()

    def set_summary(self, model: str, figures: str) -> None:
        self._summary = strip_controls(model), strip_controls(figures)
        self._app.invalidate()

    def ask(self, question: str | None) -> None:
        """Show a question over an empty editor; the draft comes back afterward."""
        if question and self._question != question:
            self._asked_at = time.monotonic()
        if question and self._draft is None:
            self._draft = self._buffer.document
            self._buffer.reset()
        elif question is None and self._draft is not None:
            self._buffer.set_document(self._draft)
            self._draft = None
        self._question = strip_controls(question) if question else None
        self._app.invalidate()

    def show_menu(self, menu: Menu | None) -> None:
        self._erase()  # frees the rows of the menu
        self._menu = menu
        self._app.invalidate()

    def prompt(self) -> None:
        self._app.invalidate()

    async def listen(self, handler: InputHandler) -> None:
        self._handler = handler
        redraws = asyncio.create_task(self._redraw_status())
        try:
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        except (EOFError, OSError):  # the terminal is gone
            handler.quit()
        finally:
            redraws.cancel()

    async def _redraw_status(self) -> None:
        while True:
            await asyncio.sleep(REDRAW_INTERVAL_S)
            if self._activity:
                self._app.invalidate()

    def _print_above(self, text: str, style: TextStyle) -> None:
        """Write above the status line and the editor, which are drawn again."""
        self._erase()
        colored = with_code(text, SGR_CODES[style], None) if self._colors else text
        with contextlib.suppress(OSError):  # the terminal is gone; the turn still has to end properly
            self._output.write_raw(colored.replace("\n", "\r\n") + "\r\n")
            self._output.flush()
        self._app.invalidate()

    def _erase(self) -> None:
        if self._app.is_running:
            with contextlib.suppress(OSError):
                self._app.renderer.erase()

    # Layout

    def _rows(self) -> HSplit:
        def row(text: Callable[[], AnyFormattedText], *, wrap: bool = True) -> ConditionalContainer:
            """Return a row that is there while it has a text."""
            window = Window(FormattedTextControl(text), dont_extend_height=True, wrap_lines=wrap)
            return ConditionalContainer(window, Condition(lambda: bool(text())))

        return HSplit(
            [
                row(self._open_line),
                row(lambda: [("bold ansiyellow", self._question)] if self._question else []),
                row(
                    lambda: format_menu(self._menu, self._output.get_size()) if self._menu else [], wrap=False
                ),
                row(self._output_rows, wrap=False),
                row(self._status, wrap=False),
                Window(
                    BufferControl(self._buffer, search_buffer_control=self._search.control),
                    dont_extend_height=True,
                    wrap_lines=True,
                    get_line_prefix=self._prefix,
                ),
                self._search,
                row(self._summary_row, wrap=False),
            ]
        )

    def _open_line(self) -> str:
        """Return the end of what is not printed yet, at most half a screen of it."""
        size = self._output.get_size()
        room = max(1, size.rows // 2) * size.columns
        self._line = ["".join(self._line)]
        text = self._line[0][-room:].expandtabs(4)[-room:]
        while get_cwidth(text) > room:
            text = text[len(text) // 8 + 1 :]
        left = size.rows // 2 - get_cwidth(text) // size.columns - 1
        rows = self._markdown.rows[-left:] if self._markdown and left > 0 else []
        return "\n".join([*(row.expandtabs(4)[: size.columns - 1] for row in rows), text]) if rows else text

    def _status(self) -> StyleAndTextTuples:
        if self._activity is None or self._question or self._menu:
            return []
        now = time.monotonic()
        frame = self._spinner[int(now / REDRAW_INTERVAL_S) % len(self._spinner)]
        queued = f" · {self._activity.queued} queued" if self._activity.queued else ""
        limit = self._activity.limit
        room = self._output.get_size().columns - STATUS_MARGIN + 1 - len(limit)
        label = truncate(strip_controls(self._activity.label), max(11, room))
        return [
            ("ansicyan", f"{frame} {label}{limit} · {now - self._activity.since:.0f} s"),
            ("", f"{queued} · Esc interrupts"),
        ]

    def _output_rows(self) -> StyleAndTextTuples:
        """Return what the hooks that run have printed last."""
        activity = self._activity
        if activity is None or self._question or self._menu or time.monotonic() - activity.since < SLOW_S:
            return []
        room = self._output.get_size().columns - 3
        lines = [truncate(strip_controls(line).expandtabs(4), room) for line in activity.output()]
        return (
            [("ansibrightblack", "\n".join(f"  {line}" for line in lines[:MAX_OUTPUT_ROWS]))] if lines else []
        )

    def _summary_row(self) -> StyleAndTextTuples:
        """Return the model, which is truncated or left out first, and the figures."""
        model, figures = self._summary
        if not model or self._menu:
            return []
        room = self._output.get_size().columns - 1
        left = room - len(figures) - 3
        shown = truncate(model, left) if left >= MIN_MODEL_CHARS else ""
        return [("ansibrightblack", truncate(" · ".join(filter(None, (shown, figures))), room))]

    def _prefix(self, line: int, wrapped: int) -> StyleAndTextTuples:
        if line or wrapped:
            return [("", "  ")]
        return [("bold", "? " if self._question else "> ")]

    # Keys

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        in_menu = Condition(lambda: self._menu is not None)
        typing = ~is_searching & ~in_menu
        empty = Condition(lambda: not self._buffer.text)

        add_menu_keys(keys, in_menu, lambda key: self._handler.on_menu_key(key))  # noqa: PLW0108 - it is set later

        @keys.add("<any>", filter=typing & Condition(lambda: bool(self._question) or self._word.is_open))
        def _(event: KeyPressEvent) -> None:
            if self._word.take(event.data):
                return
            if self._takes_key and (answer := parse_permission(event.data)):
                self._word = AnswerWord(answer[1:])
                self._submit(event.data)
            else:
                self._buffer.insert_text(event.data)

        @keys.add("enter", filter=typing)
        def _(_: KeyPressEvent) -> None:
            if self._word.take(""):
                return
            if self._buffer.document.text_before_cursor.endswith("\\") and not self._question:
                self._buffer.delete_before_cursor()
                self._buffer.insert_text("\n")
            elif self._buffer.text.strip():
                self._submit(self._buffer.text)

        @keys.add("escape", "enter", filter=typing)
        def _(_: KeyPressEvent) -> None:
            self._buffer.insert_text("\n")

        @keys.add("escape", filter=typing)
        def _(_: KeyPressEvent) -> None:
            self._handler.interrupt()

        @keys.add("c-c", filter=typing)
        def _(_: KeyPressEvent) -> None:
            if self._handler.is_busy or not self._buffer.text:
                self._handler.on_ctrl_c()
            else:
                self._buffer.reset()

        @keys.add("c-d", filter=typing & empty)
        def _(_: KeyPressEvent) -> None:
            self._handler.on_eof()

        @keys.add("c-z", filter=typing)
        def _(event: KeyPressEvent) -> None:
            event.app.suspend_to_background()

        return keys

    @property
    def _takes_key(self) -> bool:
        """Return whether a single key answers the question: only if it cannot belong to a message."""
        is_idle = not self._buffer.text and not (self._draft and self._draft.text)
        return bool(self._question) and is_idle and time.monotonic() - self._asked_at >= SETTLE_S

    def _submit(self, text: str) -> None:
        question = self._question
        self._buffer.reset(append_to_history=not question or parse_permission(text) is None)
        self._buffer.load_history_if_not_yet_loaded()  # else the next redraw does, and keys before it find none
        echo = f"{question} {text}" if question else f"> {text}".replace("\n", "\n  ")
        self._print_above(strip_controls(echo), "user")
        self._handler.on_message(text)


class AnswerWord:
    """The rest of an answer whose first key counted: `es` and Enter after `y` are not a message."""

    def __init__(self, rest: str = "") -> None:
        self._rest = rest
        self._ends = time.monotonic() + WORD_KEY_S if rest else 0.0

    @property
    def is_open(self) -> bool:
        return time.monotonic() < self._ends

    def take(self, key: str) -> bool:
        """Return whether this key belongs to the word; "" is Enter, which ends it."""
        belongs = self.is_open and self._rest.startswith(key)
        self._rest = self._rest[len(key) :]
        self._ends = time.monotonic() + WORD_KEY_S if belongs and key else 0.0
        return belongs


class InputHistory(History):
    """Earlier messages, for the arrow keys: a file of one JSON string per line that only its owner can read."""

    def __init__(self, path: str) -> None:
        super().__init__()
        self.path = path

    def load_history_strings(self) -> Iterable[str]:
        """Yield the messages, the newest first."""
        lines, is_long = self._read_last_lines()
        newest = lines[-MAX_HISTORY_ENTRIES:]
        if is_long or len(lines) > 2 * MAX_HISTORY_ENTRIES:
            self._rewrite(newest)
        yield from (message for line in reversed(newest) if (message := _parse_message(line)) is not None)

    def append_string(self, string: str) -> None:
        if not string.startswith(" "):
            super().append_string(string)

    def store_string(self, string: str) -> None:
        line = json.dumps(string).encode() + b"\n"
        if len(line) > MAX_ENTRY_BYTES:
            return
        with contextlib.suppress(OSError):  # a full disk does not end the conversation
            make_private_dir(os.path.dirname(self.path))
            fd = open_regular_file(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            with open(fd, "ab") as file:
                file.write(line)

    def _read_last_lines(self) -> tuple[list[bytes], bool]:
        """Return the lines at the end of the file, and whether it is much longer than that."""
        try:
            with open(open_regular_file(self.path, os.O_RDONLY), "rb") as file:
                size = os.fstat(file.fileno()).st_size
                file.seek(max(0, size - MAX_HISTORY_BYTES))
                lines = file.read(MAX_HISTORY_BYTES).splitlines(keepends=True)
        except OSError:
            return [], False
        return lines[size > MAX_HISTORY_BYTES :], size > 2 * MAX_HISTORY_BYTES

    def _rewrite(self, lines: Sequence[bytes]) -> None:
        new = f"{self.path}.new"
        with contextlib.suppress(OSError):
            fd = open_regular_file(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            write_and_rename(fd, new, self.path, b"".join(lines))


def _parse_message(line: bytes) -> str | None:
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, str) else None
