"""Reads a shell command into simple commands. What only a shell can read ends the reading, without an error."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MAX_COMMANDS = 200  # read from one text

# A shell has more syntax than this. A token that does not match ends the reading.
_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t]+|\\\n)
    |(?P<redirect>\d*(?:>>|>\||>&|<&|>(?!\()|<(?![<(])))
    |(?P<operator>&&|\|\||&(?![>&])|\|(?![|&])|;(?!;)|\n)
    |(?P<single>'[^']*')
    |(?P<double>"(?:[^"\\`$]|\\.|\$(?!\()|\$\([^()'"`]*\))*")
    |(?P<escape>\\.)
    |(?P<substitution>\$\([^()'"`]*\))
    |(?P<bare>(?:[^\s'"\\;&|<>()`$]|\$\{[^{}'"\\`]*\}|\$(?![({]))+)
    """,
    re.VERBOSE | re.DOTALL,
)
_KEYWORDS = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "function",
        "select",
        "in",
        "{",
        "}",
        "!",
        "[[",
        "((",
        "coproc",
    ]
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=", re.ASCII)


class Part(NamedTuple):
    """A piece of a word: its text without the quotes, and how it is quoted (`single`, `double`, `bare` …)."""

    text: str
    quoting: str


class Word(NamedTuple):
    parts: tuple[Part, ...]

    @property
    def is_assignment(self) -> bool:
        return self.parts[0].quoting == "bare" and bool(_ASSIGNMENT.match(self.parts[0].text))

    @property
    def has_variable(self) -> bool:
        return any("$" in part.text for part in self.parts if part.quoting in ("bare", "double"))

    @property
    def plain(self) -> str | None:
        """The text of a word without any quotes or expansions, such as a keyword."""
        (first, *more) = self.parts
        return first.text if not more and first.quoting == "bare" else None


class SimpleCommand(NamedTuple):
    """One command, and the operator in front of it: `&&`, `||`, `|`, `&` or `;`, and nothing for the first."""

    operator: str
    words: tuple[Word, ...]
    assignments: tuple[Word, ...] = ()
    redirects: tuple[tuple[str, Word], ...] = ()


class CommandList(NamedTuple):
    commands: tuple[SimpleCommand, ...]
    # The operator after the last command; what follows could not be read unless `is_complete`.
    end: str
    is_complete: bool


def read_commands(text: str) -> CommandList:
    """Return the commands up to the first that is not simple: a loop, a group, a here-document …; at most MAX_COMMANDS."""
    commands: list[SimpleCommand] = []
    operator = ""
    for tokens, end in _split(text):
        if tokens is None:
            return CommandList(tuple(commands), operator, is_complete=False)
        command = _read_command(operator, tokens)
        if command is None or len(commands) == MAX_COMMANDS:
            return CommandList(tuple(commands), operator, is_complete=False)
        if command.words or command.assignments or command.redirects:
            commands.append(command)
            operator = end
        elif end not in (";", ""):  # only an empty line, or a semicolon at the end, needs no command
            return CommandList(tuple(commands), operator, is_complete=False)
    return CommandList(tuple(commands), operator, is_complete=True)


class _Token(NamedTuple):
    kind: str  # "word" or "redirect"
    word: Word


def _split(text: str) -> Iterator[tuple[list[_Token] | None, str]]:
    """Yield the tokens of each command and the operator after it; None for a command that cannot be read."""
    tokens: list[_Token] = []
    parts: list[Part] = []

    def end_word() -> None:
        if parts:
            tokens.append(_Token("word", Word(tuple(parts))))
            parts.clear()

    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            yield None, ""
            return
        kind, piece = match.lastgroup or "", match[0]
        position = match.end()
        if kind == "bare" and not parts and piece.startswith("#"):
            position = _line_end(text, match.start())
        elif kind in ("blank", "redirect", "operator"):
            end_word()
            if kind == "redirect":
                tokens.append(_Token("redirect", Word((Part(piece, "bare"),))))
            elif kind == "operator":
                yield tokens, ";" if piece == "\n" else piece
                tokens = []
        else:
            parts.append(_part(kind, piece))
    end_word()
    yield tokens, ""


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end


def _part(kind: str, piece: str) -> Part:
    if kind == "single":
        return Part(piece[1:-1], "single")
    if kind == "escape":
        return Part(piece[1:], "single")
    return Part(piece[1:-1] if kind == "double" else piece, kind)


def _read_command(operator: str, tokens: list[_Token]) -> SimpleCommand | None:
    """Return the command, or None if it begins with a keyword or its redirection has no target."""
    words: list[Word] = []
    assignments: list[Word] = []
    redirects: list[tuple[str, Word]] = []
    pending = iter(tokens)
    for kind, word in pending:
        if kind == "redirect":
            target = next(pending, None)
            if target is None or target.kind != "word":
                return None
            redirects.append((word.parts[0].text, target.word))
        elif not words and word.is_assignment:
            assignments.append(word)
        else:
            words.append(word)
    if words and words[0].plain in _KEYWORDS:
        return None
    return SimpleCommand(operator, tuple(words), tuple(assignments), tuple(redirects))


# Expansion

_VARIABLE = re.compile(
    r"\$(?:(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^${}]*))?\})", re.ASCII
)
_BRACED = re.compile(r"\$\{[^}]*\}")
_GLOB = re.compile(r"[*?\[{]")
_BLANK = re.compile(r"\s")
_ESCAPED = re.compile(r"\\([\"\\$`\n])")


class Expansion(NamedTuple):
    text: str
    unset: tuple[str, ...] = ()  # variables that are not set and therefore empty


def expand(word: Word, variables: Mapping[str, str | None], home: str) -> Expansion | None:
    """Return the word as the shell expands it, or None if that is not known: a glob, a substitution …

    A variable that is None has a value that only a run of the hook knows.
    """
    expansions: list[Expansion] = []
    for number, part in enumerate(word.parts):
        expansion = _expand_part(part, variables, home if number == 0 else None)
        if expansion is None:
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
            return expansion and expansion._replace(text=_ESCAPED.sub(r"\1", expansion.text))
        case "bare" if not _GLOB.search(_BRACED.sub("", text)) and not _BLANK.search(text):
            if home is not None and text.startswith("~"):
                if text[1:2] not in ("", "/"):
                    return None  # another user's home
                text = home + text[1:]
            return _expand_variables(text, variables)
        case _:
            return None


def _expand_variables(text: str, variables: Mapping[str, str | None]) -> Expansion | None:
    """Expand `$NAME`, `${NAME}` and `${NAME:-default}`; None for any other use of `$`."""
    pieces: list[str] = []
    unset: list[str] = []
    position = 0
    while (dollar := text.find("$", position)) >= 0:
        match = _VARIABLE.match(text, dollar)
        if match is None or text[dollar - 1 : dollar] == "\\":
            return None
        name, default = match["name"] or match["braced"], match["default"]
        value = variables.get(name, "")
        if value is None:
            return None
        if name not in variables and default is None:
            unset.append(name)
        pieces += [text[position:dollar], value or default or ""]
        position = match.end()
    return Expansion("".join(pieces) + text[position:], tuple(unset))
