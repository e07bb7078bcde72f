"""The line with which another agent program runs Turngate: `turngate hook`. Turngate itself never runs it."""

import re

from turngate.core.hooks.kinds import CommandHook, Hook

_WORD = r"""(?:"[^"]*"|'[^']*'|\\.|[^\s"'\\;&|()<>])+"""
_COMMAND = (
    rf"(?:exec\s+|env\s+|\w+=[^\s;&|]*\s+)*(?P<program>{_WORD})"
    r"(?P<launched>(?:\s+-\w+)*\s+-m\s+turngate|(?:\s+tool)?\s+run\s+turngate|\s+turngate|)\s+hook"
)
_ARGUMENTS = r"(?:[ \t]+[^;&|<>()\n]*)?"
_LINE = re.compile(rf"\s*{_COMMAND}{_ARGUMENTS}\s*")
_FOUND = rf"command\s+-v\s+{_WORD}(?:\s*>\s*/dev/null)?(?:\s*2>\s*(?:&1|/dev/null))?"
_MESSAGE = rf"(?:true|:|(?:echo|printf)\s+{_WORD}(?:\s*>&2)?)"
# `turngate install` writes it for a project: `command -v turngate >/dev/null 2>&1 && turngate hook || …`.
_GUARDED_LINE = re.compile(
    rf"\s*(?:{_FOUND}\s*&&\s*{_COMMAND}{_ARGUMENTS}(?:\s*\|\|\s*{_MESSAGE})?"
    rf"|if\s+{_FOUND}\s*;\s*then\s+{_COMMAND.replace('?P<', '?P<if_')}{_ARGUMENTS}\s*;(?:\s*else\s+{_MESSAGE}\s*;)?\s*fi)\s*"
)
# What runs one command and nothing else.
_WRAPPER = re.compile(
    r"\s*(?:(?:/[\w/]+/)?(?:timeout(?:\s+-[ks]\s*\w+)*\s+\d[\d.]*[smhd]?|nice(?:\s+(?:-n\s*)?-?\d+)?)\s+"
    rf"|cd\s+{_WORD}\s*&&\s*)"
)
_SHELLS = ("sh", "bash", "dash", "zsh")
_SHELL = re.compile(rf"""\s*(?:/[\w/]+/)?(?:{"|".join(_SHELLS)})\s+-c\s+(?:'([^']*)'|"([^"$\\]*)")\s*""")
_SUBSTITUTION = re.compile(r"`|\$\(")
_QUOTES = re.compile(r"""["'\\]""")


def is_hook_line(command: str) -> bool:
    """Return whether a shell command runs `turngate hook` and nothing else, also if it first looks for the program."""
    if "turngate" not in command or _SUBSTITUTION.search(command):
        return False
    command = without_wrappers(command)
    match = _LINE.fullmatch(command) or _GUARDED_LINE.fullmatch(command)
    if match is None:
        return False
    found = {name.removeprefix("if_"): text for name, text in match.groupdict().items() if text is not None}
    return _is_turngate(found["program"], found["launched"].split())


def without_wrappers(command: str) -> str:
    """Return the command that `timeout 60 COMMAND`, `nice COMMAND`, `cd FOLDER && COMMAND` or `sh -c 'COMMAND'` runs."""
    while True:
        if match := _WRAPPER.match(command):
            command = command[match.end() :]
        elif match := _SHELL.fullmatch(command):
            command = match[1] or match[2] or ""
        else:
            return command


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
    if words[0] in _SHELLS and words[1:2] == ["-c"] and len(words) == 3:
        return is_hook_line(words[2])
    return words[:2] == ["turngate", "hook"] or words[1:4] == ["-m", "turngate", "hook"]
