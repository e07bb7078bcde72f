"""The line with which another agent program runs Turngate: `turngate hook`. Turngate itself never runs it."""

import re

from turngate.core.hooks import CommandHook, Hook

_WORD = r"""(?:"[^"]*"|'[^']*'|\\.|[^\s"'\\;&|()<>])+"""
_COMMAND = (
    rf"(?:exec\s+|env\s+|\w+=[^\s;&|]*\s+)*(?P<program>{_WORD})"
    r"(?P<launched>(?:\s+-\w+)*\s+-m\s+turngate|(?:\s+tool)?\s+run\s+turngate|\s+turngate|)\s+hook"
)
_LINE = re.compile(rf"\s*{_COMMAND}(?:\s+[^;&|<>()]*)?")
# `turngate install` writes it for a project: `command -v turngate >/dev/null 2>&1 && turngate hook || …`.
_GUARDED_LINE = re.compile(
    rf"\s*(?:if\s+)?command\s+-v\s+{_WORD}[\s\w/>&]*?(?:&&|;\s*then)\s*{_COMMAND}(?:[\s;|&].*)?", re.DOTALL
)
_QUOTES = re.compile(r"""["'\\]""")


def is_hook_line(command: str) -> bool:
    """Return whether a shell command runs `turngate hook` and nothing else, also if it first looks for the program."""
    if "turngate" not in command:
        return False
    match = _LINE.fullmatch(command) or _GUARDED_LINE.fullmatch(command)
    return match is not None and _is_turngate(match["program"], match["launched"].split())


def _is_turngate(program: str, launched: list[str]) -> bool:
    name = _QUOTES.sub("", program).rpartition("/")[2]
    if not launched:
        return name == "turngate"
    if "-m" in launched:
        return name.startswith("python")
    return name == "uvx" if launched == ["turngate"] else name in ("uv", "pipx")


def runs_turngate_hook(hook: Hook) -> bool:
    """Return whether a hook is the line of another agent program."""
    if not isinstance(hook, CommandHook):
        return False
    if hook.args is None:
        return is_hook_line(hook.command)
    words = [hook.command.rpartition("/")[2], *hook.args]
    return words[:2] == ["turngate", "hook"] or words[1:4] == ["-m", "turngate", "hook"]
