"""Hints for the user: what to do about a gate that was not enforced."""

import re
import shlex

from turngate.core.answers.report_types import Exited, Skipped, TimedOut
from turngate.core.settings import Rule
from turngate.core.text import describe_name
from turngate.core.verdict.decisions import Fault
from turngate.core.verdict.hook_run import HookRun

IN_SESSION = "in this session"  # the end of what has changed
GONE = "it was approved, but is no longer configured"
_NOT_EXECUTABLE = r"exit code 126: .*?([^\s:]*[^\s:/]): Permission denied"


def pending_hint(rule: Rule) -> str:
    """Return what to do about a hook that is pending, or that is gone although it was approved."""
    key = describe_name(rule.hook.id) if rule.hook.id else None
    if rule.pending == GONE:
        return f"configure it again, or forget it with `turngate hooks reject {key or 'KEY'}`"
    return (
        f"read it with `turngate hooks diff`, then approve it with `turngate hooks approve {key or '--all'}`"
    )


def run_hint(run: HookRun) -> str | None:
    """Return what to do about a run that failed and was not enforced."""
    if not isinstance(run.decision, Fault):
        return None
    if run.rule.pending:
        return pending_hint(run.rule)
    match run.report:
        case Skipped(why) if why.endswith(IN_SESSION):
            return "restore it, or read it with `turngate hooks diff` and approve it; /hooks does so in a conversation"
        case TimedOut(of_budget=True):
            return "raise `stopBudget`, the time that all hooks of a stop have together"
        case TimedOut():
            return "raise its `timeout`"
        case Exited(code=1):
            return "to block, a hook exits with code 2 and prints the reason on stderr"
        case Exited(code=2, stdout=stdout, stderr=stderr) if not stderr.strip():
            where = "its text is on stdout; " if stdout.strip() else ""
            return f"{where}print the reason on stderr: echo 'REASON' >&2"
        case _:  # a gate says of its command what a hook says of itself
            match = re.match(_NOT_EXECUTABLE, run.decision.error)
            return f"chmod +x {match[1]}" if match else None


_HOOKS_COMMAND = r"`(turngate hooks [^`]*)`"
_PROJECT_COMMAND = r"`(turngate (?:status|init|check|hooks|gates|fire|doctor|log|run)\b(?! --help)[^`]*)`"


def with_location(text: str, location: str) -> str:
    """Return a text whose commands `turngate hooks …` are about a project on another machine, if it is on one: `ssh://build/srv/app`."""
    if not location.startswith("ssh://"):
        return text
    return re.sub(_HOOKS_COMMAND, lambda command: f"`{command[1]} --ssh {shlex.quote(location)}`", text)


def with_project(text: str, folder: str) -> str:
    return re.sub(_PROJECT_COMMAND, lambda command: f"`{command[1]} --project {shlex.quote(folder)}`", text)
