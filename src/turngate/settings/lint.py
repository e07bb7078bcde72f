"""Mistakes that only show when a hook runs: what `turngate check` says beside what is plainly wrong."""

import os
import re
import shutil
from collections.abc import Iterator

from turngate.core.constants import STOP_EVENTS
from turngate.core.hooks import CommandHook, HttpHook
from turngate.core.http_policy import unlisted_variables, url_problem
from turngate.core.settings import Problem, Rule, Settings, Severity

_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_STRAY = re.compile(r"\"|(?<!')'(?!')")
_START = r"(?:^|[;&|({\n]|\b(?:then|do|else)\b)\s*"  # where a command begins
_BASH_ONLY = re.compile(
    rf"(?<![\w\[])\[\[\s|[<>]\(|&>|\|&|<<<|\bfor\s*\(\(|\{{\d+\.\.\d+\}}|\$\{{\w+\[|\$\{{\w+(?:\^|,|//)|(?:^|\s)\w+=\("
    rf"|{_START}(?:source|function|shopt|declare|pushd|popd)\s|{_START}set\s+-\w*o?\s*pipefail"
)
_ASSIGNMENT = re.compile(rf"({_START})(?:[A-Za-z_]\w*=\S*(?:\s+|$))+")  # nothing is split in one
_VARIABLE = re.compile(r"\$\{?(?:CLAUDE|MUX|TURNGATE)_(?:PROJECT_DIR|TRANSCRIPT_PATH|PLUGIN_ROOT)\b")
_RELATIVE = re.compile(
    r"((?:bash|sh|python3?|node|uv run)\s+)?(\.{0,2}[\w-]*(?<!~)/?[\w./-]*/[\w./-]+)(?:\s|$)"
)

_IN_PROJECT = re.compile(
    r"((?:bash|sh|python3?|node|uv run)\s+)?\"?\$\{?(?:CLAUDE|MUX|TURNGATE)_PROJECT_DIR\}?\"?(/[\w./-]+)\"?(?:\s|$)"
)


_PROGRAM = re.compile(r"([A-Za-z][\w.+-]*)(?: [\w./=:,+-]+)*", re.ASCII)  # and plain words after it
_BUILTINS = frozenset(
    (
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
        "local",
        "unalias",
        "kill",
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
        "unset",
        "wait",
    )
)


def lint(settings: Settings, project: str) -> tuple[Problem, ...]:
    return tuple(problem for rule in settings.rules for problem in _look(rule, settings, project))


def _look(rule: Rule, settings: Settings, project: str) -> Iterator[Problem]:
    hook = rule.hook
    if not hook.enabled:
        return
    if hook.condition is not None and rule.event in STOP_EVENTS:
        does = (
            "never runs at a stop"
            if settings.dialect.condition_skips_stop
            else "runs at every stop all the same"
        )
        yield _problem(
            rule, "if", f"has no meaning on {rule.event}: the hook {does}", "leave it out", "warning"
        )
    if hook.outcomes != ("ok",) and rule.event != "SubagentStop":
        yield _problem(rule, "outcomes", f"has no meaning on {rule.event}", "leave it out", "warning")
    if isinstance(hook, HttpHook):
        yield from _look_at_address(rule, hook, settings)
    if not isinstance(hook, CommandHook) or rule.source == "script":
        return
    if hook.args is not None:
        if os.sep in hook.command and "$" not in hook.command and not _there(hook.command, project):
            yield _missing(rule, hook.command)
        return
    command = hook.command[:LOOKED_AT]
    bare = _without_quoted(hook.command)
    reads_bash = hook.shell == "bash" and settings.dialect.honours_shell
    if not reads_bash and _BASH_ONLY.search(bare):
        hint = 'add "shell": "bash", or put it into a script that begins with #!/usr/bin/env bash'
        yield _problem(rule, "command", "uses bash syntax, but /bin/sh reads it", hint, "warning")
    unquoted = _VARIABLE.search(_ASSIGNMENT.sub(r"\1", bare))
    if unquoted:
        name = unquoted[0].lstrip("${")
        more = "" if name.endswith("_PATH") else "/…"
        hint = f'write "${name}"{more} with the double quotes (in JSON: \\"${name}\\"{more})'
        yield _problem(
            rule, "command", f"${name} is not quoted: a blank in the path breaks it", hint, "warning"
        )
    script, inside = _RELATIVE.match(command), _IN_PROJECT.match(command)
    if script and not script[2].startswith("/") and rule.family == "claude":
        hint = (
            f'write "$CLAUDE_PROJECT_DIR"/{script[2].removeprefix("./")} so that it works from every folder'
        )
        yield _problem(rule, "command", f"{script[2]} is a relative path", hint, "warning")
    if inside:
        yield from _look_at_script(rule, inside[2].lstrip("/"), project, by_itself=not inside[1])
    elif script:
        yield from _look_at_script(rule, script[2], project, by_itself=not script[1])
    elif not reads_bash and not _BASH_ONLY.search(bare):
        path = hook.env.get("PATH") or settings.env.get("PATH")
        yield from _look_for_program(rule, command, path)


def _look_at_script(rule: Rule, name: str, project: str, *, by_itself: bool) -> Iterator[Problem]:
    """`by_itself`: no interpreter reads it, so the system wants to know that it may run it."""
    path = os.path.join(project, name)
    if not os.path.exists(path):
        yield _missing(rule, name)
    elif by_itself and os.path.isfile(path) and not os.access(path, os.X_OK):
        said = f"{name} is not executable, so the hook fails at every run"
        yield _problem(rule, "command", said, f"chmod +x {name}", "error")


def _look_for_program(rule: Rule, command: str, path: str | None) -> Iterator[Problem]:
    program = _PROGRAM.fullmatch(command)
    if program and program[1] not in _BUILTINS and shutil.which(program[1], path=path) is None:
        yield _problem(rule, "command", f"there is no program {program[1]} on this machine", None, "note")


def _look_at_address(rule: Rule, hook: HttpHook, settings: Settings) -> Iterator[Problem]:
    refused = url_problem(hook.url, rule.source, settings.allowed_urls)
    if refused:
        yield _problem(rule, "url", f"{refused}; so the hook fails at every run", None, "error")
    for name in unlisted_variables(hook.headers, hook.allowed_env_vars):
        hint = f'add "{name}" to `allowedEnvVars`'
        yield _problem(
            rule,
            "headers",
            f"${name} is not among `allowedEnvVars`, so it is sent as nothing",
            hint,
            "warning",
        )


LOOKED_AT = 4_000  # characters of a command; the rest of a longer one is not judged


def _without_quoted(command: str) -> str:
    bare = _QUOTED.sub("''", command[:LOOKED_AT])
    if len(command) <= LOOKED_AT:
        return bare
    return _STRAY.split(bare, maxsplit=1)[0]  # where we cut, a quotation may have been open


def _there(path: str, project: str) -> bool:
    return os.path.exists(os.path.join(project, path))


def _missing(rule: Rule, path: str) -> Problem:
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
