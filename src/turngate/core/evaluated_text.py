"""Finds where a shell takes text for a command or an arithmetic expression: what runs then is not in the command's words.

An arithmetic expression can run commands too: `a[$(…)]`. Measured with Bash 5.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from turngate.core.shell_syntax import SimpleCommand, Word

_SCANNED = re.compile(
    r"""(?P<joined>\\\n)|(?P<single>'[^']*')|(?P<double>"(?:[^"\\]|\\.)*")|(?P<escape>\\.)
    |(?P<comment>\#[^\n]*)|(?P<separator>[\s;&|<>()])|(?P<plain>[^'"\\\#\s;&|<>()]+|.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPED = re.compile(r"\\.", re.DOTALL)


def join_lines(text: str) -> tuple[str, str]:
    """Return the command without continued lines and comments, and its text in which a shell expands something.

    In the latter, what is quoted is `''`, but for double quotes: in them only what is escaped is left out.
    """
    joined: list[str] = []
    expanded: list[str] = []
    position, in_word = 0, False
    while match := _SCANNED.match(text, position):
        kind, piece, position = match.lastgroup, match[0], match.end()
        if kind == "comment" and in_word:
            kind, piece, position = "plain", "#", match.start() + 1
        if kind == "double":
            piece = _ESCAPED.sub(lambda found: "" if found[0] == "\\\n" else found[0], piece)
        if kind not in ("joined", "comment"):
            in_word = kind != "separator"
            joined.append(piece)
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


UNKNOWN = "\0"  # in the text of a word: what only the shell knows, such as the value of a variable

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
    first = command.words[leading].parts[0]
    is_element = first.quoting == "bare" and _ELEMENT.match(
        "".join(p.text for p in command.words[leading].parts)
    )
    return bool(is_element) or _builtin_evaluates(
        words[leading], words[leading + 1 :], command.words[leading + 1 :]
    )


def _builtin_evaluates(name: str, arguments: Sequence[str], written: Sequence[Word]) -> bool:
    if name in EVALUATORS:
        return bool(arguments)
    if name in _DECLARATIONS:
        return not all(map(_DECLARED.fullmatch, arguments))
    if name == "printf":
        return bool(arguments) and arguments[0].startswith(("-v", UNKNOWN)) and not _is_name(arguments[1:2])
    if name in ("test", "["):
        return _test_evaluates(arguments, written)
    if name not in _NAMES:
        return False
    options = "".join(each for each in arguments if each.startswith("-"))
    return _RUNNING_OPTIONS.get(name, "\n") in options or any(
        "[" in text or (UNKNOWN in text and not _is_special(word))
        for text, word in zip(arguments, written, strict=True)
    )


def _is_name(arguments: Sequence[str]) -> bool:
    return bool(arguments) and arguments[0].isidentifier()


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
