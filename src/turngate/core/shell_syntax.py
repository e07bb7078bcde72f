"""Reads a shell command into simple commands. What only a shell can read ends the reading, without an error."""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

MAX_COMMANDS = 200  # read from one text
MAX_EXPANDED_CHARS = 10_000  # of a word; what a longer one means is not known

# `$(…)` and backticks with plain quotations in them, but nothing nested.
_SUBSTITUTION = r"""\$\((?:[^()'"`\\]|\\.|'[^'()]*'|"(?:[^"()`\\]|\\.)*")*\)|`[^'"`\\]*`"""
# A shell has more syntax than this. A piece that does not match ends the reading.
_PIECE = re.compile(
    rf"""
    (?P<blank>[ \t]+)
    |(?P<continuation>\\\n)
    |(?P<redirect>&>>?|\d*(?:>>|>\||>&|<&|<>|>(?!\()|<(?![<(])))
    |(?P<operator>&&|\|\||\|&|;;|[;&|\n()])
    |(?P<single>'[^']*')
    |(?P<double>"(?:[^"\\`$]|\\.|\$(?!\())*")
    |(?P<escape>\\.)
    |(?P<substitution>{_SUBSTITUTION}|\$\{{[^{{}}()'"\\`]*\([^{{}}'"\\`]*\}})
    |(?P<quoted_substitution>"(?:[^"\\`$]|\\.|\$(?!\()|{_SUBSTITUTION})*")
    |(?P<bare>(?:[^\s'"\\;&|<>()`$]|\\\n|\$\{{[^{{}}()'"\\`]*\}}|\$(?![({{'"]|\\\n))+)
    """,
    re.VERBOSE | re.DOTALL,
)
_PARTS = frozenset(["single", "double", "escape", "substitution", "quoted_substitution", "bare"])  # of a word
_COMMENT = re.compile(r"#[^\n]*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?\+?=", re.ASCII | re.DOTALL)
_KEYWORD = re.compile(r"if|then|else|elif|fi|for|while|until|do|done|case|esac|select|function|coproc|\[\[")
# Read only with groups: operators and redirections, and words in front of a command.
_GROUPING = frozenset(["(", ")", ";;", "|&", "&>", "&>>"])
_LEADING = frozenset(["!", "{", "}"])


class Part(NamedTuple):
    """A piece of a word: its text without the quotes, and how it is quoted.

    `bare`, `double`, `single` (or escaped), or `substitution` (with and without double quotes).
    """

    text: str
    quoting: str


class Word(NamedTuple):
    parts: tuple[Part, ...]

    @property
    def has_variable(self) -> bool:
        return any("$" in part.text for part in self.parts if part.quoting in ("bare", "double"))

    @property
    def has_substitution(self) -> bool:
        return any(part.quoting == "substitution" for part in self.parts)

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
    span: tuple[int, int] = (0, 0)  # in the text: from the first of the words to the last word or redirection


class CommandList(NamedTuple):
    commands: tuple[SimpleCommand, ...]
    # The operator after the last command; what follows could not be read unless `is_complete`.
    end: str
    is_complete: bool


def is_keyword(text: str) -> bool:
    return _KEYWORD.fullmatch(text) is not None


def read_commands(text: str, *, with_groups: bool = False) -> CommandList:
    """Return the commands up to the first that is not simple: a loop, a group, a here-document …; at most MAX_COMMANDS.

    With groups, the commands in `(…)` and `{ …; }` and after `!` are read too, and `&>` and `|&` of Bash.
    """
    commands: list[SimpleCommand] = []
    operator = ""
    for tokens, end in _split(text, with_groups):
        command = _read_command(operator, tokens) if end.kind == "operator" else None
        if command is None or len(commands) == MAX_COMMANDS:
            return CommandList(tuple(commands), operator, is_complete=False)
        if tokens:
            commands.append(command)
            operator = end.written.replace("\n", ";")
        elif end.written not in (";", "\n", "") and not with_groups:  # only these need no command before them
            return CommandList(tuple(commands), operator, is_complete=False)
    return CommandList(tuple(commands), operator, is_complete=True)


_SUBSTITUTED = re.compile(rf"\\.|({_SUBSTITUTION})", re.DOTALL)


def substituted_commands(command: SimpleCommand) -> Iterator[str]:
    """Yield the texts in the `$(…)` and backticks of a command's words, assignments and redirections."""
    targets = (word for _, word in command.redirects)
    for word in (*command.assignments, *command.words, *targets):
        for part in word.parts:
            if part.quoting == "substitution":
                found = (match[1] for match in _SUBSTITUTED.finditer(part.text) if match[1])
                yield from (text[2:-1] if text[0] == "$" else text[1:-1] for text in found)


class _Token(NamedTuple):
    kind: str  # "word", "redirect", "operator" or "unreadable"
    written: str
    start: int
    word: Word = Word(())


def _split(text: str, with_groups: bool) -> Iterator[tuple[list[_Token], _Token]]:
    """Yield the words and redirections of each command, and what ends it: an operator, or what is unreadable."""
    tokens: list[_Token] = []
    for token in _read_tokens(text):
        if token.written in _GROUPING and not with_groups:
            yield tokens, token._replace(kind="unreadable")
            return
        if token.kind not in ("word", "redirect"):
            yield tokens, token
            tokens = []
        elif tokens or not with_groups or token.written not in _LEADING:
            tokens.append(token)


def _read_tokens(text: str) -> Iterator[_Token]:
    parts: list[Part] = []
    start = 0
    for kind, piece, position in _read_pieces(text):
        if kind in _PARTS:
            start = start if parts else position
            parts.append(_part(kind, piece))
            continue
        if parts:
            yield _Token("word", text[start:position], start, Word(tuple(parts)))
            parts = []
        if kind != "blank":
            yield _Token(kind, piece, position)


def _read_pieces(text: str) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the position of each piece. The end of the text is an empty operator."""
    position, in_word = 0, False
    while position < len(text):
        match = (None if in_word else _COMMENT.match(text, position)) or _PIECE.match(text, position)
        if match is None:
            yield "unreadable", "", position
            return
        kind = match.lastgroup or "blank"  # a comment
        if kind != "continuation":
            in_word = kind in _PARTS
            yield kind, match[0], position
        position = match.end()
    yield "operator", "", position


def _part(kind: str, piece: str) -> Part:
    if kind == "escape":
        return Part(piece[1:], "single")
    if kind in ("bare", "substitution"):
        return Part(piece.replace("\\\n", ""), kind)
    return Part(piece[1:-1], kind.removeprefix("quoted_"))


def _read_command(operator: str, tokens: list[_Token]) -> SimpleCommand | None:
    """Return the command, or None if it begins with a keyword or its redirection has no target."""
    words: list[_Token] = []
    assignments: list[Word] = []
    redirects: list[tuple[str, Word]] = []
    pending = iter(tokens)
    for token in pending:
        if token.kind == "redirect":
            target = next(pending, None)
            if target is None or target.kind != "word":
                return None
            redirects.append((token.written, target.word))
        elif not words and _ASSIGNMENT.match(token.written):
            assignments.append(token.word)
        else:
            words.append(token)
    name = words[0].word.plain if words else None
    if name is not None and (is_keyword(name) or name in _LEADING):
        return None
    span = (words[0].start, tokens[-1].start + len(tokens[-1].written)) if words else (0, 0)
    return SimpleCommand(
        operator, tuple(word.word for word in words), tuple(assignments), tuple(redirects), span
    )


# Expansion

_VARIABLE = re.compile(
    r"\$(?:(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^${}]*))?\})", re.ASCII
)
_BRACED = re.compile(r"\$\{[^}]*\}")
_GLOB = re.compile(r"[*?\[{]")
_BLANK = re.compile(r"\s")
_ESCAPED = re.compile(r"\\(?:([\"\\$`])|\n)")


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
    position = length = 0
    while (dollar := text.find("$", position)) >= 0:
        match = _VARIABLE.match(text, dollar)
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
