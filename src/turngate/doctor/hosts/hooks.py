"""Whether a stop hook in the settings of a host will run and can block there: the line `turngate hook`, and others."""

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from functools import cache
from string import Template

from turngate._frozen_dataclass import frozen
from turngate.check.lint import lint
from turngate.check.scripts import Script, read_script
from turngate.core.dialect import CLAUDE
from turngate.core.hooks.kinds import CommandHook
from turngate.core.hooks.turngate_hook_command import read_hook_line
from turngate.core.settings import Rule, Settings
from turngate.core.shell.script_exit_codes import block_attempt
from turngate.doctor.diagnosis import Finding, finding_of
from turngate.doctor.hosts.files import HostHook
from turngate.hosts.host import Host
from turngate.hosts.input_fields import PROJECT_VARIABLES
from turngate.hosts.install.hook_command import hook_command, how_to_find
from turngate.project.files import LOCAL

START_TIMEOUT_S = 60.0
MAX_SECONDS = 10_000  # a larger timeout in seconds is meant as milliseconds


@frozen
class SlowHook:
    """The hook of Turngate that may take longest at a stop."""

    name: str
    seconds: float


def check_line(
    hook: HostHook, host: Host, others: Sequence[HostHook], slow: SlowHook | None, path: str | None
) -> Iterator[Finding]:
    """Yield what is wrong with a line of Turngate; `others` are those of the same event, `path` the variable PATH."""
    yield from check_type(hook, host)
    yield from _check_program(hook, path)
    yield from _check_timeout(hook, host, slow)
    if others:
        files = ", ".join(dict.fromkeys(other.file.name for other in others))
        owners = {each.file.owner.name for each in (hook, *others)}
        if host.reads_them_if and owners - {host.name}:
            message = f"Turngate runs twice if {host.reads_them_if}: it is in {files} too"
            yield Finding("will run", "note", message, _how_to_remove(hook, host))
        else:
            message = f"Turngate runs twice: it is in {files} too"
            yield Finding("will run, but", "warning", message, _how_to_remove(hook, host))
    yield from _check_form(hook)


def check_type(hook: HostHook, host: Host) -> Iterator[Finding]:
    kind = hook.entry.get("type", "command" if not hook.in_group else None)
    if kind is None:
        message = f"has no `type`, so {host.title} rejects it"
        yield Finding("will NOT run", "error", message, 'add "type": "command"')
    elif kind not in host.stop_types:
        message = f"has the type {kind!r}, which {host.title} does not run at a stop"
        hint = f"{host.title} runs {', '.join(host.stop_types)}"
        yield Finding("will NOT run", "error", message, hint)
    if hook.entry.get("async") is True and host.has_async:
        message = f"`async` is true, and {host.title} does not wait for the answer of such a hook"
        yield Finding("will NOT hold", "error", message, "remove `async`")


def _how_to_remove(hook: HostHook, host: Host) -> str:
    if hook.file.owner is not host:
        return f"`turngate uninstall {host.name}` removes that of {host.title}: this file covers both"
    return f"`turngate uninstall {host.name} --{hook.file.level}` removes one of them"


# The program


def _check_program(hook: HostHook, path: str | None) -> Iterator[Finding]:
    line = read_hook_line(hook.command)
    if line is None:
        return
    program, hint = line.guard or line.words[0], "install Turngate there, or run `turngate install` again"
    if not os.path.isabs(program):
        if shutil.which(program, path=path):
            return
        problem, hint = f"`{program}` is not on PATH", how_to_find(hook.file.owner)
    elif not os.path.exists(program):
        problem = f"{program} does not exist"
    elif not os.access(program, os.X_OK):
        problem = f"{program} is not executable"
    elif hook.file.level == "user" and (why := _why_not_started(tuple(line.words))):
        problem = f"{program} cannot be started: {why}"
    else:
        return
    if line.guard is None:
        yield Finding("will NOT run", "error", f"{problem}: the hook fails at every stop", hint)
    else:
        message = f"{problem}: the line only says so, and the agent may stop"
        yield Finding("will NOT hold", "error", message, hint)


@cache
def _why_not_started(words: tuple[str, ...]) -> str | None:
    """Start a program of the user's own settings with `--version`; its Python may be gone."""
    try:
        ended = ask_version(words, START_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"it did not end within {START_TIMEOUT_S:g} s"
    except OSError as error:
        return str(error.strerror)
    return f"exit code {ended.returncode}" if ended.returncode else None


def ask_version(words: Sequence[str], timeout_s: float) -> "subprocess.CompletedProcess[bytes]":
    """Start a program that the user has installed with `--version`. Raises OSError, TimeoutExpired."""
    command, no_input = [*words, "--version"], subprocess.DEVNULL
    return subprocess.run(command, stdin=no_input, capture_output=True, timeout=timeout_s, check=False)  # noqa: S603


# The timeout


def _check_timeout(hook: HostHook, host: Host, slow: SlowHook | None) -> Iterator[Finding]:
    key, in_ms = hook.file.owner.timeout_key, host.timeout_unit == "ms"
    key = "timeout" if key not in hook.entry and "timeout" in hook.entry else key
    value = hook.entry.get(key)
    wanted = host.installed_timeout_s * (1000 if in_ms else 1)
    hint = f'write "{key}": {wanted:g}'
    if value is None:
        seconds, text = host.default_timeout_s, "it has no timeout, and the default"
    elif type(value) not in (int, float) or value <= 0:
        yield Finding("will run, but", "warning", f"{key}: is {value!r}, expected a positive number", hint)
        return
    else:
        is_ms = in_ms or (host.ms_from is not None and value >= host.ms_from)
        seconds, text = value / 1000 if is_ms else value, "its timeout"
    if in_ms and seconds is not None and seconds < 1:
        message = f"is {value}, which {host.title} reads as milliseconds: it is ended before it answers"
        yield Finding("will NOT hold", "error", f"{key}: {message}", hint)
    elif not in_ms and seconds is not None and seconds >= MAX_SECONDS:
        yield Finding("will run, but", "warning", f"{key}: is {value}, which is read as seconds", hint)
    elif slow and host.longest_hook_s and slow.seconds > host.own_timeout_s:
        message = (
            f"{host.title} gives up on a hook after {host.longest_hook_s:g} s, and the hook {slow.name} may take "
            f"{slow.seconds:g} s: Turngate then answers after {host.own_timeout_s:g} s that it is not enforced"
        )
        yield Finding("will run, but", "warning", message, "make the check faster, or run it in CI")
    elif seconds is not None and slow and seconds < min(slow.seconds, host.own_timeout_s):
        message = (
            f"{text} is {seconds:g} s, and the hook {slow.name} may take {slow.seconds:g} s: "
            f"{host.title} then ends it, and the agent may stop"
        )
        yield Finding("will run, but", "warning", message, hint)


# The form


def _check_form(hook: HostHook) -> Iterator[Finding]:
    """Note a guarded line that differs from the one that this version would write."""
    owner, event = hook.file.owner, hook.our_event
    line = read_hook_line(hook.command)
    if hook.file.level != "project" or event is None or line is None or line.guard is None:
        return
    if hook.command != hook_command(owner, "project", event, "turngate"):
        hint = f"`turngate install {owner.name} --project` updates it"
        yield Finding("will run", "note", "it is not the line that this version of Turngate installs", hint)


# Hooks that are not Turngate's

_PRINTS_DECISION = re.compile(r"\bdecision\b|\bfollowup_message\b")
_PRINTS_CONTINUE = re.compile(r"""["']continue\\?["']\s*:\s*[Ff]alse""")
_PRINTS_SPECIFIC = re.compile(r"\bhookSpecificOutput\b")
_FIRES = re.compile(r"\s*(?:\S*/)?turngate\s+fire\s")
_GATE_EXIT_CODE = re.compile(r"\s*(?:\S*/)?turngate\s+gate\s[^;&|]*--exit-code\b")
_MAX_WORDS = 10  # of a command, that may name its script


def check_stop_hook(hook: HostHook, host: Host, project: str) -> Iterator[Finding]:
    """Yield why a stop hook that is not Turngate's does not block on this host."""
    yield from check_type(hook, host)
    script = _script_of(hook.command, host, project)
    whole = f"{hook.command}\n{script.text if script else ''}"
    if _FIRES.match(hook.command):
        message = "`turngate fire` answers with exit code 10, which no agent program takes for a block"
        hint = f"`turngate install {host.name}` adds `turngate hook`"
        yield Finding("will NOT hold", "error", message, hint)
    elif host.reads_exit_codes:
        yield from _lint(hook, project)
    attempts = (block_attempt(hook.command), script and block_attempt(script.text, script.language))
    exits_with_2 = _GATE_EXIT_CODE.match(hook.command) or "exits with 2" in attempts
    if host.ignores_exit_2 and exits_with_2 and not _PRINTS_DECISION.search(whole):
        message = f"blocks only with exit code 2, which {host.title} takes for a warning"
        hint = 'print {"decision": "block", "reason": …} and exit with 0, or make it a gate of `.turngate`'
        yield Finding("will NOT hold", "error", message, hint)
    if host.rejects_specific_output and _PRINTS_SPECIFIC.search(whole):
        rejects = f"{host.title} rejects a stop answer with it, also its block"
        message = f"prints `hookSpecificOutput`, and {rejects}"
        yield Finding("will NOT hold", "error", message, "print only `decision` and `reason`")
    if host.on_continue_false and _PRINTS_CONTINUE.search(whole):
        message = f"prints `continue: false`, and {host.title} {host.on_continue_false}"
        yield Finding("will run, but", "warning", message, "print nothing to let the agent stop")


def _lint(hook: HostHook, project: str) -> Iterator[Finding]:
    """Yield what `turngate check` knows about the command: these hosts read exit codes as Claude Code does."""
    if not hook.command or hook.entry.get("type", "command") != "command":
        return
    command = CommandHook(hook.command)
    rule = Rule(event=hook.our_event or "Stop", hook=command, family="claude", source="project")
    for problem in lint(Settings(rules=(rule,), dialect=CLAUDE), project):
        if problem.field in (None, "command") and problem.severity != "note":
            yield finding_of(problem, is_gate=True)


def _script_of(command: str, host: Host, project: str) -> Script | None:
    """Return the script that a command runs, if it names one."""
    variables = {"CLAUDE_PROJECT_DIR": project, PROJECT_VARIABLES.get(host.name, ""): project}
    try:
        words = shlex.split(Template(command).safe_substitute(variables))[:_MAX_WORDS]
    except ValueError:
        return None
    paths = (os.path.join(project, os.path.expanduser(word)) for word in words if "/" in word or "." in word)
    scripts = (read_script(path, LOCAL) for path in paths if os.path.isfile(path))
    return next(filter(None, scripts), None)
