"""Finds hooks that use the variables of Claude Code plugins but belong to none."""

from collections.abc import Iterator

from turngate.core.hooks import CommandHook
from turngate.core.plugin_variables import used_plugin_variable
from turngate.core.settings import Problem, Rule, Settings

_HINT = "load the plugin with --plugin-dir or `pluginDirs`, or write the path of the script"


def lint_plugin_variables(rule: Rule, hook: CommandHook, settings: Settings) -> Iterator[Problem]:
    variable = used_plugin_variable(hook)
    if variable and variable not in hook.env and variable not in settings.env:
        yield Problem(
            file=rule.file or "Python",
            event=rule.event,
            index=rule.index,
            field="command",
            message=f"uses ${variable}, which only hooks of a plugin have, so the hook fails at every run",
            hint=_HINT,
        )
