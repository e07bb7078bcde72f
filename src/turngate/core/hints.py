"""Hints for the user: what to do about a gate that was not enforced."""

import re

from turngate.core.decisions import Fault
from turngate.core.hook_run import HookRun
from turngate.core.reports import Exited, TimedOut

PENDING_HINT = "read it with `turngate hooks diff`, then approve it with `turngate hooks approve`"
GONE = "it was approved, but is no longer configured"
GONE_HINT = "configure it again, or forget it with `turngate hooks reject`"
_NOT_EXECUTABLE = re.compile(r"([^\s:]*[^\s:/]): Permission denied")


def run_hint(run: HookRun) -> str | None:
    """Return what to do about a run that failed and was not enforced."""
    if not isinstance(run.decision, Fault):
        return None
    if run.rule.pending:
        return GONE_HINT if run.rule.pending == GONE else PENDING_HINT
    match run.report:
        case TimedOut(of_budget=True):
            return "raise `stopBudget`, the time that all hooks of a stop have together"
        case TimedOut():
            return "raise its `timeout`"
        case Exited(code=1):
            return "to block, a hook exits with code 2 and prints the reason on stderr"
        case Exited(code=2, stdout=stdout, stderr=stderr) if not stderr.strip():
            where = "its text is on stdout; " if stdout.strip() else ""
            return f"{where}print the reason on stderr: echo 'REASON' >&2"
        case Exited(code=126, stderr=stderr) if match := _NOT_EXECUTABLE.search(stderr):
            return f"chmod +x {match[1]}"
        case _:
            return None
