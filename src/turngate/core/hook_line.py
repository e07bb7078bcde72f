"""The line with which another agent program runs Turngate: `turngate hook`. Turngate itself never runs it."""

import re

from turngate.core.hooks import CommandHook, Hook

_PROGRAM = r"""(?:"[^"]*/turngate"|'[^']*/turngate'|[^\s"';&|()<>]*/turngate|turngate)"""
_LAUNCHER = r"""(?:(?:"[^"]*python[\d.]*"|'[^']*python[\d.]*'|[^\s"';&|()<>]*python[\d.]*)\s+(?:-\w+\s+)*-m"""
_LAUNCHER += r"|uvx|uv\s+run|pipx\s+run)\s+"
_LINE = re.compile(
    rf"""\s*(?:exec\s+|env\s+|\w+=[^\s;&|]*\s+)*(?:{_LAUNCHER}turngate|{_PROGRAM})\s+hook(?:\s+[^;&|<>()]*)?"""
)
_GUARDED_LINE = re.compile(r"\s*(?:if\s+)?command\s+-v\s+turngate\b.*\bturngate\s+hook\b", re.DOTALL)


def is_hook_line(command: str) -> bool:
    """Return whether a shell command runs `turngate hook` and nothing else, also if it first looks for the program."""
    if "turngate" not in command:
        return False
    return bool(_LINE.fullmatch(command) or _GUARDED_LINE.match(command))


def runs_turngate_hook(hook: Hook) -> bool:
    """Return whether a hook is the line of another agent program."""
    if not isinstance(hook, CommandHook):
        return False
    if hook.args is None:
        return is_hook_line(hook.command)
    words = [hook.command.rpartition("/")[2], *hook.args]
    return words[:2] == ["turngate", "hook"] or words[1:4] == ["-m", "turngate", "hook"]
