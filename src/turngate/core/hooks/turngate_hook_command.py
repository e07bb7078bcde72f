"""The line with which another agent program runs Turngate: `turngate hook`. Turngate itself never runs it."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from turngate.core.hooks.kinds import CommandHook, Hook

_NAME = "turngate"
_IF = r"(?s)if\s(.*?);\s*then\s(.*?);(?:\s*else\s(.*);)?\s*fi"
_LAUNCHERS = {"uvx": (), "uv": ("run",), "pipx": ("run",)}
_NO_OUTPUT = frozenset([(">", "/dev/null"), ("2>", "/dev/null"), ("2>&", "1")])
_MESSAGES = (["true"], [":"], ["echo"], ["printf"])


class HookLine(NamedTuple):
    words: tuple[str, ...]  # that start Turngate, before `hook`
    guard: str | None = None  # the program that `command -v` looks for first


def runs_turngate_hook(hook: Hook) -> bool:
    """Return whether a hook is the line of another agent program."""
    if not isinstance(hook, CommandHook):
        return False
    if hook.args is None:
        return is_hook_line(hook.command)
    return _NAME in hook.command + " ".join(hook.args) and _read_words([hook.command, *hook.args]) is not None


def is_hook_line(command: str) -> bool:
    """Return whether a shell command runs `turngate hook` and nothing else, also if it first looks for the program."""
    return _NAME in command and read_hook_line(command) is not None


def read_hook_line(command: str) -> HookLine | None:
    """Return how a line starts Turngate: `timeout 60 turngate hook`, `cd FOLDER && sh -c 'turngate hook'` …

    `turngate install` writes for a project: `command -v turngate >/dev/null 2>&1 && turngate hook || …`.
    """
    from turngate.core.shell.parse import SimpleCommand, read_commands  # noqa: PLC0415 # lazy: few lines name Turngate

    def texts(command: SimpleCommand) -> list[str]:
        return ["".join(part.text for part in word.parts) for word in command.words]

    def redirects(command: SimpleCommand) -> set[tuple[str, str | None]]:
        return {(operator, word.plain) for operator, word in command.redirects}

    if match := re.fullmatch(_IF, command.strip()):
        command = f"{match[1]} && {match[2]} || {match[3] or 'true'}"
    read = read_commands(command.strip())
    if not read.is_complete or read.end or any(each.has_substitution for each in read.commands):
        return None
    first, *rest = read.commands or [SimpleCommand("", ())]
    while rest and rest[0].operator == "&&" and texts(first)[:1] == ["cd"] and len(first.words) == 2:
        first, *rest = rest
    if not rest:
        return None if first.redirects else _read_words(texts(first))
    found, *messages = rest
    is_guarded = texts(first)[:2] == ["command", "-v"] and len(first.words) == 3
    is_quiet = redirects(first) <= _NO_OUTPUT and not first.assignments and not found.redirects
    if not is_guarded or not is_quiet or found.operator != "&&" or len(messages) > 1:
        return None
    for message in messages:
        is_message = texts(message)[:1] in _MESSAGES and redirects(message) <= {(">&", "2")}
        if message.operator != "||" or not is_message:
            return None
    line = _read_words(texts(found))
    return line and line._replace(guard=texts(first)[2])


def _read_words(words: Sequence[str]) -> HookLine | None:
    from turngate.core.shell.invocation import SHELLS, basename, skip_wrappers  # noqa: PLC0415 # lazy: as above

    start = skip_wrappers(words)
    words = words[start:] if start is not None else ()
    if not words:
        return None
    name = basename(words[0])
    if name in SHELLS and len(words) == 3 and words[1] == "-c":
        return read_hook_line(words[2]) if _NAME in words[2] else None
    own = tuple(words[: words.index("hook")]) if "hook" in words else ()
    return HookLine(own) if own and _starts_turngate(name, own[1:]) else None


def _starts_turngate(name: str, launched: tuple[str, ...]) -> bool:
    *options, last = launched or ("",)
    if options[-1:] == ["-m"]:
        return last == _NAME and name.startswith("python") and all(each.startswith("-") for each in options)
    if not launched:
        return name == _NAME
    before = tuple(options[1:] if options[:1] == ["tool"] and name == "uv" else options)
    return last == _NAME and _LAUNCHERS.get(name) == before
