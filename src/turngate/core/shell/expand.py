"""Expands the words of a shell command."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from turngate.core.shell.parse import Part, Word

MAX_EXPANDED_CHARS = 10_000  # of a word; what a longer one means is not known

_VARIABLE = r"(?a)\$(?:(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^${}]*))?\})"
_ESCAPED = r"\\(?:([\"\\$`])|\n)"


class Expansion(NamedTuple):
    text: str
    unset: tuple[str, ...] = ()  # variables that are not set and therefore empty


def expand(word: Word, variables: Mapping[str, str | None], home: str) -> Expansion | None:
    """Return the word as the shell expands it, or None if that is not known: a glob, a substitution …

    A variable that is None has a value that only a run of the hook knows.
    """
    expansions: list[Expansion] = []
    length = 0
    for number, part in enumerate(word.parts):
        expansion = _expand_part(part, variables, home if number == 0 else None)
        length += len(expansion.text) if expansion else 0
        if expansion is None or length > MAX_EXPANDED_CHARS:
            return None
        expansions.append(expansion)
    unset = tuple(name for expansion in expansions for name in expansion.unset)
    return Expansion("".join(expansion.text for expansion in expansions), unset)


def _expand_part(part: Part, variables: Mapping[str, str | None], home: str | None) -> Expansion | None:
    text, quoting = part
    match quoting:
        case "single":
            return Expansion(text)
        case "double":
            expansion = _expand_variables(text, variables)
            return expansion and expansion._replace(text=re.sub(_ESCAPED, r"\1", expansion.text))
        case "bare":
            if re.search(r"\s", text) or re.search(r"[*?\[{]", re.sub(r"\$\{[^}]*\}", "", text)):
                return None
            if home is not None and text.startswith("~"):
                if text[1:2] not in ("", "/"):
                    return None  # another user's home
                text = home + text[1:]
            return _expand_variables(text, variables)
        case _:
            return None


def _expand_variables(text: str, variables: Mapping[str, str | None]) -> Expansion | None:
    """Expand `$NAME`, `${NAME}` and `${NAME:-default}`; None for any other use of `$`."""
    variable = re.compile(_VARIABLE)
    pieces: list[str] = []
    unset: list[str] = []
    position = length = 0
    while (dollar := text.find("$", position)) >= 0:
        match = variable.match(text, dollar)
        if match is None or text[dollar - 1 : dollar] == "\\":
            return None
        name, default = match["name"] or match["braced"], match["default"]
        value = variables.get(name, "")
        length += len(value or "")
        if value is None or length > MAX_EXPANDED_CHARS:
            return None
        if name not in variables and default is None:
            unset.append(name)
        pieces += [text[position:dollar], value or default or ""]
        position = match.end()
    return Expansion("".join(pieces) + text[position:], tuple(unset))
