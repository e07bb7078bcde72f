"""Reads commands with a condition, in a time that is proportional to their length."""

import re
from collections.abc import Mapping

from turngate.core.shell.parse import CommandList, SimpleCommand, read_commands

MAX_BRANCH_POSITION = 20_000  # a branch beyond it is not looked for

Parts = tuple[str, str, str]  # the commands before the check, the check, and what it decides about

_IF_KEYWORD = re.compile(r"(?:^|[;\n])[^\S\n]*(if|then|fi)\b")
_NEGATION = re.compile(r"\s*!\s")
_GROUP_START = re.compile(r"(?:\|\||&&)\s*\{\s")


def split_branch(text: str) -> Parts | tuple[()]:
    """Return the parts of a command that consists of one condition; nothing for any other."""
    return _split_if(text) or _split_group(text) or ()


def _split_if(text: str) -> Parts | None:
    """`BEFORE; if CHECK; then BODY; fi`. What follows is nothing, or `exit 0`."""
    keywords = list(_IF_KEYWORD.finditer(text))
    if [match[1] for match in keywords] != ["if", "then", "fi"]:
        return None
    start, then, end = keywords
    check = text[start.end() : then.start()]
    negation = _NEGATION.match(check)
    parts = (
        text[: start.start()],
        check[negation.end() :] if negation else check,
        text[then.end() : end.start()],
    )
    return parts if _ends_there(text[end.end() :]) else None


def _split_group(text: str) -> Parts | None:
    """`BEFORE; CHECK || { BODY; }`, also with `&&`."""
    start, end = _GROUP_START.search(text), text.rfind("}")
    if start is None or end < start.end() or not _ends_there(text[end + 1 :]):
        return None
    body, before = text[start.end() : end], text[: start.start()]
    if not body.rstrip(" \t").endswith((";", "\n")):
        return None
    check = max(before.rfind(";"), before.rfind("\n")) + 1
    return before[:check], before[check:], body


def _ends_there(rest: str) -> bool:
    return rest.replace(";", " ").split() in ([], ["exit", "0"])


# What runs when a check fails: `CHECK || { BODY; }` and `if ! CHECK; then BODY; fi`, without a group in BODY.
_BRANCHES = (
    re.compile(r"\|\|\s*\{\s(?P<body>[^{}]{0,1000}?)[;\n][^\S\n]*\}"),
    re.compile(
        r"(?:^|[;\n])[^\S\n]*if\s+!\s(?P<check>[^\n;{}]{0,500})[;\n]\s*then\s(?P<body>[^{}]{0,1000}?)[;\n][^\S\n]*fi\b"
    ),
)


def read_with_branch(text: str) -> CommandList:
    """Return the commands up to the first that is not simple; if that is a branch, its check and its exit."""
    commands = read_commands(text)
    if commands.is_complete:
        return commands
    for pattern in _BRANCHES:
        branch = pattern.search(text, 0, MAX_BRANCH_POSITION)
        before = read_commands(text[: branch.start()]) if branch else None
        if branch and before and before.is_complete and len(before.commands) == len(commands.commands):
            return _add_branch(commands, branch.groupdict())
    return commands


def _add_branch(commands: CommandList, branch: Mapping[str, str]) -> CommandList:
    check, body = (read_commands(branch.get(name, "")) for name in ("check", "body"))
    last = body.commands[-1] if body.is_complete and body.commands else None
    checks = (*commands.commands, *check.commands)
    if last is None or not checks or not check.is_complete or program_name(last) != "exit":
        return commands
    # The body gives the reason, so it does not matter where the output of the check goes.
    failing = checks[-1]._replace(redirects=())
    added = (*checks[:-1], failing, last._replace(operator="||"))
    return CommandList(added, "", is_complete=False)


def program_name(command: SimpleCommand) -> str | None:
    return command.words[0].plain if command.words else None
