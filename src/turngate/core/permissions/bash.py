"""Reads a shell command into the forms in which a permission rule may name what it runs.

Where a shell takes text for a command or an arithmetic expression (`a[$(…)]`), what runs is not known. Measured with Bash 5.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from turngate.core.shell.invocation import RUNNERS, SHELLS, WRAPPERS
from turngate.core.shell.parse import (
    UNKNOWN,
    Part,
    SimpleCommand,
    Word,
    is_keyword,
    read_commands,
    read_pieces,
)
from turngate.core.text import wildcard_matches

_ESCAPED = re.compile(r"\\.", re.DOTALL)


def join_lines(text: str) -> tuple[str, str]:
    """Return the command without continued lines and comments, and its text in which a shell expands something.

    In the latter, what is quoted is `''`, but for double quotes: in them only what is escaped is left out.
    """
    joined: list[str] = []
    expanded: list[str] = []
    for kind, piece, _ in read_pieces(text):
        if kind == "blank" and piece[0] == "#":
            continue
        is_joined = kind in ("double", "bare")
        plain = _ESCAPED.sub(lambda found: "" if found[0] == "\\\n" else found[0], piece)
        joined.append(plain if is_joined else piece)
        expanded.append("''" if kind in ("single", "escape") else _ESCAPED.sub("", piece))
    return "".join(joined), "".join(expanded)


# `${…}` that is replaced by a value or by the text in it, as opposed to `${x@P}`, `${!x}`, `${x:y}` and `${x[y]}`.
_VALUE = r"""\#?(?:[A-Za-z_]\w*|\d+|[@*?\#$-])(?:\[(?:\d+|[@*])\])?
    (?:(?::?[-+=?]|[\#%/^,])[^{}()'"\\`]*|:\d+(?::\d+)?)?\}"""
_EXPRESSION = re.compile(rf"\$\[|\$\{{(?!{_VALUE})", re.VERBOSE | re.ASCII)
_UNQUOTED_EXPRESSION = re.compile(r"\(\(|\]\}[<>]")  # `((x))`, `{a[x]}>file`


def has_expression(expanded: str) -> bool:
    """Return whether an expansion evaluates what its variables hold, given the second result of `join_lines`."""
    unquoted = re.sub(r'"[^"]*"', '""', expanded)
    return bool(_EXPRESSION.search(expanded) or _UNQUOTED_EXPRESSION.search(unquoted))


_ASSIGNMENT = re.compile(r"\w+(?:\[\d+\])?\+?=", re.ASCII)
_ELEMENT = re.compile(r"\w*\[.", re.ASCII | re.DOTALL)  # `a[1 + 2]=3` is no word, but an assignment
# Variables whose value is evaluated, or names what is run.
_EVALUATED = re.compile(
    r"(?<!\w)(?:PS4|PS0|PROMPT_COMMAND|BASH_ENV|BASH_ALIASES|BASH_CMDS)(?!\w)"
    rf"|(?<![\w{{{UNKNOWN}])(?:RANDOM|SRANDOM|OPTIND|HISTCMD)(?!\w)"
)
# Builtins that run their arguments or a file, or evaluate them.
EVALUATORS = frozenset([".", "source", "compgen", "complete", "fc", "bind", "enable", "let"])
# Builtins that take names of variables: safe if these are only names.
_DECLARATIONS = frozenset(["declare", "typeset", "local", "export", "readonly"])
_NAMES = frozenset(["read", "unset", "getopts", "mapfile", "readarray", "wait", "jobs", "hash"])
BUILTINS = EVALUATORS | _DECLARATIONS | _NAMES | {"printf", "test"}
_DECLARED = re.compile(r"[A-Za-z_]\w*(?:\+?=.*)?|-[^\W_in]+", re.ASCII | re.DOTALL)
_RUNNING_OPTIONS = {"mapfile": "C", "readarray": "C", "wait": "p", "jobs": "x", "hash": "p"}
_SPECIAL = re.compile(r"\$[?#!$]")


def evaluates(command: SimpleCommand, words: Sequence[str]) -> bool:
    """Return whether the command evaluates text, given its words as the shell expands them."""
    assigned = ["".join(part.text for part in word.parts) for word in command.assignments]
    if any(_EVALUATED.search(text) for text in (*assigned, *words)):
        return True
    if not all(map(_ASSIGNMENT.match, assigned)):
        return True
    leading = 0
    while leading < len(words) and words[leading] in ("time", "-p", "--"):
        leading += 1
    if leading == len(words):
        return False
    first, *written = command.words[leading:]
    text = "".join(part.text for part in first.parts)
    if first.parts[0].quoting == "bare" and _ELEMENT.match(text):
        return True
    return _builtin_evaluates(words[leading], words[leading + 1 :], written)


def _builtin_evaluates(name: str, arguments: Sequence[str], written: Sequence[Word]) -> bool:
    if name in EVALUATORS:
        return bool(arguments)
    if name in _DECLARATIONS:
        return not all(map(_DECLARED.fullmatch, arguments))
    if name == "printf":
        option, variable, *_ = (*arguments, "", "")
        return option.startswith(("-v", UNKNOWN)) and not variable.isidentifier()
    if name in ("test", "["):
        return _test_evaluates(arguments, written)
    if name not in _NAMES:
        return False
    options = "".join(each for each in arguments if each.startswith("-"))
    return _RUNNING_OPTIONS.get(name, "\n") in options or any(
        "[" in text or (UNKNOWN in text and not _is_special(word))
        for text, word in zip(arguments, written, strict=True)
    )


def _is_special(word: Word) -> bool:
    """Return whether the word is a number that the shell sets, such as `$?`."""
    return all(_SPECIAL.fullmatch(part.text) for part in word.parts)


def _test_evaluates(arguments: Sequence[str], written: Sequence[Word]) -> bool:
    """`-v 'a[…]'` evaluates the index. An unquoted variable, and two in sequence, can be an option and its value."""
    unknown = [UNKNOWN in text for text in arguments]
    has_option = any(option in arguments for option in ("-v", "-R"))
    return (
        any("[" in text for text in arguments)
        or (has_option and any(unknown))
        or any(first and second for first, second in pairwise(unknown))
        or any(_splits(word) for word in written)
    )


def _splits(word: Word) -> bool:
    return any(part.quoting == "bare" and "$" in _SPECIAL.sub("", part.text) for part in word.parts)


MAX_COMMAND_CHARS = 100_000  # a longer command is not parsed
MAX_WORDS = 30  # of a command whose words are left out one after the other

_EXPANDED = re.compile(r"(?!^[\[{]$)[$*?\[{~]")  # `[` alone is a program, `{` a keyword
_IN_DOUBLE_QUOTES = re.compile(r"\\([$`\"\\])|\\\n|\$")
# Programs that may take the command that they run from an option, a string or a file.
_WRAPPERS = RUNNERS | frozenset(
    "command builtin exec eval su ssh chroot unshare nsenter runuser systemd-run trap alias".split()
)
_PREFIXES = frozenset(WRAPPERS) - _WRAPPERS  # they run their last arguments
_SHELLS = SHELLS | {"fish"}
_RUNNERS = _WRAPPERS | _SHELLS | _PREFIXES | BUILTINS | {"find"}


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
    joined, expanded = join_lines(text)
    if has_expression(expanded):
        return None
    forms = _read_forms(joined)
    if forms is None or "&>" not in joined:
        return forms
    # Only Bash reads `a &>x b` as one command; for another shell they are `a` and `b`.
    others = _read_forms(joined.replace("&>", "& >"))
    return None if others is None else forms + others


def _read_forms(text: str) -> list[str] | None:
    read = read_commands(text, with_groups=True)
    if not read.is_complete:
        return None
    forms: list[str] = []
    for command in read.commands:
        words = ["".join(map(_text, word.parts)) for word in command.words]
        if command.has_substitution or _runs_another(words) or evaluates(command, words):
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


def _name(words: Sequence[str]) -> str:
    return words[0].rpartition("/")[2]


def _runs_another(words: Sequence[str]) -> bool:
    """Return whether the command runs another that is not known, also after a prefix such as `timeout 5`."""
    starts = range(len(words)) if words and _name(words) in _PREFIXES else range(min(len(words), 1))
    return any(_is_wrapper(words[start:]) for start in starts)


def _is_wrapper(words: Sequence[str]) -> bool:
    """Return whether the command runs another that is not known."""
    name = _name(words)
    if name in _SHELLS:  # with a script it is a command like any other
        return len(words) == 1 or words[1].startswith(("-", UNKNOWN))
    runs_found = name == "find" and any(word.startswith(("-exec", "-ok")) for word in words)
    return name in _WRAPPERS or is_keyword(words[0]) or runs_found or _may_be_runner(name)


def _may_be_runner(name: str) -> bool:
    """Return whether a name that is only partly known can be that of a program which runs another."""
    known, unknown, _ = name.partition(UNKNOWN)
    return bool(unknown) and any(each.startswith(known) for each in _RUNNERS)


def _forms(words: Sequence[str]) -> Iterator[str]:
    """Yield the command without quotes and redirections, and without a path, a prefix, or options before a word."""
    name = _name(words)
    is_prefix = name in _PREFIXES
    for start in range(min(len(words), MAX_WORDS) if is_prefix else 1):
        yield from _forms_without_options(words[start:])
    if is_prefix and len(words) > MAX_WORDS:
        yield UNKNOWN


def _forms_without_options(words: Sequence[str]) -> Iterator[str]:
    name = _name(words)
    yield " ".join(words)
    yield " ".join([name, *words[1:]])
    if len(words) > 1 and words[1].startswith("-"):  # `git -C x commit`
        for start in range(2, min(len(words), MAX_WORDS)):
            yield " ".join([name, *words[start:]])
        if len(words) > MAX_WORDS:
            yield f"{name} {UNKNOWN}"
