"""Hints for the user: what to do about a gate that was not enforced."""

import re

from turngate.core.decisions import Fault
from turngate.core.hook_run import HookRun
from turngate.core.hooks import CommandHook, hook_text
from turngate.core.reports import Exited, TimedOut

MAX_COMMAND_CHARS = 60

_NOT_EXECUTABLE = re.compile(r"([^\s:]*[^\s:/]): Permission denied")


def run_hint(run: HookRun) -> str | None:
    """Return what to do about a run that failed and was not enforced."""
    if not isinstance(run.decision, Fault):
        return None
    match run.report:
        case TimedOut():
            return _timeout_hint(run)
        case Exited(code=1):
            return "to block, a hook exits with code 2 and prints the reason on stderr"
        case Exited(code=2, stdout=stdout, stderr=stderr) if not stderr.strip():
            where = "its text is on stdout; " if stdout.strip() else ""
            return f"{where}print the reason on stderr: echo 'REASON' >&2"
        case Exited(code=126, stderr=stderr) if match := _NOT_EXECUTABLE.search(stderr):
            return f"chmod +x {match[1]}"
        case _:
            return None


def _timeout_hint(run: HookRun) -> str:
    hint = "raise its `timeout`"
    if not isinstance(run.rule.hook, CommandHook):
        return hint
    text = hook_text(run.rule.hook)
    command = text if len(text) <= MAX_COMMAND_CHARS and "\n" not in text else "COMMAND"
    return f"{hint}, or find out how long it takes: time {command}"
