"""A menu on a screen: its rows, and the keys that drive it."""

from collections.abc import Callable

from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from turngate.cli.terminal.ui import Menu, MenuKey, TextStyle
from turngate.core.text import strip_controls, truncate

KEYS: dict[str, MenuKey] = {
    "up": "up",
    "down": "down",
    "enter": "enter",
    "y": "y",
    "n": "n",
    "q": "q",
    "escape": "q",
    "c-c": "q",
    "c-d": "q",
}
STYLES: dict[TextStyle, str] = {
    "plain": "",
    "dim": "",
    "notice": "ansiyellow",
    "alert": "bold ansired",
    "user": "bold",
    "good": "ansigreen",
    "bad": "ansired",
}


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
