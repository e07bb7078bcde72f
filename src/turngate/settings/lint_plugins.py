"""Finds hooks that use variables of Claude Code plugins which they do not have."""

from collections.abc import Iterator

from turngate.core.hooks.kinds import CommandHook, HttpHook
from turngate.core.hooks.plugin_variables import (
    describe_user_config,
    used_plugin_variable,
    used_user_config,
)
from turngate.core.settings import Problem, Rule, Settings
from turngate.settings.problem_log import rule_problem

_HINT = "load the plugin with --plugin-dir or `pluginDirs`, or write the path of the script"
_FAILS = "so the hook fails at every run"


def lint_plugin_variables(rule: Rule, hook: CommandHook, settings: Settings) -> Iterator[Problem]:
    """Find the variables of a plugin in a hook that belongs to none."""
    variable = used_plugin_variable(hook)
    if variable and variable not in hook.env and variable not in settings.env:
        message = f"uses ${variable}, which only hooks of a plugin have, {_FAILS}"
        yield rule_problem(rule, "command", message, _HINT)


def lint_user_config(rule: Rule, hook: CommandHook | HttpHook) -> Iterator[Problem]:
    """Find values that Claude Code asks the user of a plugin for."""
    if found := used_user_config(hook):
        written, field = found
        yield rule_problem(
            rule, field, f"{describe_user_config(written)}, {_FAILS}", "write the value itself"
        )
