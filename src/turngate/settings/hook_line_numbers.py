"""The line of each hook in its settings file, for people who look it up."""

import json
import re
from collections.abc import Iterator, Mapping

from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Rule
from turngate.settings.json_file import MAX_FILE_BYTES
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes

MAX_DEPTH = 8  # of the objects whose lines are kept; a hook in the manifest of a plugin is six levels deep

Place = tuple[str | int, ...]  # keys and positions: ("hooks", "Stop", 0, "hooks", 1)

_SYMBOL = re.compile(r'"(?:[^"\\]|\\.)*"|[][{},:]', re.DOTALL)
_INDEX = re.compile(r"\[(\d+)\]\.hooks\[(\d+)\]")


class HookLines:
    """Finds lines, and reads each file once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._lines: dict[str, Mapping[Place, int]] = {}

    def line_of(self, rule: Rule, path: str) -> int | None:
        """Return the line of a hook in the file at this path; None: it is not found, or the file is the hook."""
        position = _INDEX.fullmatch(rule.index or "")
        if position is None:
            return None
        text = self._text(path)
        if not path.endswith(".json"):
            return _line_with(text, hook_text(rule.hook))
        if path not in self._lines:
            lines = object_lines(text)
            # The innermost part of a place is enough: a plugin's hooks are at several depths.
            self._lines[path] = {place[-4:]: lines[place] for place in sorted(lines, key=len, reverse=True)}
        return self._lines[path].get((rule.event, int(position[1]), "hooks", int(position[2])))

    def _text(self, path: str) -> str:
        if path not in self._texts:
            try:
                self._texts[path] = read_bytes(path, MAX_FILE_BYTES).decode("utf-8-sig", "replace")
            except (OSError, NotARegularFile, FileTooLarge):
                self._texts[path] = ""
        return self._texts[path]


def _line_with(text: str, wanted: str) -> int | None:
    """Return the first line that holds a command or prompt, for a front matter, which is not JSON."""
    first = next(iter(wanted.splitlines()), "")
    lines = text.splitlines()
    return next((number for number, line in enumerate(lines, 1) if first and first in line), None)


def object_lines(text: str) -> dict[Place, int]:
    """Return the line on which each object of a JSON text begins; of equal keys the last counts, as for `json`."""
    places: dict[Place, int] = {}
    containers: list[
        list[str | int]
    ] = []  # the key or position in each open object or list, with its opening bracket
    text_before = ""  # the last string: a key, if a colon follows
    for symbol, line in _symbols(text):
        match symbol:
            case "{" | "[":
                if symbol == "{" and len(containers) <= MAX_DEPTH:
                    places[tuple(place for _, place in containers)] = line
                containers.append([symbol, 0])
            case "}" | "]":
                if containers:
                    containers.pop()
            case ",":
                if containers and containers[-1][0] == "[":
                    containers[-1][1] = int(containers[-1][1]) + 1
            case ":":
                if containers:
                    containers[-1][1] = text_before
            case _:
                text_before = _unquote(symbol)
    return places


def _symbols(text: str) -> Iterator[tuple[str, int]]:
    """Yield brackets, commas, colons and strings, each with its line; numbers and words do not matter."""
    line, end = 1, 0
    for symbol in _SYMBOL.finditer(text):
        line += text.count("\n", end, symbol.start())
        end = symbol.start()
        yield symbol[0], line


def _unquote(string: str) -> str:
    """Return the text of a JSON string. The names of events have no escapes, unless one is hidden on purpose."""
    if "\\" not in string:
        return string[1:-1]
    try:
        return str(json.loads(string))
    except ValueError:
        return string[1:-1]
