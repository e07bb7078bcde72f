"""Reads the text of a shell into commands: strictly, up to what only a shell can read, or leniently, without an end.

The words of a command are expanded as far as that is known.
"""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple

MAX_COMMANDS = 200  # of one text that is read strictly
UNKNOWN = "\0"  # in the text of a word: what only a run of the command knows

# `$(…)` and backticks with plain quotations in them, but nothing nested.
_SUBSTITUTION = r"""\$\((?:[^()'"`\\]|\\.|'[^'()]*'|"(?:[^"()`\\]|\\.)*")*\)|`[^'"`\\]*`"""
_COMMON = r"""
    (?P<blank>[ \t]+)
    |(?P<continuation>\\\n)
    |(?P<single>'[^']*')
    |(?P<escape>\\.)
"""
# A shell has more syntax than this. A piece that does not match ends the reading.
_STRICT = rf"""{_COMMON}
    |(?P<redirect>&>>?|\d*(?:>>|>\||>&|<&|<>|>(?!\()|<(?![<(])))
    |(?P<operator>&&|\|\||\|&|;;|[;&|\n()])
    |(?P<double>"(?:[^"\\`$]|\\.|\$(?!\())*")
    |(?P<substitution>{_SUBSTITUTION}|\$\{{[^{{}}()'"\\`]*\([^{{}}'"\\`]*\}})
    |(?P<quoted_substitution>"(?:[^"\\`$]|\\.|\$(?!\()|{_SUBSTITUTION})*")
    |(?P<bare>(?:[^\s'"\\;&|<>()`$]|\\\n|\$\{{[^{{}}()'"\\`]*\}}|\$(?![({{'"]|\\\n))+)
"""
# Everything matches. What may begin or end a command does so, wherever it is.
_LENIENT = rf"""{_COMMON}
    |(?P<redirect>&>>?|\d*(?:<<<|<<-?|>>|>\||>&|<&|<>|>(?!\()|<(?!\()))
    |(?P<operator>[$<>]\(|&&|\|\||\|&|[;&|\n(){{}}!`])
    |(?P<double>"(?:[^"\\]|\\.)*")
    |(?P<bare>(?:\$\{{[^}}]{{0,200}}\}}|[^\s;&|(){{}}!`'"\\<>$]|\\\n|\$(?!\())+)
    |.
"""
_PARTS = frozenset(["single", "double", "escape", "substitution", "quoted_substitution", "bare"])  # of a word
_COMMENT = re.compile(r"#[^\n]*")
_BEFORE_COMMENT = frozenset(" \t\r\n\f\v;&|()<>")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(?:\[.*\])?\+?=", re.ASCII | re.DOTALL)
KEYWORDS = frozenset(
    "if then else elif fi for while until do done case esac select function coproc [[".split()
)
# Read strictly only with groups: operators and redirections, and words in front of a command.
_GROUPING = frozenset(["(", ")", ";;", "|&", "&>", "&>>"])
_LEADING = frozenset(["!", "{", "}"])
_LIST_OPERATORS = frozenset(["&&", "||", "|&", "|", ";", "&", "\n", ""])


class Part(NamedTuple):
    """A piece of a word: its text without the quotes, and how it is quoted: `bare`, `double`, `single` (or escaped) or `substitution`."""

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

    @property
    def has_substitution(self) -> bool:
        targets = (word for _, word in self.redirects)
        return any(word.has_substitution for word in (*self.words, *self.assignments, *targets))


class CommandList(NamedTuple):
    commands: tuple[SimpleCommand, ...]
    # The operator after the last command; what follows could not be read unless `is_complete`.
    end: str
    is_complete: bool


def read_commands(text: str, *, with_groups: bool = False) -> CommandList:
    """Return the commands up to the first that is not simple: a loop, a group, a here-document …; at most MAX_COMMANDS.

    With groups, the commands in `(…)` and `{ …; }` and after `!` are read too, and `&>` and `|&` of Bash.
    """
    commands: list[SimpleCommand] = []
    operator = ""
    for tokens, end in _split(_read_tokens(text, _STRICT), with_groups):
        command = _read_command(operator, tokens)
        is_readable = end.kind == "operator" and _is_simple(command, tokens)
        if not is_readable or len(commands) == MAX_COMMANDS:
            return CommandList(tuple(commands), operator, is_complete=False)
        if tokens:
            commands.append(command)
            operator = end.written.replace("\n", ";")
        elif end.written not in (";", "\n", "") and not with_groups:  # only these need no command before them
            return CommandList(tuple(commands), operator, is_complete=False)
    return CommandList(tuple(commands), operator, is_complete=True)


class WrittenCommand(NamedTuple):
    """One command of a list as it is written, with its keywords and groups, and the operator after it."""

    text: str
    operator: str  # `&&`, `||`, `|`, `|&`, `&` or `;`, and nothing for the last


def split_list(text: str) -> Iterator[WrittenCommand]:
    """Split a text at its operators, outside of quotes; the text of a here-document is left out."""
    text = re.sub(_HERE_DOCUMENT, r"\1", text.replace("\\\n", " "), flags=re.DOTALL)
    start = 0
    for kind, piece, position in read_pieces(text):
        if kind == "operator" and piece in _LIST_OPERATORS:
            if written := text[start:position].strip():
                yield WrittenCommand(written, piece.replace("\n", ";"))
            start = position + len(piece)


_HERE_DOCUMENT = r"(<<-?[ \t]*(['\"]?)(\w+)\2[^\n]*)\n.*?(?:\n[ \t]*\3(?=\n|$)|$)"


# Substitutions


def substituted_commands(command: SimpleCommand) -> Iterator[str]:
    """Yield the texts in the `$(…)` and backticks of a command's words, assignments and redirections."""
    targets = (word for _, word in command.redirects)
    for word in (*command.assignments, *command.words, *targets):
        for part in word.parts:
            if part.quoting == "substitution":
                found = re.findall(rf"\\.|({_SUBSTITUTION})", part.text, re.DOTALL)
                yield from (text[2 if text[0] == "$" else 1 : -1] for text in found if text)


# Tokens


class _Token(NamedTuple):
    kind: str  # "word", "redirect", "operator" or "unreadable"
    written: str
    start: int
    word: Word = Word(())


def _split(found: Iterator[_Token], with_groups: bool) -> Iterator[tuple[list[_Token], _Token]]:
    """Yield the words and redirections of each command, and what ends it: an operator, or what is unreadable."""
    tokens: list[_Token] = []
    for token in found:
        if token.written in _GROUPING and not with_groups:
            yield tokens, token._replace(kind="unreadable")
            return
        if token.kind not in ("word", "redirect"):
            yield tokens, token
            tokens = []
        elif tokens or not with_groups or token.written not in _LEADING:
            tokens.append(token)


def _read_tokens(text: str, syntax: str) -> Iterator[_Token]:
    parts: list[Part] = []
    start = 0
    for kind, piece, position in read_pieces(text, syntax):
        if kind in _PARTS:
            start = start if parts else position
            parts.append(_part(kind, piece))
            continue
        if parts:
            yield _Token("word", text[start:position], start, Word(tuple(parts)))
            parts = []
        if kind != "blank":
            yield _Token(kind, piece, position)


def read_pieces(text: str, syntax: str = _LENIENT) -> Iterator[tuple[str, str, int]]:
    """Yield the kind, the text and the position of each piece. The end of the text is an empty operator."""
    position, in_word, last, pattern = 0, False, "\n", _compile(syntax)
    while position < len(text):
        is_comment = text[position] == "#" and not in_word and last in _BEFORE_COMMENT
        match = (_COMMENT if is_comment else pattern).match(text, position)
        if match is None:
            yield "unreadable", "", position
            return
        kind = match.lastgroup or "blank"  # a comment, or what nothing else matches
        if kind != "continuation":
            in_word, last = kind in _PARTS, match[0][-1]
            yield kind, match[0], position
        position = match.end()
    yield "operator", "", position


@cache
def _compile(syntax: str) -> re.Pattern[str]:
    return re.compile(syntax, re.VERBOSE | re.DOTALL)


def _part(kind: str, piece: str) -> Part:
    if kind == "bare":
        return Part(piece.replace("\\\n", "") if "\\" in piece else piece, kind)
    if kind == "escape":
        return Part(piece[1:], "single")
    if kind == "substitution":
        return Part(piece.replace("\\\n", ""), kind)
    return Part(piece[1:-1], kind.removeprefix("quoted_"))


def _read_command(operator: str, tokens: list[_Token]) -> SimpleCommand:
    words: list[_Token] = []
    assignments: list[Word] = []
    redirects: list[tuple[str, Word]] = []
    redirect = ""
    for token in tokens:
        if token.kind == "redirect":
            redirect = token.written
        elif redirect:
            redirects.append((redirect, token.word))
            redirect = ""
        elif not words and _ASSIGNMENT.match(token.written):
            assignments.append(token.word)
        else:
            words.append(token)
    span = (words[0].start, tokens[-1].start + len(tokens[-1].written)) if words else (0, 0)
    plain = tuple(word.word for word in words)
    return SimpleCommand(operator, plain, tuple(assignments), tuple(redirects), span)


def _is_simple(command: SimpleCommand, tokens: list[_Token]) -> bool:
    """Return whether the command does not begin with a keyword, and each redirection has a target."""
    name = command.words[0].plain if command.words else None
    has_targets = len(command.redirects) == sum(token.kind == "redirect" for token in tokens)
    return has_targets and not (name is not None and (name in KEYWORDS or name in _LEADING))


# Expansion

MAX_EXPANDED_CHARS = 10_000  # of a word; what a longer one means is not known

_VARIABLE = r"(?a)\$(?:(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)(?::?-(?P<default>[^${}]*))?\})"
_ESCAPED = r"\\(?:([\"\\$`])|\n)"


class Expansion(NamedTuple):
    text: str
    unset: tuple[str, ...] = ()  # variables that are not set and therefore empty


def expand(word: Word, variables: Mapping[str, str | None], home: str) -> Expansion | None:
    """Return the word as the shell expands it, or None if that is not known: a glob, a substitution, a variable that is None …"""
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
