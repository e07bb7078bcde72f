"""The variables that hooks of a Claude Code plugin have: its folder, and a folder for its data."""

import re
from collections.abc import Container, Mapping
from dataclasses import replace

from turngate.core.hooks.kinds import CommandHook, HttpHook

PLUGIN_ROOT = "CLAUDE_PLUGIN_ROOT"
PLUGIN_DATA = "CLAUDE_PLUGIN_DATA"

_IN_BRACES = rf"\$\{{({PLUGIN_ROOT}|{PLUGIN_DATA})\}}"
_ANY_FORM = rf"\$(?:\{{({PLUGIN_ROOT}|{PLUGIN_DATA})\}}|({PLUGIN_ROOT}|{PLUGIN_DATA})\b)"
# Means the same to a shell, inside and outside of quotes.
_PLAIN_PATH = r"(?a)[\w/.@%+:,-]*"


def expand_plugin_variables(hook: CommandHook) -> CommandHook:
    """Replace `${CLAUDE_PLUGIN_ROOT}` and `${CLAUDE_PLUGIN_DATA}`, as Claude Code does.

    In a shell command only a plain path is inserted. Any other one is left to the shell, which has the variable and
    cannot take a part of its value for a command.
    """
    if PLUGIN_ROOT not in hook.env:
        return hook
    if hook.args is None:
        plain = {name: value for name, value in hook.env.items() if re.fullmatch(_PLAIN_PATH, value)}
        return replace(hook, command=_expand(hook.command, plain))
    command, *args = (_expand(word, hook.env) for word in (hook.command, *hook.args))
    return replace(hook, command=command, args=tuple(args))


def _expand(text: str, values: Mapping[str, str]) -> str:
    return re.sub(_IN_BRACES, lambda match: values.get(match[1], match[0]), text)


def missing_plugin_variable(hook: CommandHook, defined: Container[str]) -> str | None:
    """Return the variable of plugins, in braces, that a hook of no plugin uses. Claude Code (measured): such a hook is not run at all."""
    for word in (hook.command, *(hook.args or ())):
        for match in re.finditer(_IN_BRACES, word):
            if match[1] not in hook.env and match[1] not in defined:
                return match[1]
    return None


def used_plugin_variable(hook: CommandHook) -> str | None:
    """Return the first variable of plugins in the command or its arguments, in any form that has no default value."""
    match = re.search(_ANY_FORM, " ".join((hook.command, *(hook.args or ()))))
    return (match[1] or match[2]) if match else None


_USER_CONFIG = r"\$\{user_config\.[\w.-]{1,100}\}"


def used_user_config(hook: CommandHook | HttpHook) -> tuple[str, str] | None:
    """Return the first value of a plugin's user configuration in a hook, and its key in JSON.

    Claude Code asks the user for these values and replaces `${user_config.NAME}` wherever it occurs. Turngate does not
    have them, and a shell would end with "Bad substitution" and exit code 2, which is a block.
    """
    texts: dict[str, str]
    if isinstance(hook, CommandHook):
        texts = {"command": hook.command, "args": " ".join(hook.args or ())}
    else:
        texts = {"url": hook.url, "headers": " ".join(hook.headers.values())}
    return next(
        ((match[0], key) for key, text in texts.items() if (match := re.search(_USER_CONFIG, text))), None
    )


def describe_user_config(written: str) -> str:
    return f"uses {written}, which Turngate does not replace"
