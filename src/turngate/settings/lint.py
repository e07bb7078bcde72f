"""Finds mistakes that otherwise show only when a hook runs; `turngate check` reports them."""

import os
import re
import shutil
from collections.abc import Iterator

from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks import CommandHook, HttpHook
from turngate.core.http_policy import unlisted_variables, url_problem
from turngate.core.settings import Problem, Rule, Settings, Severity
from turngate.settings.lint_plugins import lint_plugin_variables

MAX_LINTED_CHARS = 4_000  # of a command; the rest is not checked

_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_STRAY = re.compile(r"\"|(?<!')'(?!')")
_START = r"(?:^|[;&|({\n]|\b(?:then|do|else)\b)\s*"  # of a command
_BASH_ONLY = re.compile(
    rf"(?<![\w\[])\[\[\s|[<>]\(|&>|\|&|<<<|\bfor\s*\(\(|\{{\d+\.\.\d+\}}|\$\{{\w+\[|\$\{{\w+(?:\^|,|//)|(?:^|\s)\w+=\("
    rf"|{_START}(?:source|function|shopt|declare|pushd|popd)\s|{_START}set\s+-\w*o?\s*pipefail"
)
# The shell does not split words in an assignment.
_ASSIGNMENT = re.compile(rf"({_START})(?:[A-Za-z_]\w*=\S*(?:\s+|$))+")
_VARIABLE = re.compile(r"\$\{?(?:CLAUDE|MUX|TURNGATE)_(?:PROJECT_DIR|TRANSCRIPT_PATH|PLUGIN_ROOT)\b")
_RELATIVE = re.compile(
    r"((?:bash|sh|python3?|node|uv run)\s+)?(\.{0,2}[\w-]*(?<!~)/?[\w./-]*/[\w./-]+)(?:\s|$)"
)
_IN_PROJECT = re.compile(
    r"((?:bash|sh|python3?|node|uv run)\s+)?\"?\$\{?(?:CLAUDE|MUX|TURNGATE)_PROJECT_DIR\}?\"?(/[\w./-]+)\"?(?:\s|$)"
)
_PROGRAM = re.compile(r"([A-Za-z][\w.+-]*)(?: [\w./=:,+-]+)*", re.ASCII)  # a program and plain arguments
_BUILTINS = frozenset(
    [
        "alias",
        "bg",
        "break",
        "cd",
        "command",
        "continue",
        "echo",
        "eval",
        "exec",
        "exit",
        "export",
        "false",
        "fg",
        "getopts",
        "hash",
        "jobs",
        "kill",
        "local",
        "printf",
        "pwd",
        "read",
        "readonly",
        "return",
        "set",
        "shift",
        "test",
        "times",
        "trap",
        "true",
        "type",
        "ulimit",
        "umask",
        "unalias",
        "unset",
        "wait",
    ]
)


def lint(settings: Settings, project: str) -> tuple[Problem, ...]:
    return tuple(problem for rule in settings.rules for problem in _lint_rule(rule, settings, project))


def _lint_rule(rule: Rule, settings: Settings, project: str) -> Iterator[Problem]:
    hook = rule.hook
    if not hook.enabled:
        return
    yield from _lint_event_options(rule, settings)
    if isinstance(hook, HttpHook):
        yield from _lint_http(rule, hook, settings)
    if not isinstance(hook, CommandHook) or rule.source == "script":
        return
    yield from lint_plugin_variables(rule, hook, settings)
    if hook.args is None:
        yield from _lint_shell_command(rule, hook, settings, project)
    elif os.sep in hook.command and "$" not in hook.command and not _exists(hook.command, project):
        yield _report_missing(rule, hook.command)


def _lint_event_options(rule: Rule, settings: Settings) -> Iterator[Problem]:
    """Find options that have no effect on the rule's event."""
    if rule.hook.condition is not None and rule.event in STOP_EVENTS:
        skips = settings.dialect.condition_skips_stop
        effect = "the hook never runs at a stop" if skips else "the hook runs at every stop"
        message = f"has no effect on {rule.event}: {effect}"
        yield _problem(rule, "if", message, "remove it", "warning")
    if rule.hook.outcomes != ("ok",) and rule.event != "SubagentStop":
        yield _problem(rule, "outcomes", f"has no effect on {rule.event}", "remove it", "warning")


def _lint_shell_command(rule: Rule, hook: CommandHook, settings: Settings, project: str) -> Iterator[Problem]:
    bare = _without_quoted(hook.command)
    runs_bash = hook.shell == "bash" and settings.dialect.honours_shell
    is_bash = bool(_BASH_ONLY.search(bare))
    if is_bash and not runs_bash:
        hint = 'add "shell": "bash", or move it into a script that begins with #!/usr/bin/env bash'
        yield _problem(rule, "command", "uses bash syntax, but /bin/sh runs it", hint, "warning")
    yield from _lint_quoting(rule, bare)
    command = hook.command[:MAX_LINTED_CHARS]
    script, in_project = _RELATIVE.match(command), _IN_PROJECT.match(command)
    if script and not script[2].startswith("/") and rule.family == "claude":
        path = script[2].removeprefix("./")
        hint = f'write "$CLAUDE_PROJECT_DIR"/{path}, which works from every folder'
        yield _problem(rule, "command", f"{script[2]} is a relative path", hint, "warning")
    if in_project:
        yield from _lint_script(rule, in_project[2].lstrip("/"), project, is_program=not in_project[1])
    elif script:
        yield from _lint_script(rule, script[2], project, is_program=not script[1])
    elif not runs_bash and not is_bash:
        path_variable = hook.env.get("PATH") or settings.env.get("PATH")
        yield from _lint_program(rule, command, path_variable)


def _lint_quoting(rule: Rule, bare: str) -> Iterator[Problem]:
    unquoted = _VARIABLE.search(_ASSIGNMENT.sub(r"\1", bare))
    if unquoted:
        name = unquoted[0].lstrip("${")
        rest = "" if name.endswith("_PATH") else "/…"
        hint = f'write "${name}"{rest} with the double quotes (in JSON: \\"${name}\\"{rest})'
        message = f"${name} is not quoted: a space in the path breaks it"
        yield _problem(rule, "command", message, hint, "warning")


def _lint_script(rule: Rule, name: str, project: str, *, is_program: bool) -> Iterator[Problem]:
    """Check a script; `is_program` if it is executed itself and not passed to an interpreter."""
    path = os.path.join(project, name)
    if not os.path.exists(path):
        yield _report_missing(rule, name)
    elif is_program and os.path.isfile(path) and not os.access(path, os.X_OK):
        message = f"{name} is not executable, so the hook fails at every run"
        yield _problem(rule, "command", message, f"chmod +x {name}", "error")


def _lint_program(rule: Rule, command: str, path: str | None) -> Iterator[Problem]:
    program = _PROGRAM.fullmatch(command)
    if program and program[1] not in _BUILTINS and shutil.which(program[1], path=path) is None:
        yield _problem(rule, "command", f"the program {program[1]} is not in the PATH", None, "note")


def _lint_http(rule: Rule, hook: HttpHook, settings: Settings) -> Iterator[Problem]:
    not_allowed = url_problem(hook.url, rule.source, settings.allowed_urls, settings.http_hook_urls)
    if not_allowed:
        yield _problem(rule, "url", f"{not_allowed}; so the hook fails at every run", None, "error")
    for name in unlisted_variables(hook.headers, hook.allowed_env_vars):
        message = f"${name} is not among `allowedEnvVars`, so it is replaced by an empty string"
        yield _problem(rule, "headers", message, f'add "{name}" to `allowedEnvVars`', "warning")


def _without_quoted(command: str) -> str:
    bare = _QUOTED.sub("''", command[:MAX_LINTED_CHARS])
    if len(command) <= MAX_LINTED_CHARS:
        return bare
    return _STRAY.split(bare, maxsplit=1)[0]  # the command may have been truncated inside a quotation


def _exists(path: str, project: str) -> bool:
    return os.path.exists(os.path.join(project, path))


def _report_missing(rule: Rule, path: str) -> Problem:
    return _problem(rule, "command", f"{path} does not exist, so the hook fails at every run", None, "error")


def _problem(rule: Rule, field: str, message: str, hint: str | None, severity: Severity) -> Problem:
    return Problem(
        file=rule.file or "Python",
        event=rule.event,
        index=rule.index,
        field=field,
        message=message,
        hint=hint,
        severity=severity,
    )
