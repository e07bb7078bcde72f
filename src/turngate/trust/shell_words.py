"""Splits the text of a shell into simple commands. Unlike a parser, it never gives up on syntax that it does not know."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

MAX_WORDS = 20_000  # of one text
MAX_VALUES = 20  # of one variable
MAX_VALUE_CHARS = 4096  # no path is longer; values that contain each other would grow without end
UNKNOWN = "\0"  # the value of an expansion that only a run of the command knows

_MAX_PASSES = 10  # of substitutions in each other
_TOKEN = re.compile(
    r"""
    (?P<comment>(?<![^\s;&|(])\#[^\n]*)
    |(?P<blank>[ \t\r]+|\\\n)
    |(?P<redirect>\d*(?:<<<|<<-?|>>|>\||>&|<&|<>|&>>?|>|<(?!\())[ \t]*)
    |(?P<operator>[$<>]\(|[;&|\n(){}!`])
    |(?P<word>(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\$\{[^}]{0,200}\}|[^\s;&|(){}!`'"\\<>$]|\$(?!\())+)
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_QUOTED = re.compile(r"""'([^']*)'|"((?:[^"\\]|\\.)*)"|\\(.)""", re.DOTALL)
_SUBSTITUTION = re.compile(r"\$\(([^()`]*)\)|`([^`]*)`")
_VARIABLE = re.compile(r"\$\{(\w+)(?::?[-=?+]([^}]{0,200}))?\}|\$(\w+)|\$\{[^}]{0,200}\}|\$[@*#?$!-]")
_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_KEYWORDS = frozenset(
    ["if", "then", "else", "elif", "do", "while", "until", "for", "case", "fi", "done", "esac"]
)
_DECLARATIONS = frozenset(["export", "readonly", "declare", "local", "typeset"])


class SimpleCommand(NamedTuple):
    words: list[str]  # as they are written
    inputs: list[str]  # the files of `<`


def take_substitutions(text: str) -> tuple[str, list[str]]:
    """Return the text with an unknown value for each `$(…)`, and the commands in them, the innermost first."""
    commands: list[str] = []

    def take(match: re.Match[str]) -> str:
        commands.append(match[1] or match[2] or "")
        return UNKNOWN

    for _ in range(_MAX_PASSES):
        text, count = _SUBSTITUTION.subn(take, text)
        if not count:
            break
    return text, commands


def simple_commands(text: str) -> Iterator[SimpleCommand]:
    words, inputs = list[str](), list[str]()
    redirect = ""
    for number, match in enumerate(_TOKEN.finditer(text)):
        if number > MAX_WORDS:
            break
        kind = match.lastgroup
        if kind == "operator":
            if words:
                yield SimpleCommand(words, inputs)
            words, inputs = [], []
        elif kind == "word":
            if not redirect:
                words.append(match[0])
            elif redirect == "<":
                inputs.append(match[0])
        redirect = match[0].strip() if kind == "redirect" else redirect if kind == "blank" else ""
    if words:
        yield SimpleCommand(words, inputs)


class Variables:
    """The values that variables may have: that of the environment, and all that the text assigns."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = environ
        self._assigned: dict[str, list[str]] = {}

    def readings(self, words: Sequence[str]) -> Iterator[list[str]]:
        """Yield the words without quotes and with the values of variables, once for each value."""
        last: list[str] | None = None
        for number in range(MAX_VALUES):
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
        while words and (
            words[0] in _KEYWORDS or words[0] in _DECLARATIONS or _ASSIGNMENT.fullmatch(words[0])
        ):
            if match := _ASSIGNMENT.fullmatch(words[0]):
                self._assign(match[1], match[2])
            words = words[1:]
        return words

    def _assign(self, name: str, value: str) -> None:
        values = self._assigned.setdefault(name, [])
        if value not in values and len(values) < MAX_VALUES and len(value) <= MAX_VALUE_CHARS:
            values.append(value)

    def _expand(self, word: str, number: int) -> str:
        single = word.startswith("'") and word.endswith("'") and word.count("'") == 2
        text = _QUOTED.sub(lambda match: next(filter(None, match.groups()), ""), word)
        if single:
            return text
        text = _VARIABLE.sub(lambda match: self._value(match, number), text)
        return self.environ.get("HOME", "") + text[1:] if text.startswith("~/") else text

    def _value(self, match: re.Match[str], number: int) -> str:
        name = match[1] or match[3] or ""
        values = [self.environ[name]] if name in self.environ else []
        values += self._assigned.get(name, ())
        if match[2] and name not in self.environ:
            values.append(match[2])
        return values[min(number, len(values) - 1)] if values else UNKNOWN
