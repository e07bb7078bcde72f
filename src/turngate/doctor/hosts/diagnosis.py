"""Decides whether a host runs Turngate at a stop, and whether other stop hooks of its settings can block there.

Stop hooks of the user that cannot block on a host, as far as that is visible in their text.
"""

import json
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from string import Template

from turngate._frozen import frozen
from turngate.check.lint import lint
from turngate.core.constants import wrong_claude_setting
from turngate.core.dialect import CLAUDE
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Problem, Rule, Settings
from turngate.core.shell.exit_codes import block_attempt
from turngate.core.text import describe_json, one_line, quote_name
from turngate.doctor.diagnosis import Diagnosis, Finding, HookDiagnosis, Outlook, finding_of, worst_first
from turngate.doctor.environment import Fact
from turngate.doctor.hosts.commands import SlowHook, check_line, check_type, missing_events
from turngate.doctor.hosts.files import (
    HOW_TO_BE_READ,
    HostFile,
    HostHook,
    event_of,
    hooks_in,
    read_host_files,
    why_ignored,
)
from turngate.doctor.hosts.program import inspect_program
from turngate.doctor.hosts.trust import (
    codex_trust,
    codex_trusts_project,
    read_codex_config,
    trusts_folder,
)
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.host import Host
from turngate.hosts.input_fields import EVENT_NAMES
from turngate.settings.script_file import Script, read_script

# Hosts on which a hook that exits with 2 lets the agent stop.
IGNORES_EXIT_2 = ("copilot", "cursor")
# Hosts that read the exit code and the output of a hook as Claude Code does.
READS_EXIT_CODES = ("claude", "codex", "qwen", "droid")
# Hosts on which `continue: false` does not end the turn.
IGNORES_CONTINUE = ("qwen", "copilot", "cursor")
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
    texts = [hook.command, script.text] if script else [hook.command]
    whole = "\n".join(texts)
    if _FIRES.match(hook.command):
        message = "`turngate fire` answers with exit code 10, which no agent program takes for a block"
        yield Finding(
            "will NOT hold", "error", message, f"`turngate install {host.name}` adds `turngate hook`"
        )
    elif host.name in READS_EXIT_CODES:
        yield from _lint(hook, project)
    if (
        host.name in IGNORES_EXIT_2
        and _exits_with_2(hook.command, script)
        and not _PRINTS_DECISION.search(whole)
    ):
        message = f"blocks only with exit code 2, which {host.title} takes for a warning"
        hint = 'print {"decision": "block", "reason": …} and exit with 0, or make it a gate of `.turngate`'
        yield Finding("will NOT hold", "error", message, hint)
    if host.name == "codex" and _PRINTS_SPECIFIC.search(whole):
        message = "prints `hookSpecificOutput`, and Codex rejects a stop answer with it, also its block"
        yield Finding("will NOT hold", "error", message, "print only `decision` and `reason`")
    if host.name in IGNORES_CONTINUE and _PRINTS_CONTINUE.search(whole):
        what = "continues the turn then" if host.name == "qwen" else "ignores it"
        message = f"prints `continue: false`, and {host.title} {what}"
        yield Finding("will run, but", "warning", message, "print nothing to let the agent stop")


def _lint(hook: HostHook, project: str) -> Iterator[Finding]:
    """Yield what `turngate check` knows about the command: these hosts read exit codes as Claude Code does."""
    if not hook.command or hook.entry.get("type", "command") != "command":
        return
    rule = Rule(
        event=hook.our_event or "Stop", hook=CommandHook(hook.command), family="claude", source="project"
    )
    for problem in lint(Settings(rules=(rule,), dialect=CLAUDE), project):
        if problem.field in (None, "command") and problem.severity != "note":
            yield finding_of(problem, is_gate=True)


def _exits_with_2(command: str, script: Script | None) -> bool:
    if _GATE_EXIT_CODE.match(command):
        return True
    of_script = script and block_attempt(script.text, script.language) == "exits with 2"
    return bool(of_script) or block_attempt(command) == "exits with 2"


def _script_of(command: str, host: Host, project: str) -> Script | None:
    """Return the script that a command runs, if it names one."""
    variables = {"CLAUDE_PROJECT_DIR": project, host.project_variable or "CLAUDE_PROJECT_DIR": project}
    try:
        words = shlex.split(Template(command).safe_substitute(variables))[:_MAX_WORDS]
    except ValueError:
        return None
    paths = (os.path.join(project, os.path.expanduser(word)) for word in words if "/" in word or "." in word)
    return next(filter(None, map(read_script, filter(os.path.isfile, paths))), None)


_STOPS = ("Stop", "SubagentStop")
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
        return any(
            hook.hook.is_turngate
            and hook.hook.our_event == "Stop"
            and hook.outlook not in ("will NOT run", "will NOT hold")
            for hook in self.hooks
        )

    @property
    def fails_to_hold(self) -> bool:
        """Whether the host does not run Turngate, or a stop hook does not do there what was meant."""
        return not self.runs_turngate or any(
            hook.outlook in ("will NOT run", "will NOT hold") for hook in self.hooks
        )

    @property
    def has_problem(self) -> bool:
        findings = (finding for hook in self.hooks for finding in hook.findings)
        return (
            any(finding.severity != "note" for finding in findings)
            or any(problem.severity != "note" for problem in self.problems)
            or any(fact.is_problem for fact in self.facts)
        )


def diagnose_host(host: Host, settings: Settings, project: str, environ: Mapping[str, str]) -> HostDiagnosis:
    """Examine the settings files of a host. `settings` are those of Turngate, as `turngate hook` reads them."""
    files = read_host_files(host, project, environ)
    hooks = [hook for file in files for hook in hooks_in(file)]
    lines = [hook for hook in hooks if hook.is_turngate]
    common = _common_findings(host, files, project, environ)
    slow = _slowest(settings)
    found = []
    for hook in hooks:
        findings: list[Finding] = [*common(hook)]
        if not _is_examined(hook):
            continue
        if hook.is_turngate:
            others = [other for other in lines if other is not hook and other.our_event == hook.our_event]
            findings += check_line(hook, host, others, slow, environ.get("PATH"))
        else:
            findings += check_stop_hook(hook, host, project)
        found.append(HostHookDiagnosis(hook, worst_first(findings)))
    problems = tuple(problem for file in files for problem in _problems_of(file, host))
    facts = (
        inspect_program(host, environ.get("PATH")),
        _installed(host, lines),
        *_limit(host, settings),
        *_claude_hooks(host, project, environ),
    )
    return HostDiagnosis(host, facts, tuple(found), problems)


def _is_examined(hook: HostHook) -> bool:
    return hook.is_turngate or hook.our_event in _STOPS


def _slowest(settings: Settings) -> SlowHook | None:
    stops = [rule for rule in settings.rules if rule.event in _STOPS and rule.hook.enabled]
    slowest = max(stops, key=settings.timeout_of, default=None)
    if slowest is None:
        return None
    name = slowest.hook.id or f"{slowest.event}{slowest.index or ''}"
    return SlowHook(quote_name(name), settings.timeout_of(slowest))


# What holds for all hooks of a file


def _common_findings(
    host: Host, files: list[HostFile], project: str, environ: Mapping[str, str]
) -> Callable[[HostHook], Iterator[Finding]]:
    """Return the function that yields what prevents any hook of a file."""
    switches = [switch for file in files for switch in _switches(file, host)]
    checks: list[Callable[[HostHook], Iterator[Finding]]] = [
        lambda hook: _rejected(hook.file, host),
        lambda hook: (
            finding for commands, finding in switches if commands is None or hook.command in commands
        ),
    ]
    if host.name == "codex":
        config = read_codex_config(project, environ)
        checks.append(lambda hook: _codex_trust(hook, config, project))
    if host.name in ("gemini", "qwen", "copilot"):
        trusted = trusts_folder(host, files, project, environ)
        checks.append(lambda hook: _folder_trust(hook, host, trusted))
    return lambda hook: (finding for check in checks for finding in check(hook))


def _rejected(file: HostFile, host: Host) -> Iterator[Finding]:
    if why := why_rejected(file, host):
        yield Finding("will NOT run", "error", f"{host.title} rejects {file.name}: {why}")
    if host.name == "cursor" and file.owner is not host:
        yield Finding(
            "will run", "note", f"Cursor reads {file.name} only if `Third-party skills` is switched on"
        )
    if why := why_ignored(host, file.path, file.name):
        yield Finding("will NOT run", "error", why, HOW_TO_BE_READ)


_Switch = tuple[Sequence[object] | None, Finding]  # the commands that it switches off, None: all


def _switches(file: HostFile, host: Host) -> Iterator[_Switch]:
    """Yield what switches hooks off."""
    value = file.value
    if host.name in ("claude", "qwen") and value.get("disableAllHooks") is True:
        yield None, _switched_off("disableAllHooks", file)
    config = value.get("hooksConfig") if host.name == "gemini" else None
    if isinstance(config, dict):
        if config.get("enabled") is False:
            yield None, _switched_off("hooksConfig.enabled", file)
        disabled = config.get("disabled")
        if isinstance(disabled, list):
            yield disabled, _switched_off("hooksConfig.disabled", file)
    features = value.get("features") if host.name == "codex" else None
    for name in ("hooks", "codex_hooks"):
        if isinstance(features, dict) and features.get(name) is False:
            yield None, _switched_off(f"features.{name}", file)


def _switched_off(setting: str, file: HostFile) -> Finding:
    message = f"{setting} in {file.name} switches it off"
    return Finding("will NOT run", "error", message, f"remove {setting} from {file.name}")


def _codex_trust(hook: HostHook, config: Mapping[str, object] | None, project: str) -> Iterator[Finding]:
    if hook.file.level == "project" and config is not None and not codex_trusts_project(project, config):
        message = "Codex does not trust this project, and reads no hooks of it"
        yield Finding("will NOT run", "error", message, "start `codex` in the project and trust it")
    match codex_trust(hook, config):
        case "trusted":
            return
        case "unknown":
            yield Finding("will run", "note", "whether it is trusted in Codex cannot be known", _REVIEW)
        case "switched off":
            yield Finding("will NOT run", "error", "it is switched off in Codex", _REVIEW)
        case "changed":
            message = "it has changed since it was trusted in Codex, which skips it without a message"
            yield Finding("will NOT run", "error", message, _REVIEW)
        case "not trusted":
            message = "it is not trusted in Codex, which skips it without a message"
            yield Finding("will NOT run", "error", message, _REVIEW)


_REVIEW = "start `codex` and review it in `/hooks`"


def _folder_trust(hook: HostHook, host: Host, trusted: bool | None) -> Iterator[Finding]:
    """Gemini CLI runs no hooks at all in a folder that is not trusted, the others none of the project."""
    if trusted or (host.name != "gemini" and hook.file.level == "user"):
        return
    message = f"{host.title} does not trust this folder" + ("" if trusted is False else " yet")
    yield Finding("will NOT run", "error", message, f"start `{host.name}` in it and trust it")


# Files


def _problems_of(file: HostFile, host: Host) -> Iterator[Problem]:
    if file.problem:
        yield Problem(file=file.name, message=f"{file.problem}, so {host.title} runs no hook of it")
    elif (why := why_rejected(file, host)) and not any(map(_is_examined, hooks_in(file))):
        yield Problem(file=file.name, message=f"is rejected by {host.title} with all hooks: {why}")
    events = file.value.get("hooks")
    for event in events if isinstance(events, dict) else ():
        if event in _KNOWN_EVENTS and event_of(file.owner, event) is None:
            yield _unknown_event(file, event)


_KNOWN_EVENTS = frozenset(EVENT_NAMES) | {name for host in HOSTS.values() for name in host.events.values()}


def _unknown_event(file: HostFile, event: str) -> Problem:
    owner, ours = file.owner, EVENT_NAMES.get(event, "")
    theirs = owner.events.get(ours)
    return Problem(
        file=file.name,
        event=event,
        message=f"is not an event of {owner.title}: hooks of it never run",
        hint=f"write {theirs}" if theirs else f"{owner.title} has no event for it",
    )


def why_rejected(file: HostFile, host: Host) -> str | None:
    """Return why the host reads no hook of a file that can be parsed."""
    if host.name == "codex" and file.path.endswith(".json"):
        return _why_codex_rejects(file)
    if host.name == "claude":
        wrong = (wrong_claude_setting(key, value) for key, value in file.value.items())
        found = (f"{part} is {describe_json(value)}" for part, value in filter(None, wrong))
        return next(found, None) or _why_not_plain_json(file)
    if host.name == "copilot":
        hook = next((hook for hook in hooks_in(file) if _is_stop_prompt(hook)), None)
        if hook is not None:
            return f"{hook.position} has the type {hook.entry['type']!r}, which it does not accept at a stop"
    return None


def _why_codex_rejects(file: HostFile) -> str | None:
    unknown = [key for key in file.value if key not in ("description", "hooks")]
    if unknown:
        return f"it accepts only `description` and `hooks`, and there is `{one_line(unknown[0], MAX_NAME_CHARS)}`"
    for hook in hooks_in(file):
        if "type" not in hook.entry:
            return f"{hook.position} has no `type`"
    return _why_not_plain_json(file)


def _why_not_plain_json(file: HostFile) -> str | None:
    """Gemini CLI and Qwen Code read comments, Codex and Claude Code do not."""
    try:
        with open(file.path, encoding="utf-8-sig") as text:
            json.load(text)
    except (OSError, ValueError):
        return "it accepts no comments and no trailing commas" if not file.problem else None
    return None


def _is_stop_prompt(hook: HostHook) -> bool:
    return hook.our_event in _STOPS and hook.entry.get("type") in ("prompt", "agent")


# The hooks of Turngate


def with_host_events(diagnosis: Diagnosis, host: Host) -> Diagnosis:
    """Add to each hook of `.turngate` and `.mux` whether `turngate hook` asks it at all."""
    return replace(diagnosis, hooks=tuple(_with_host_event(hook, host) for hook in diagnosis.hooks))


def _with_host_event(hook: HookDiagnosis, host: Host) -> HookDiagnosis:
    event = hook.rule.event
    if event not in _STOPS:
        message = f"`turngate hook` asks only hooks at {' and '.join(_STOPS)}"
        further = Finding("will NOT run", "note", message)
    elif event not in host.events:
        message = f"{host.title} has no event for {event}, so it is never asked"
        further = Finding("will NOT run", "warning", message)
    else:
        return hook
    return replace(hook, findings=worst_first([*hook.findings, further]))


# Facts


def _installed(host: Host, lines: Sequence[HostHook]) -> Fact:
    if not lines:
        text = f"{host.title} does not run Turngate: no settings file has the line `turngate hook`"
        return Fact("installed", text, is_problem=True, hint=f"`turngate install {host.name}` adds it")
    files = ", ".join(dict.fromkeys(f"{line.file.name} ({line.file.level})" for line in lines))
    if missing := missing_events(host, lines):
        text = f"in {files}, but not at {', '.join(missing)}"
        return Fact(
            "installed", text, is_problem=True, hint=f"`turngate install {host.name}` adds the others"
        )
    return Fact("installed", f"in {files}")


def _limit(host: Host, settings: Settings) -> Iterator[Fact]:
    limit = settings.dialect.limit if settings.limit is None else settings.limit
    if host.limit is not None and limit > host.limit:
        text = f"{limit}, but {host.title} itself ends a turn after {host.limit} continuations, without Turngate's message"
        yield Fact("limit", text, is_problem=True, hint=f"lower `limit` to {host.limit}")


def _claude_hooks(host: Host, project: str, environ: Mapping[str, str]) -> Iterator[Fact]:
    """Say who runs the hooks of `.claude`: never `turngate hook`."""
    files = read_host_files(HOSTS["claude"], project, environ)
    count = sum(
        hook.our_event in _STOPS and not hook.is_turngate for file in files for hook in hooks_in(file)
    )
    if not count:
        return
    hooks = f"{count} stop hook{'s' * (count != 1)}"
    if host.name == "claude" or "claude" in host.reads_files_of:
        when = " if `Third-party skills` is switched on" if host.name == "cursor" else ""
        yield Fact("in .claude", f"{hooks}, which {host.title} runs itself{when}; `turngate hook` does not")
    else:
        text = f"{hooks}, which neither {host.title} nor `turngate hook` runs"
        yield Fact("in .claude", text, hint="what is to hold here too belongs in `.turngate/settings.json`")
