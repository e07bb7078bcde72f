"""Reads the command of a shell into the forms in which a permission rule may name what it runs."""

import re
from collections.abc import Iterator, Sequence

from turngate.core.evaluated_text import BUILTINS, UNKNOWN, evaluates, has_expression, join_lines
from turngate.core.shell_syntax import Part, SimpleCommand, is_keyword, read_commands
from turngate.core.text import wildcard_matches

MAX_COMMAND_CHARS = 100_000  # a longer command is not parsed
MAX_WORDS = 30  # of a command whose words are left out one after the other

_EXPANDED = re.compile(r"(?!^[\[{]$)[$*?\[{~]")  # `[` alone is a program, `{` a keyword
_IN_DOUBLE_QUOTES = re.compile(r"\\([$`\"\\])|\\\n|\$")
# Programs that run their last arguments.
_PREFIXES = frozenset(["time", "nice", "nohup", "stdbuf", "timeout"])
# Programs that may take the command that they run from an option, a string or a file.
_WRAPPERS = frozenset(
    [
        "env",
        "command",
        "builtin",
        "exec",
        "eval",
        "sudo",
        "doas",
        "su",
        "xargs",
        "parallel",
        "watch",
        "ssh",
        "setsid",
        "flock",
        "chroot",
        "ionice",
        "taskset",
        "chrt",
        "strace",
        "script",
        "unshare",
        "nsenter",
        "runuser",
        "systemd-run",
        "busybox",
        "trap",
        "alias",
    ]
)
_SHELLS = frozenset(["sh", "bash", "dash", "zsh", "ksh", "fish"])
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
        if _has_substitution(command) or _runs_another(words) or evaluates(command, words):
            return None
        if words:
            forms += [text[slice(*command.span)], *_forms(words)]
    return forms


def _has_substitution(command: SimpleCommand) -> bool:
    targets = (word for _, word in command.redirects)
    return any(word.has_substitution for word in (*command.words, *command.assignments, *targets))


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
