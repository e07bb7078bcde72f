"""Decides whether a host runs Turngate at a stop: the line `turngate hook`; and whether other stop hooks of its settings can block there."""

import contextlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache

from turngate._frozen_dataclass import frozen
from turngate.check.commands import read_script
from turngate.check.lint import lint
from turngate.core.constants import STOP_EVENTS
from turngate.core.dialect import CLAUDE
from turngate.core.hooks.kinds import CommandHook
from turngate.core.hooks.turngate_hook_command import read_hook_line
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.shell.script_exit_codes import block_attempt
from turngate.core.text import describe_json, one_line, quote_name
from turngate.doctor.diagnosis import Diagnosis, Fact, Finding, Outlook, finding_of, position, worst_first
from turngate.doctor.hosts.files import (
    HostFile,
    HostHook,
    codex_trust,
    codex_trusts_project,
    event_of,
    hooks_in,
    read_codex_config,
    read_host_files,
    setting,
    trusts_folder,
    why_ignored,
)
from turngate.hosts.all_hosts import CODEX, HOSTS
from turngate.hosts.host import Host
from turngate.hosts.input_fields import EVENT_NAMES, PROJECT_VARIABLES
from turngate.hosts.install.hook_command import hook_command, how_to_find
from turngate.project.files import LOCAL
from turngate.settings.key_table import wrong_claude_setting
from turngate.settings.paths import FileTooLarge, NotARegularFile, read_bytes
from turngate.trust.fingerprint import scripts_of

_FAILS = ("will NOT run", "will NOT hold")
MAX_NAME_CHARS = 60


@frozen
class HostHookDiagnosis:
    hook: HostHook
    findings: tuple[Finding, ...]  # the worst first

    @property
    def outlook(self) -> Outlook:
        return self.findings[0].outlook if self.findings else "will run"

    @property
    def name(self) -> str:
        entry = self.hook.entry
        text = self.hook.command or str(entry.get("prompt", entry.get("type", "")))
        text = "turngate hook" if self.hook.is_turngate else one_line(text, MAX_NAME_CHARS)
        return quote_name(text)


@frozen
class HostDiagnosis:
    host: Host
    facts: tuple[Fact, ...]
    hooks: tuple[HostHookDiagnosis, ...]
    problems: tuple[Problem, ...]  # of the files of the host

    @property
    def runs_turngate(self) -> bool:
        """Whether a line at Stop will run and hold."""
        lines = (hook for hook in self.hooks if hook.hook.is_turngate and hook.hook.our_event == "Stop")
        return any(line.outlook not in _FAILS for line in lines)

    @property
    def fails_to_hold(self) -> bool:
        """Whether the host does not run Turngate, or a stop hook does not do there what was meant."""
        return not self.runs_turngate or any(hook.outlook in _FAILS for hook in self.hooks)

    @property
    def has_problem(self) -> bool:
        severities = {finding.severity for hook in self.hooks for finding in hook.findings}
        severities |= {problem.severity for problem in self.problems}
        return bool(severities - {"note"}) or any(fact.is_problem for fact in self.facts)


def diagnose_host(host: Host, settings: Settings, project: str, environ: Mapping[str, str]) -> HostDiagnosis:
    """Examine a host: its program and its settings files. `settings` are those of Turngate, as `turngate hook` reads them."""
    found = diagnose_files(host, settings, project, environ)
    lines = [hook.hook for hook in found.hooks if hook.hook.is_turngate]
    facts = (
        inspect_program(host, environ.get("PATH")),
        _installed(host, lines),
        *([_CHANGED_SINCE] if host is CODEX and lines else ()),
        *_limit(host, settings),
        *_claude_hooks(host, project, environ),
    )
    return replace(found, facts=facts)


def diagnose_files(host: Host, settings: Settings, project: str, environ: Mapping[str, str]) -> HostDiagnosis:
    """Examine only the settings files of a host."""
    files = read_host_files(host, project, environ)
    hooks = [hook for file in files for hook in hooks_in(file)]
    lines = [hook for hook in hooks if hook.is_turngate]
    slow = _slowest(settings)
    found = []
    for hook in filter(_is_examined, hooks):
        if hook.is_turngate:
            others = [other for other in lines if other is not hook and other.our_event == hook.our_event]
            own = check_line(hook, host, others, slow, environ.get("PATH"))
        else:
            own = check_stop_hook(hook, host, project)
        found.append(
            HostHookDiagnosis(
                hook, worst_first([*_common_findings(hook, host, files, project, environ), *own])
            )
        )
    problems = tuple(problem for file in files for problem in _problems_of(file, host))
    return HostDiagnosis(host, (), tuple(found), problems)


def _is_examined(hook: HostHook) -> bool:
    return hook.is_turngate or hook.our_event in STOP_EVENTS


def _slowest(settings: Settings) -> "SlowHook | None":
    stops = [rule for rule in settings.rules if rule.event in STOP_EVENTS and rule.hook.enabled]
    slowest = max(stops, key=settings.timeout_of, default=None)
    if slowest is None:
        return None
    return SlowHook(quote_name(slowest.hook.id or position(slowest)), settings.timeout_of(slowest))


# What holds for all hooks of a file


def _common_findings(
    hook: HostHook, host: Host, files: list[HostFile], project: str, environ: Mapping[str, str]
) -> Iterator[Finding]:
    """Yield what prevents any hook of a file."""
    yield from _rejected(hook.file, host)
    for file in files:
        for key, off in host.switches.items():
            if setting(file.value, key) is off:
                yield _switched_off(key, file)
        disabled = setting(file.value, host.list_of_disabled) if host.list_of_disabled else None
        if isinstance(disabled, list) and hook.command in disabled:
            yield _switched_off(host.list_of_disabled, file)
    if host is CODEX:
        yield from _codex_trust(hook, read_codex_config(project, environ), project)
    if (trust := host.folder_trust) and (trust.needed_for_user or hook.file.level != "user"):
        trusted = trusts_folder(trust, host, files, project, environ)
        message = f"{host.title} does not trust this folder{'' if trusted is False else ' yet'}"
        if not trusted:
            yield Finding("will NOT run", "error", message, f"start `{host.name}` in it and trust it")


def _rejected(file: HostFile, host: Host) -> Iterator[Finding]:
    if why := why_rejected(file, host):
        yield Finding("will NOT run", "error", f"{host.title} rejects {file.name}: {why}")
    if host.reads_them_if and file.owner is not host:
        yield Finding("will run", "note", f"{host.title} reads {file.name} only if {host.reads_them_if}")
    if why := why_ignored(host, file.path, file.name):
        yield Finding("will NOT run", "error", why, host.how_to_be_read)


def _switched_off(setting: str, file: HostFile) -> Finding:
    message = f"{setting} in {file.name} switches it off"
    return Finding("will NOT run", "error", message, f"remove {setting} from {file.name}")


def _codex_trust(hook: HostHook, config: HostFile | None, project: str) -> Iterator[Finding]:
    """Each hook is trusted by itself, by a digest that Codex keeps."""
    trust = codex_trust(hook, config)
    if hook.file.level == "project" and trust != "unknown" and not codex_trusts_project(project, config):
        message = "Codex does not trust this project, and reads none of its hooks"
        yield Finding("will NOT run", "error", message, "start `codex` in the project and trust it")
    if trust == "unknown":
        yield Finding("will run", "note", "whether Codex trusts it is not known", _REVIEW)
    elif trust != "trusted":
        message = "it is not trusted in Codex, which skips it without a message"
        message = "it is switched off in Codex" if trust == "switched off" else message
        yield Finding("will NOT run", "error", message, _REVIEW)


_CHANGED_SINCE = Fact(
    "trust",
    "Codex skips a hook that has changed since you trusted it, and only Codex knows",
    hint="open `/hooks` in Codex after a change",
)
_REVIEW = "start `codex` and review it in `/hooks`"


# Files


def _problems_of(file: HostFile, host: Host) -> Iterator[Problem]:
    if file.problem:
        yield Problem(file=file.name, message=f"{file.problem}, so {host.title} runs no hook in it")
    elif (why := why_rejected(file, host)) and not any(map(_is_examined, hooks_in(file))):
        yield Problem(file=file.name, message=f"is rejected by {host.title} with all hooks: {why}")
    events = file.value.get("hooks")
    for event in events if isinstance(events, dict) else ():
        owner = file.owner
        if event in EVENT_NAMES and event_of(owner, event) is None:
            theirs = owner.events.get(EVENT_NAMES[event])
            message = f"is not an event of {owner.title}: its hooks never run"
            hint = f"write {theirs}" if theirs else f"{owner.title} has no event for it"
            yield Problem(file=file.name, event=event, message=message, hint=hint)


def why_rejected(file: HostFile, host: Host) -> str | None:
    """Return why the host reads no hook of a file that can be parsed."""
    if host.only_keys and file.path.endswith(".json") and (why := _why_of_other_shape(file, host)):
        return why
    if host.checks_types:
        wrong = (wrong_claude_setting(key, value) for key, value in file.value.items())
        for part, value in filter(None, wrong):
            return f"{part} is {describe_json(value)}"
    for hook in hooks_in(file):
        if hook.our_event in STOP_EVENTS and hook.entry.get("type") in host.rejected_types:
            return f"{hook.position} has the type {hook.entry['type']!r}, which it does not accept at a stop"
    is_json = host.has_plain_json and file.path.endswith(".json")
    return _why_not_plain_json(file) if is_json else None


def _why_of_other_shape(file: HostFile, host: Host) -> str | None:
    unknown = next((key for key in file.value if key not in host.only_keys), None)
    if unknown is not None:
        accepted = " and ".join(f"`{key}`" for key in host.only_keys)
        return f"it accepts only {accepted}, and there is `{one_line(unknown, MAX_NAME_CHARS)}`"
    untyped = (hook.position for hook in hooks_in(file) if "type" not in hook.entry)
    return next((f"{position} has no `type`" for position in untyped), None)


def _why_not_plain_json(file: HostFile) -> str | None:
    try:
        with open(file.path, encoding="utf-8-sig") as text:
            json.load(text)
    except (OSError, ValueError):
        return "it accepts no comments and no trailing commas" if not file.problem else None
    return None


# The hooks of Turngate


def with_host_events(diagnosis: Diagnosis, host: Host) -> Diagnosis:
    """Add to each hook of `.turngate` and `.mux` whether `turngate hook` asks it at all."""
    hooks = []
    for hook in diagnosis.hooks:
        event, further = hook.rule.event, hook.findings
        if event not in STOP_EVENTS:
            asked = f"`turngate hook` asks only hooks at {', '.join(STOP_EVENTS)}"
            further = (*further, Finding("will NOT run", "note", asked))
        elif event not in host.events:
            message = f"{host.title} has no event for {event}, so it is never asked"
            further = (*further, Finding("will NOT run", "warning", message))
        hooks.append(replace(hook, findings=worst_first(further)))
    return replace(diagnosis, hooks=tuple(hooks))


# Facts


def _installed(host: Host, lines: Sequence[HostHook]) -> Fact:
    if not lines:
        text = f"{host.title} does not run Turngate: no settings file has the line `turngate hook`"
        return Fact("installed", text, is_problem=True, hint=f"`turngate install {host.name}` adds it")
    files = ", ".join(dict.fromkeys(f"{line.file.name} ({line.file.level})" for line in lines))
    present = {line.our_event for line in lines}
    if missing := [name for ours, name in host.events.items() if ours not in present]:
        hint = f"`turngate install {host.name}` adds the others"
        return Fact("installed", f"in {files}, but not at {', '.join(missing)}", is_problem=True, hint=hint)
    if all(line.file.level == "project" for line in lines):
        limit = "an agent that starts in a subfolder or a new worktree may not read it"
        hint = f"`turngate install {host.name}` writes it to your own settings, which apply everywhere"
        return Fact("installed", f"in {files}; {limit}", hint=hint)
    return Fact("installed", f"in {files}")


def _limit(host: Host, settings: Settings) -> Iterator[Fact]:
    limit = settings.dialect.limit if settings.limit is None else settings.limit
    if host.limit is not None and limit > host.limit:
        count = "1 continuation" if host.limit == 1 else f"{host.limit} continuations"
        text = f"{limit}, but {host.title} itself ends a turn after {count}, without Turngate's message"
        has_remedy = host.limit > 1  # with one, it never asks again
        yield Fact("limit", text, has_remedy, hint=f"lower `limit` to {host.limit}" if has_remedy else None)


def _claude_hooks(host: Host, project: str, environ: Mapping[str, str]) -> Iterator[Fact]:
    """Say who runs the hooks of `.claude`: never `turngate hook`."""
    files = read_host_files(HOSTS["claude"], project, environ)
    hooks_there = (hook for file in files for hook in hooks_in(file))
    count = sum(hook.our_event in STOP_EVENTS and not hook.is_turngate for hook in hooks_there)
    if not count:
        return
    hooks = f"{count} stop hook{'s' * (count != 1)}"
    if host is HOSTS["claude"] or "claude" in host.reads_files_of:
        when = f" if {host.reads_them_if}" if host.reads_them_if else ""
        yield Fact("in .claude", f"{hooks}, which {host.title} runs itself{when}; `turngate hook` does not")
    else:
        text = f"{hooks}, which neither {host.title} nor `turngate hook` runs"
        yield Fact("in .claude", text, hint="put what should run here too in `.turngate/settings.json`")


# Its program: which version is installed, and which one Turngate was run with

MAX_PACKAGE_BYTES = 1024 * 1024
MAX_PARENTS = 4  # of a program, searched for the package.json of npm
VERSION_TIMEOUT_S = 10.0
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?")


def inspect_program(host: Host, path: str | None) -> Fact:
    """Return what is known of the program; `path` is the variable PATH."""
    names = host.programs or (host.name,)
    program = next(filter(None, (shutil.which(name, path=path) for name in names)), None)
    if program is None:
        return Fact(host.title, f"`{names[0]}` is not on PATH", hint="the rest applies once it is installed")
    version = _npm_version(program) or _asked_version(program)
    if version is None:
        return Fact(host.title, f"{program}, its version could not be determined")
    if host.version is None:
        return Fact(host.title, f"{version}; Turngate knows it from its documentation only")
    if _numbers(version) == _numbers(host.version):
        return Fact(host.title, f"{version}, the version that Turngate was run with")
    if _numbers(version) < _numbers(host.version):
        text = f"{version} is older than {host.version}, which Turngate was run with"
        return Fact(host.title, text, hint="update it: older versions may treat hooks differently")
    return Fact(host.title, f"{version}; Turngate was run with {host.version}")


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]


def _npm_version(program: str) -> str | None:
    """Return the version of the npm package that a program is part of; it is not started."""
    folder = os.path.dirname(os.path.realpath(program))
    for _ in range(MAX_PARENTS):
        with contextlib.suppress(OSError, ValueError, NotARegularFile, FileTooLarge):
            package = json.loads(read_bytes(os.path.join(folder, "package.json"), MAX_PACKAGE_BYTES))
            if isinstance(package, dict) and isinstance(package.get("bin"), dict | str):
                found = _VERSION.match(str(package.get("version", "")))
                return found[0] if found else None
        folder = os.path.dirname(folder)
    return None


def _asked_version(program: str) -> str | None:
    try:
        ended = ask_version([program], VERSION_TIMEOUT_S)
    except (OSError, subprocess.SubprocessError):
        return None
    found = _VERSION.search(ended.stdout.decode("utf-8", "replace"))
    return found[0] if found else None


# One hook


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


def check_stop_hook(hook: HostHook, host: Host, project: str) -> Iterator[Finding]:
    """Yield why a stop hook that is not Turngate's does not block on this host."""
    yield from check_type(hook, host)
    command = CommandHook(hook.command, env={PROJECT_VARIABLES.get(host.name, "CLAUDE_PROJECT_DIR"): project})
    rule = Rule(event="Stop", hook=command, family="claude", source="project")
    scripts = (read_script(path, LOCAL) for path in scripts_of(rule, project))
    script = next(filter(None, scripts), None)
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
