"""Reads a shell command into the forms in which a permission rule may name what it runs.

A condition is a filter: what the value of a variable makes the shell run is not looked for.
"""

import re
from collections.abc import Iterator, Sequence

from turngate.core.shell.invocation import RUNNERS, SHELLS, WRAPPERS, basename
from turngate.core.shell.parse import (
    KEYWORDS,
    UNKNOWN,
    Part,
    read_commands,
    read_pieces,
)
from turngate.core.text import wildcard_matches

MAX_COMMAND_CHARS = 100_000  # a longer command is not parsed
MAX_WORDS = 30  # of a command whose words are left out one after the other

_EXPANDED = re.compile(r"(?!^[\[{]$)[$*?\[{~]")  # `[` alone is a program, `{` a keyword
# What a shell may run although it is quoted, as in `a['$(…)']`, and braces in which quotes have another meaning.
_HIDDEN = re.compile(r"""\$\(|\$\{[^}]*['"\\`]""")
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_IN_DOUBLE_QUOTES = re.compile(r"\\([$`\"\\])|\\\n|\$")
# Programs that may take the command that they run from an option, a string or a file.
_WRAPPERS = RUNNERS | frozenset(
    "command builtin exec eval su ssh chroot unshare nsenter runuser systemd-run trap alias".split()
)
_READERS = frozenset(
    [".", "source", "compgen", "complete", "fc", "bind", "enable", "let"]
)  # with an argument
_PREFIXES = frozenset(WRAPPERS) - _WRAPPERS  # they run their last arguments
_SHELLS = SHELLS | {"fish"}
_RUNNERS = _WRAPPERS | _READERS | _SHELLS | _PREFIXES | {"find"}


def command_matches(pattern: str, text: str) -> bool:
    """Return whether one of the commands that the shell would run matches; `git:*` is an old form of `git *`."""
    forms = command_forms(text)
    if forms is None:
        return True
    pattern = re.sub(r":\*$", " *", pattern)
    bare = pattern.removesuffix(" *") if pattern.count("*") == 1 else pattern
    return any(_may_match(pattern, form) or form == bare for form in forms)


def _may_match(pattern: str, form: str) -> bool:
    """Return whether the form matches, or may match because a part of it is unknown."""
    known, unknown, _ = form.partition(UNKNOWN)
    if not unknown:
        return wildcard_matches(pattern, form)
    first = pattern.partition("*")[0]
    return known.startswith(first) or first.startswith(known)


def command_forms(text: str) -> list[str] | None:
    """Return each command of a list, pipeline or group in all its forms; None if not all of them are known."""
    if len(text) > MAX_COMMAND_CHARS:
        return None
    joined = _join_lines(text)
    if _HIDDEN.search(joined):
        return None
    forms = _read_forms(joined)
    if forms is None or "&>" not in joined:
        return forms
    # Only Bash reads `a &>x b` as one command; for another shell they are `a` and `b`.
    others = _read_forms(joined.replace("&>", "& >"))
    return None if others is None else forms + others


def _join_lines(text: str) -> str:
    """Return the command without continued lines and comments."""
    pieces: list[str] = []
    for kind, piece, _ in read_pieces(text):
        if kind == "blank" and piece[0] == "#":
            continue
        plain = _ESCAPED.sub(lambda found: "" if found[0] == "\\\n" else found[0], piece)
        pieces.append(plain if kind in ("double", "bare") else piece)
    return "".join(pieces)


def _read_forms(text: str) -> list[str] | None:
    read = read_commands(text, with_groups=True)
    if not read.is_complete:
        return None
    forms: list[str] = []
    for command in read.commands:
        words = ["".join(map(_text, word.parts)) for word in command.words]
        if command.has_substitution or _runs_another(words):
            return None
        if words:
            forms += [text[slice(*command.span)], *_forms(words)]
    return forms


def _text(part: Part) -> str:
    """Return a part of a word as the shell expands it; what only the shell knows is UNKNOWN."""
    if part.quoting == "single":
        return part.text
    if part.quoting == "double":
        return _IN_DOUBLE_QUOTES.sub(lambda found: UNKNOWN if found[0] == "$" else found[1] or "", part.text)
    return _EXPANDED.sub(UNKNOWN, part.text)


def _runs_another(words: Sequence[str]) -> bool:
    """Return whether the command runs another that is not known, also after a prefix such as `timeout 5`."""
    starts = range(len(words)) if words and basename(words[0]) in _PREFIXES else range(min(len(words), 1))
    return any(_is_wrapper(words[start:]) for start in starts)


def _is_wrapper(words: Sequence[str]) -> bool:
    name = basename(words[0])
    if name in _SHELLS:  # with a script it is a command like any other
        return len(words) == 1 or words[1].startswith(("-", UNKNOWN))
    runs_found = name == "find" and any(word.startswith(("-exec", "-ok")) for word in words)
    reads = name in _READERS and len(words) > 1
    known, unknown, _ = name.partition(UNKNOWN)
    may_be_runner = bool(unknown) and any(each.startswith(known) for each in _RUNNERS)
    return name in _WRAPPERS or reads or words[0] in KEYWORDS or runs_found or may_be_runner


def _forms(words: Sequence[str]) -> Iterator[str]:
    """Yield the command without quotes and redirections, and without a path, a prefix, or options before a word."""
    name = basename(words[0])
    is_prefix = name in _PREFIXES
    for start in range(min(len(words), MAX_WORDS) if is_prefix else 1):
        yield from _forms_without_options(words[start:])
    if is_prefix and len(words) > MAX_WORDS:
        yield UNKNOWN


def _forms_without_options(words: Sequence[str]) -> Iterator[str]:
    name = basename(words[0])
    yield " ".join(words)
    yield " ".join([name, *words[1:]])
    if len(words) > 1 and words[1].startswith("-"):  # `git -C x commit`
        for start in range(2, min(len(words), MAX_WORDS)):
            yield " ".join([name, *words[start:]])
        if len(words) > MAX_WORDS:
            yield f"{name} {UNKNOWN}"
