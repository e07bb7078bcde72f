"""Finds mistakes that otherwise show only when a hook runs; `turngate check` reports them.

Finds hooks that use variables of Claude Code plugins which they do not have.
"""

import importlib.util
import re
from collections.abc import Iterator

from turngate.check.budget import MAX_COMMAND_CHARS, MAX_WORK, BudgetSpentError, LintBudget
from turngate.check.command_scope import Scope, command_scope
from turngate.check.commands import lint_arguments, lint_commands, lint_script_file
from turngate.check.events import lint_options
from turngate.check.gate_hooks import lint_gate_hook, lint_gate_words
from turngate.check.gates import lint_gate
from turngate.core.hooks.http_policy import unlisted_variables, url_problem
from turngate.core.hooks.kinds import CommandHook, GateHook, HttpHook
from turngate.core.hooks.plugin_variables import (
    describe_user_config,
    used_plugin_variable,
    used_user_config,
)
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.shell.parse import read_commands
from turngate.extra_install import install_command
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


_QUOTED = re.compile(r"'[^']*(?:'|\Z)|\"(?:[^\"\\]|\\.?)*(?:\"|\Z)", re.DOTALL)
_START = r"(?:^|[;&|({\n]|\b(?:then|do|else)\b)[^\S\n]*"  # of a command
_BASH_ONLY = re.compile(
    rf"(?<![\w\[])\[\[\s|[<>]\(|&>|\|&|<<<|\bfor\s*\(\(|\{{\d+\.\.\d+\}}|\$\{{\w+\[|\$\{{\w+(?:\^|,|//)|(?:^|\s)\w+=\("
    rf"|{_START}(?:source|function|shopt|declare|pushd|popd)\s|{_START}set\s+-\w*o?\s*pipefail"
)
# The shell does not split words in an assignment.
_ASSIGNMENT = re.compile(rf"({_START})(?:[A-Za-z_]\w*=\S*(?:\s+|$))+")
_VARIABLE = re.compile(r"\$\{?(?:CLAUDE|MUX|TURNGATE)_(?:PROJECT_DIR|TRANSCRIPT_PATH|PLUGIN_ROOT)\b")


_PROBLEM_WORK = 100


def lint(settings: Settings, project: str, budget: LintBudget | None = None) -> tuple[Problem, ...]:
    """Return the problems of all hooks; a note if the budget does not suffice for all of them."""
    budget = budget or LintBudget()
    problems: list[Problem] = []
    for rule in settings.rules:
        try:
            for problem in _lint_rule(rule, settings, project, budget):
                budget.spend(_PROBLEM_WORK)
                problems.append(problem)
        except BudgetSpentError:
            message = f"is not wholly checked, nor are the hooks after it: {_TOO_MUCH}"
            return (*problems, rule_problem(rule, None, message, severity="note"))
    return tuple(problems)


_TOO_MUCH = f"all commands and scripts together are more than about {MAX_WORK:,} characters"


def _lint_rule(rule: Rule, settings: Settings, project: str, budget: LintBudget) -> Iterator[Problem]:
    hook = rule.hook
    if not hook.enabled:
        return
    yield from lint_options(rule, settings)
    if isinstance(hook, CommandHook | HttpHook) and (needed := tuple(lint_user_config(rule, hook))):
        yield from needed
    elif isinstance(hook, HttpHook):
        yield from _lint_http(rule, hook, settings)
    elif isinstance(hook, CommandHook):
        yield from _lint_command(rule, hook, settings, project, budget)
    elif isinstance(hook, GateHook):
        yield from lint_gate_hook(rule, hook, settings, project, budget)


def _lint_command(
    rule: Rule, hook: CommandHook, settings: Settings, project: str, budget: LintBudget
) -> Iterator[Problem]:
    if sum(map(len, (hook.command, *(hook.args or ())))) > MAX_COMMAND_CHARS:
        message = f"is longer than {MAX_COMMAND_CHARS:,} characters, so it is not checked"
        yield rule_problem(rule, "command", message, "move it into a script", "note")
        return
    scope = command_scope(hook, settings, project, budget, settings.passed_variables(rule))
    yield from lint_gate_words(rule, hook)
    if rule.source == "script":
        yield from lint_script_file(rule, hook.command, scope, settings)
    elif outside := tuple(lint_plugin_variables(rule, hook, settings)):
        yield from outside
    elif hook.args is None and hook.shell == "powershell":
        if not scope.has_program("pwsh"):
            message = (
                "the program pwsh, which `shell` needs, is not in the PATH, so the hook fails at every run"
            )
            yield rule_problem(rule, "shell", message, "install PowerShell")
    elif hook.args is None:
        yield from _lint_shell_command(rule, hook, settings, scope)
    else:
        yield from lint_arguments(rule, hook, scope, settings)


def _lint_shell_command(rule: Rule, hook: CommandHook, settings: Settings, scope: Scope) -> Iterator[Problem]:
    scope.budget.spend(len(hook.command))
    bare = _QUOTED.sub("''", hook.command)
    runs_bash = hook.shell == "bash" and settings.dialect.honours_shell
    if _BASH_ONLY.search(bare) and not runs_bash:
        yield rule_problem(
            rule, "command", "uses bash syntax, but /bin/sh runs it", _bash_hint(settings), "warning"
        )
    yield from _lint_quoting(rule, bare, scope)
    yield from lint_commands(rule, hook.command, scope, settings)
    yield from lint_gate(rule, hook.command, read_commands(hook.command), scope, settings)


def _bash_hint(settings: Settings) -> str:
    script = "move it into a script that begins with #!/usr/bin/env bash"
    return f'add "shell": "bash", or {script}' if settings.dialect.honours_shell else script


def _lint_quoting(rule: Rule, bare: str, scope: Scope) -> Iterator[Problem]:
    unquoted = _VARIABLE.search(_ASSIGNMENT.sub(r"\1", bare))
    if unquoted:
        name = unquoted[0].lstrip("${")
        rest = "" if name.endswith("_PATH") else "/…"
        hint = f'write "${name}"{rest} with the double quotes (in JSON: \\"${name}\\"{rest})'
        value = scope.variables.get(name) or ""
        if any(character.isspace() for character in value):
            message = (
                f"${name} is not quoted, and there is a space in {value}, so the hook fails at every run"
            )
            yield rule_problem(rule, "command", message, hint)
        else:
            message = f"${name} is not quoted: a space in the path would break it"
            yield rule_problem(rule, "command", message, hint, "note")


def _lint_http(rule: Rule, hook: HttpHook, settings: Settings) -> Iterator[Problem]:
    if importlib.util.find_spec("h11") is None:
        message = "needs a library that is not installed, so the hook fails at every run"
        yield rule_problem(rule, "type", message, install_command("http"))
    not_allowed = url_problem(hook.url, rule.source, settings.allowed_urls, settings.http_hook_urls)
    if not_allowed:
        yield rule_problem(rule, "url", f"{not_allowed}; so the hook fails at every run")
    for name in unlisted_variables(hook.headers, hook.allowed_env_vars):
        message = f"${name} is not among `allowedEnvVars`, so it is replaced by an empty string"
        yield rule_problem(rule, "headers", message, f'add "{name}" to `allowedEnvVars`', "warning")
