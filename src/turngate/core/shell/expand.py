"""Expands the words of a shell command: to the one value that they have, or to all that they may have."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from turngate.core.shell.parse import UNKNOWN, Part, Word

MAX_EXPANDED_CHARS = 10_000  # of a word; what a longer one means is not known
MAX_VALUES = 20  # of one variable
MAX_VALUE_CHARS = 4096  # no path is longer; values that contain each other would grow without end

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


# All values

_ANY_VARIABLE = re.compile(
    r"\\(?:([\"\\$`])|\n)|\$\{(\w+)(?::?[-=?+]([^}]{0,200}))?\}|\$(\w+)|\$\{[^}]{0,200}\}|\$[@*#?$!-]"
)
_QUOTES = re.compile(r"[\"'\\]")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)(?:\[[^\]]*\])?\+?=(.*)", re.DOTALL)
_BEFORE_COMMAND = frozenset(
    "if then else elif do while until for case fi done esac export readonly declare local typeset".split()
)


class Variables:
    """The values that variables may have: that of the environment, and all that the text assigns."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self._assigned: dict[str, list[str]] = {}

    def readings(self, words: Sequence[Word]) -> Iterator[list[str]]:
        """Yield the words as the shell may expand them, once for each value of their variables."""
        last: list[str] | None = None
        for number in range(MAX_VALUES if any(word.has_variable for word in words) else 1):
            reading = [self._expand(word, number) for word in words]
            if reading == last:
                return
            last = reading
            yield reading

    def without_assignments(self, words: list[str]) -> list[str]:
        """Remember the assignments in front of a command, and return the command."""
        if words[:1] == ["for"] and words[2:3] == ["in"]:
            for value in words[3:]:
                self._assign(words[1], value)
        while words:
            if match := _ASSIGNMENT.fullmatch(words[0]):
                self._assign(match[1], match[2])
            elif words[0] not in _BEFORE_COMMAND:
                break
            words = words[1:]
        return words

    def _assign(self, name: str, value: str) -> None:
        values = self._assigned.setdefault(name, [])
        if value not in values and len(values) < MAX_VALUES and len(value) <= MAX_VALUE_CHARS:
            values.append(value)

    def _expand(self, word: Word, number: int) -> str:
        texts = [
            _ANY_VARIABLE.sub(lambda match: self._value(match, number), text)
            if quoting != "single" and ("$" in text or "\\" in text)
            else text
            for text, quoting in word.parts
        ]
        text = "".join(texts)
        has_home = text.startswith("~/") and word.parts[0].quoting != "single"
        return self.environ.get("HOME", "") + text[1:] if has_home else text

    def _value(self, match: re.Match[str], number: int) -> str:
        escaped, braced, default, bare = match.groups()
        if match[0][0] == "\\":
            return escaped or ""
        name = braced or bare or ""
        values = [self.environ[name]] if name in self.environ else []
        values += self._assigned.get(name, ())
        if default and name not in self.environ:
            values.append(_QUOTES.sub("", default))
        return values[min(number, len(values) - 1)] if values else UNKNOWN
