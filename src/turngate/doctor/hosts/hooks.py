"""Stop hooks of the user that cannot block on a host, as far as that is visible in their text."""

import os
import re
import shlex
from collections.abc import Iterator
from string import Template

from turngate.check.lint import lint
from turngate.core.dialect import CLAUDE
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Rule, Settings
from turngate.doctor.diagnosis import Finding, finding_of
from turngate.doctor.hosts.commands import check_type
from turngate.doctor.hosts.files import HostHook
from turngate.hosts.base import Host
from turngate.settings.script_file import Script, block_attempt, read_script

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
