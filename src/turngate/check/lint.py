"""Finds what is wrong with settings and hooks, also what otherwise shows only when a hook runs; `turngate check` reports it."""

import contextlib
import importlib.util
import json
import os
import re
import shlex
from collections.abc import Iterator, Sequence

from turngate.check.command_steps import MAX_COMMAND_CHARS, Scope, command_scope
from turngate.check.commands import FAILS, lint_arguments, lint_commands, lint_script_file
from turngate.check.gates import in_vain, lint_gate, lint_gate_command
from turngate.core.constants import EVENTS, OBSERVED_EVENTS, STOP_EVENTS, TEAM_EVENTS
from turngate.core.hooks.http_policy import unlisted_variables, url_problem
from turngate.core.hooks.kinds import CommandHook, GateHook, HttpHook, command_of, hook_text
from turngate.core.hooks.plugin_variables import describe_user_config, used_plugin_variable, used_user_config
from turngate.core.permissions.rule import read_rule, why_never
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.shell.parse import read_commands
from turngate.core.text import describe_name
from turngate.core.verdict.verdict import honors_on_failure
from turngate.errors import UsageError
from turngate.extra_install import install_command
from turngate.gates.find_checks import chosen_commands, find_check_commands, has_program
from turngate.gates.project_files import read_project_files
from turngate.gates.toolchains import PROJECT_CHECKS
from turngate.models.resolve import JudgeModels
from turngate.plugins.handlers import installed_plugins
from turngate.project.files import LOCAL
from turngate.settings.parse import MAX_FILE_BYTES
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes, settings_files
from turngate.settings.problem_log import rule_problem
from turngate.settings.slash_commands import load_commands

_HINT = "load the plugin with --plugin-dir or `pluginDirs`, or write the path of the script"
_QUOTED = re.compile(r"'[^']*(?:'|\Z)|\"(?:[^\"\\]|\\.?)*(?:\"|\Z)", re.DOTALL)
_START = r"(?:^|[;&|({\n]|\b(?:then|do|else)\b)[^\S\n]*"  # of a command
_BASH_ONLY = re.compile(
    rf"(?<![\w\[])\[\[\s|[<>]\(|&>|\|&|<<<|\bfor\s*\(\(|\{{\d+\.\.\d+\}}|\$\{{\w+\[|\$\{{\w+(?:\^|,|//)|(?:^|\s)\w+=\("
    rf"|{_START}(?:source|function|shopt|declare|pushd|popd)\s|{_START}set\s+-\w*o?\s*pipefail"
)
# The shell does not split words in an assignment.
_ASSIGNMENT = re.compile(rf"({_START})(?:[A-Za-z_]\w*=\S*(?:\s+|$))+")
_VARIABLE = re.compile(r"\$\{?(?:CLAUDE|MUX|TURNGATE)_(?:PROJECT_DIR|TRANSCRIPT_PATH|PLUGIN_ROOT)\b")
_MAX_MODELS = 20  # of hooks; each takes a while to open
MAX_LINT_CHARS = 500_000  # of all commands together
MAX_LINT_PROBLEMS = 200
_CANNOT_RUN = "so the gate cannot run"


def find_problems(settings: Settings, project: str) -> tuple[Problem, ...]:
    """Return the problems of the settings, of their hooks and of the files that hold them."""
    return (
        *settings.problems,
        *lint(settings, project),
        *(
            Problem(file=name, message="is empty, so it has no hooks", severity="note")
            for name, content in _contents(settings, project)
            if not content.strip()
        ),
        *_without_model(settings),
        *_missing_plugins(settings, project),
        *load_commands(project, settings.plugin_dirs, files=LOCAL).problems,
    )


def _contents(settings: Settings, project: str) -> Iterator[tuple[str, bytes]]:
    """Yield the names of the settings files that can be read, with their contents."""
    for file in settings_files(project, settings.dialect.name, files=LOCAL):
        with contextlib.suppress(OSError, NotARegularFile, FileTooLarge):
            yield file.display_name, read_bytes(file.path, MAX_FILE_BYTES)


def _without_model(settings: Settings) -> Iterator[Problem]:
    """Note hooks that ask a model and have none unless a session brings one."""
    judges = JudgeModels(settings.judge, environ=settings.environ_of_models(os.environ))
    why: dict[str | None, str | None] = {}
    for rule in settings.rules:
        if rule.hook.asks != "model" or not rule.hook.enabled:
            continue
        model = getattr(rule.hook, "model", None)
        if model not in why and len(why) == _MAX_MODELS:
            message = f"names a model beyond the first {_MAX_MODELS}, so the model is not checked"
            yield rule_problem(rule, None, message, severity="note")
            continue
        if model not in why:
            why[model] = None
            try:
                judges(model)
            except UsageError as error:
                why[model] = f"has no model outside of a session: {error}"
        if reason := why[model]:
            yield rule_problem(rule, None, reason, severity="note")


def _missing_plugins(settings: Settings, project: str) -> Iterator[Problem]:
    installed = installed_plugins() if settings.plugins else ()
    for name in settings.plugins:
        if name not in installed:
            quoted = json.dumps(name).encode()
            files = [file for file, content in _contents(settings, project) if quoted in content]
            message = f"enables the plugin {name!r}, which is not installed, so `turngate run` does not start"
            hint = f"install it, or remove the name; installed: {', '.join(installed) or 'none'}"
            file = files[-1] if files else ""  # the last list counts
            yield Problem(file=file, field="turngate.plugins", message=message, hint=hint)


# Hooks


def lint(settings: Settings, project: str) -> tuple[Problem, ...]:
    """Return the problems of all hooks; a note if they are too many, or too long, to be checked."""
    problems: list[Problem] = []
    chars = 0
    for rule in settings.rules:
        chars += len(hook_text(rule.hook))
        if chars > MAX_LINT_CHARS or len(problems) >= MAX_LINT_PROBLEMS:
            limits = f"{MAX_LINT_CHARS:,} characters of commands, or {MAX_LINT_PROBLEMS} problems"
            message = f"is not checked, nor are the hooks after it: there are over {limits} before it"
            return (*problems, rule_problem(rule, None, message, severity="note"))
        problems += _lint_rule(rule, settings, project)
    return tuple(problems)


def _lint_rule(rule: Rule, settings: Settings, project: str) -> Iterator[Problem]:
    hook = rule.hook
    if not hook.enabled:
        return
    yield from _lint_options(rule, settings)
    if isinstance(hook, CommandHook | HttpHook) and (found := used_user_config(hook)):
        message = f"{describe_user_config(found[0])}, {FAILS}"
        yield rule_problem(rule, found[1], message, "write the value itself")
    elif isinstance(hook, HttpHook):
        yield from _lint_http(rule, hook, settings)
    elif isinstance(hook, CommandHook):
        yield from _lint_command(rule, hook, settings, project)
    elif isinstance(hook, GateHook):
        yield from _lint_gate_hook(rule, hook, settings, project)


def _lint_options(rule: Rule, settings: Settings) -> Iterator[Problem]:
    """Find options that have no effect on the rule's event, and an event that few programs have."""
    if rule.event in TEAM_EVENTS:
        message = (
            "it runs only in Claude Code with `turngate install claude`: no other program has this event"
        )
        yield rule_problem(rule, None, message, None, "note")
    if rule.hook.condition is not None and rule.event in STOP_EVENTS:
        skips = settings.dialect.condition_skips_stop
        effect = "the hook never runs at a stop" if skips else "the hook runs at every stop"
        message = f"has no effect on {rule.event}: {effect}"
        yield rule_problem(rule, "if", message, "remove it", "warning")
    if rule.hook.condition is not None and EVENTS.get(rule.event) == "tool_name":
        parsed, shown = read_rule(rule.hook.condition), describe_name(repr(rule.hook.condition))
        if parsed is None:
            message = f"is {shown}, which is not one permission rule such as 'Bash(git *)', so the hook fails at every call"
            yield rule_problem(rule, "if", message, "write one hook for each rule")
        elif why := why_never(parsed):
            yield rule_problem(rule, "if", f"is {shown}, which never matches: {why}")
    if rule.hook.outcomes != ("ok",) and rule.event != "SubagentStop":
        yield rule_problem(rule, "outcomes", f"has no effect on {rule.event}", "remove it", "warning")
    has_on_failure = getattr(rule.hook, "on_failure", None) == "block"
    if rule.event in OBSERVED_EVENTS:
        if rule.hook.mode == "gate":
            yield in_vain(rule, "mode", 'is "gate"')
        if rule.hook.blocking:
            yield in_vain(rule, "blocking", "is true")
        if has_on_failure:
            yield in_vain(rule, "onFailure", 'is "block"')
        return
    # Claude Code does not know `blocking`, and ignores `onFailure` at a stop (measured).
    if settings.dialect.failure_may_block or honors_on_failure(rule, settings.dialect):
        return
    message = f"has no effect in the dialect {settings.dialect.name}: a failure of this hook does not block"
    if rule.event in STOP_EVENTS or not hasattr(rule.hook, "on_failure"):
        hint = "exit with 2 and print the reason on stderr" if rule.hook.kind == "command" else None
    else:
        hint = 'write "onFailure": "block"'
    if rule.hook.blocking:
        yield rule_problem(rule, "blocking", message, hint, "warning")
    if has_on_failure:
        yield rule_problem(rule, "onFailure", message, hint, "warning")


def _lint_command(rule: Rule, hook: CommandHook, settings: Settings, project: str) -> Iterator[Problem]:
    if sum(map(len, (hook.command, *(hook.args or ())))) > MAX_COMMAND_CHARS:
        message = f"is longer than {MAX_COMMAND_CHARS:,} characters, so it is not checked"
        yield rule_problem(rule, "command", message, "move it into a script", "note")
        return
    scope = command_scope(hook, settings, project, settings.passed_variables(rule))
    if (words := gate_words(hook)) is not None:
        from turngate.gates.arguments import parse_gate_words  # noqa: PLC0415 # lazy: it loads all gates

        try:
            parse_gate_words(words)
        except UsageError as error:  # exit code 1, which does not block
            yield rule_problem(rule, "command", f"cannot be read by `turngate gate`, {_CANNOT_RUN}: {error}")
    if rule.source == "script":
        yield from lint_script_file(rule, hook.command, scope, settings)
    elif (variable := used_plugin_variable(hook)) and variable not in (*hook.env, *settings.env):
        message = f"uses ${variable}, which only hooks of a plugin have, {FAILS}"
        yield rule_problem(rule, "command", message, _HINT)
    elif hook.args is None and hook.shell == "powershell":
        if not scope.has_program("pwsh"):
            message = f"the program pwsh, which `shell` needs, is not in the PATH, {FAILS}"
            yield rule_problem(rule, "shell", message, "install PowerShell")
    elif hook.args is None:
        yield from _lint_shell_command(rule, hook, settings, scope)
    else:
        yield from lint_arguments(rule, hook, scope, settings)


def _lint_shell_command(rule: Rule, hook: CommandHook, settings: Settings, scope: Scope) -> Iterator[Problem]:
    bare = _QUOTED.sub("''", hook.command)
    runs_bash = hook.shell == "bash" and settings.dialect.honors_shell
    if _BASH_ONLY.search(bare) and not runs_bash:
        hint = "move it into a script that begins with #!/usr/bin/env bash"
        hint = f'add "shell": "bash", or {hint}' if settings.dialect.honors_shell else hint
        yield rule_problem(rule, "command", "uses bash syntax, but /bin/sh runs it", hint, "warning")
    yield from _lint_quoting(rule, bare, scope)
    yield from lint_commands(rule, hook.command, scope, settings)
    yield from lint_gate(rule, hook.command, read_commands(hook.command), scope, settings)


def _lint_quoting(rule: Rule, bare: str, scope: Scope) -> Iterator[Problem]:
    if unquoted := _VARIABLE.search(_ASSIGNMENT.sub(r"\1", bare)):
        name = unquoted[0].lstrip("${")
        rest = "" if name.endswith("_PATH") else "/…"
        hint = f'write "${name}"{rest} with the double quotes (in JSON: \\"${name}\\"{rest})'
        value = scope.variables.get(name) or ""
        if any(character.isspace() for character in value):
            message = f"${name} is not quoted, and there is a space in {value}, {FAILS}"
            yield rule_problem(rule, "command", message, hint)
        else:
            message = f"${name} is not quoted: a space in the path would break it"
            yield rule_problem(rule, "command", message, hint, "note")


def _lint_http(rule: Rule, hook: HttpHook, settings: Settings) -> Iterator[Problem]:
    if importlib.util.find_spec("h11") is None:
        message = f"needs a library that is not installed, {FAILS}"
        yield rule_problem(rule, "type", message, install_command("http"))
    if why := url_problem(hook.url, rule.source, settings.allowed_urls, settings.http_hook_urls):
        yield rule_problem(rule, "url", f"{why}; {FAILS}")
    for name in unlisted_variables(hook.headers, hook.allowed_env_vars):
        message = f"${name} is not among `allowedEnvVars`, so it is replaced by an empty string"
        yield rule_problem(rule, "headers", message, f'add "{name}" to `allowedEnvVars`', "warning")


def _lint_gate_hook(rule: Rule, hook: GateHook, settings: Settings, project: str) -> Iterator[Problem]:
    """Check a gate of the settings: a program that is missing does not make it block."""
    command = command_of(hook)
    if command is None:
        if hook.gate in PROJECT_CHECKS:
            yield from _lint_project_check(rule, hook.gate, project)
        return
    scope = command_scope(command, settings, project, settings.passed_variables(rule))
    if command.args is not None:
        yield from lint_arguments(rule, command, scope, settings, fails=_CANNOT_RUN)
    elif len(command.command) <= MAX_COMMAND_CHARS and command.shell != "powershell":
        yield from lint_commands(rule, command.command, scope, settings, fails=_CANNOT_RUN)
        yield from lint_gate_command(rule, command.command, scope, settings)


def _lint_project_check(rule: Rule, check: str, project: str) -> Iterator[Problem]:
    found = chosen_commands(find_check_commands(read_project_files(project)), check)
    if not found:
        message = f"finds no command for {check} in this project, {_CANNOT_RUN}"
        hint = f'name it: {{"type": "gate", "gate": "{check}", "command": "COMMAND"}}'
        yield rule_problem(rule, "gate", message, hint)
    for each in found:
        if not has_program(project, each.program):
            missing = f"{each.program} is not there, {_CANNOT_RUN}"
            message = f"runs `{each.command}` ({each.found_in}), and {missing}"
            yield rule_problem(rule, "gate", message, f"install {each.program}")


def gate_words(hook: CommandHook) -> Sequence[str] | None:
    """Return the words after `turngate gate`; None for any other command."""
    try:
        words = shlex.split(hook.command) if hook.args is None else [hook.command, *hook.args]
    except ValueError:
        return None
    is_module = len(words) > 2 and words[1:3] == ["-m", "turngate"]
    if is_module and os.path.basename(words[0]).startswith("python"):
        words = words[2:]
    is_gate = len(words) > 1 and os.path.basename(words[0]) == "turngate" and words[1] == "gate"
    return words[2:] if is_gate else None
