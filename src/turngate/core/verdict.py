"""Decisions → verdict: may the agent stop, and if not, with which prompt does it continue?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, assert_never

from turngate.core.constants import OBSERVED_EVENTS, STOP_EVENTS
from turngate.core.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.core.dialect import Dialect
from turngate.core.hook_output import Answer
from turngate.core.hooks import HookKind, Mode, label
from turngate.core.messages import Evaluation
from turngate.core.reports import Detached, Report, Skipped, TimedOut, printed
from turngate.core.settings import Rule

RunOutcome = Literal["allow", "block", "advise", "halt", "failed", "timeout", "skipped", "would_block"]

# How the command line and the terminal name the outcome of one hook run.
OUTCOME_LABELS: Mapping[RunOutcome, str] = {
    "allow": "passed",
    "block": "blocked",
    "advise": "advised",
    "halt": "halted",
    "failed": "failed (not enforced)",
    "timeout": "timed out (not enforced)",
    "skipped": "skipped",
    "would_block": "would block",
}


@dataclass(frozen=True)
class HookRun:
    """One run of one hook: what was observed and what it means."""

    rule: Rule
    report: Report
    decision: Decision
    seconds: float = 0.0
    timeout: float | None = None  # the limit it ran under
    mode: Mode = "gate"
    finished: int = 0  # its rank among the runs of this event by the time of its end, from 0
    evaluation: Evaluation | None = None  # what the model of a prompt or agent hook cost
    answer: Answer | None = field(default=None, repr=False, compare=False)  # the JSON in `report`, parsed


@dataclass(frozen=True)
class HookOutput:
    """The output of one hook, for users of the Python API; in configured order."""

    event: str
    hook: str
    kind: HookKind
    outcome: RunOutcome
    said: str | None = None  # its reason or advice, or the error
    printed: str = ""  # the stdout of a command, the reply of a model or an endpoint
    notice: str | None = None


@dataclass(frozen=True)
class Stop:
    """The agent may stop."""

    runs: tuple[HookRun, ...] = ()
    halted: bool = False
    stop_reason: str | None = None  # for the user

    @property
    def hook_outputs(self) -> tuple[HookOutput, ...]:
        return outputs(self.runs)


@dataclass(frozen=True)
class Continue:
    """The agent continues with this prompt."""

    runs: tuple[HookRun, ...]
    prompt: str
    advice_only: bool = False

    @property
    def hook_outputs(self) -> tuple[HookOutput, ...]:
        return outputs(self.runs)


Verdict = Stop | Continue


def conclude(runs: tuple[HookRun, ...], dialect: Dialect) -> Verdict:
    for run in runs:
        if type(run.decision) is not Allow:
            break
    else:
        return Stop(runs)  # the common case, kept fast
    enforced = [run for run in runs if run.mode == "gate"]
    halts = [run.decision for run in enforced if isinstance(run.decision, Halt)]
    if halts:  # `continue: false` beats every block of every hook (C-06)
        return Stop(runs, halted=True, stop_reason=next((h.reason for h in halts if h.reason), None))
    event = runs[0].rule.event if runs else ""
    blocking = [run for run in enforced if event not in OBSERVED_EVENTS and is_blocking(run, dialect)]
    if blocking:
        return Continue(runs, _prompt(blocking, enforced, dialect))
    if event in STOP_EVENTS and any(_advice(run) for run in enforced):
        return Continue(runs, _prompt([], enforced, dialect), advice_only=True)
    return Stop(runs)


def is_blocking(run: HookRun, dialect: Dialect) -> bool:
    """An explicit block always counts; a failure only where the hook is `blocking` (C-10)."""
    match run.decision:
        case Block():
            return True
        case Fault():
            may_block = run.decision.may_block and dialect.failure_may_block
            return may_block and run.rule.hook.blocking and run.mode == "gate"
        case Allow() | Advise() | Halt():
            return False
        case _:
            assert_never(run.decision)


def stops_sequence(run: HookRun, dialect: Dialect) -> bool:
    """Return whether `first_block` skips the hooks after this one."""
    return isinstance(run.decision, Halt) or is_blocking(run, dialect)


def block_signature(verdict: Continue, dialect: Dialect) -> tuple[tuple[str, str], ...]:
    """Return which hooks block and why, in a form that can be compared with the next block."""
    gates = (run for run in verdict.runs if run.mode == "gate" and is_blocking(run, dialect))
    return tuple(sorted((label(run.rule.hook), _reason(run)) for run in gates))


# The prompt


def _prompt(blocking: list[HookRun], enforced: list[HookRun], dialect: Dialect) -> str:
    event = enforced[0].rule.event
    if event not in STOP_EVENTS:
        return "\n\n".join(_reason(run) for run in blocking)
    prefix = dialect.subagent_prefix if event == "SubagentStop" else dialect.prefix
    if dialect.prefix_each:
        return _prompt_with_prefixes(prefix, blocking, enforced)
    several = len(blocking) > 1
    parts = [f"{label(run.rule.hook)}: {_reason(run)}" if several else _reason(run) for run in blocking]
    parts += [_advice(run) for run in enforced if _advice(run)]
    return prefix + "\n\n".join(parts)


def _prompt_with_prefixes(prefix: str, blocking: list[HookRun], enforced: list[HookRun]) -> str:
    """Claude Code: one prefixed message per hook, in the order in which the hooks ended."""
    event = enforced[0].rule.event
    by_end = sorted(enforced, key=lambda run: run.finished)
    parts = [prefix + _reason(run) for run in by_end if run in blocking]
    parts += [_reminder(event, _advice(run)) for run in by_end if _advice(run)]
    return "\n\n".join(parts)


def _reminder(event: str, advice: str) -> str:
    return f"<system-reminder>\n{event} hook additional context: {advice}\n</system-reminder>"


def _reason(run: HookRun) -> str:
    match run.decision:
        case Block(reason):
            return reason
        case Fault(error):
            return f"this check is broken and must work before you may stop: {error}"
        case _:
            return ""


def _advice(run: HookRun) -> str:
    match run.decision:
        case Block(advice=str(advice)) | Advise(advice=advice):
            return advice
        case _:
            return ""


# One run, for reporting


def outcome(run: HookRun) -> RunOutcome:
    if isinstance(run.report, Skipped):
        return "skipped"
    match run.decision:
        case Block() | Advise() | Halt() if run.mode == "observe":
            return "would_block"
        case Allow():
            return "allow"
        case Block():
            return "block"
        case Advise():
            return "advise"
        case Halt():
            return "halt"
        case Fault(kind=kind):
            return kind
        case _:
            assert_never(run.decision)


def run_message(run: HookRun) -> str | None:
    """Return the hook's reason, advice or error; for a hook that was not run, why not."""
    if isinstance(run.report, Skipped):
        return run.report.why
    if isinstance(run.report, Detached):
        return "started in the background: its decision is ignored"
    match run.decision:
        case Allow(reason) | Halt(reason):
            return reason
        case Block(reason):
            return reason
        case Advise(advice):
            return advice
        case Fault(error):
            return error
        case _:
            assert_never(run.decision)


def unenforced(runs: Iterable[HookRun], dialect: Dialect) -> tuple[HookRun, ...]:
    """Return the gates that failed, timed out or were skipped, and did not block for that."""
    return tuple(
        run
        for run in runs
        if run.mode == "gate" and isinstance(run.decision, Fault) and not is_blocking(run, dialect)
    )


def warnings(runs: Iterable[HookRun], dialect: Dialect) -> tuple[str, ...]:
    """Return the warnings of these runs for the hooks' authors, each with its hook's name."""
    runs = tuple(runs)
    not_enforced = unenforced(runs, dialect)
    texts: list[str] = []
    for run in runs:
        name = f'hook "{label(run.rule.hook)}"'
        if isinstance(run.decision, Fault) and (run.rule.hook.kind, run.decision.kind) not in dialect.silent:
            texts.append(f"{name} {_fault_warning(run, run.decision, is_enforced=run not in not_enforced)}")
        texts += [f"{name}: {warning}" for warning in run.decision.warnings]
    return tuple(texts)


def _fault_warning(run: HookRun, fault: Fault, *, is_enforced: bool) -> str:
    if isinstance(run.report, TimedOut):  # the error says how long
        return fault.error if is_enforced else f"{fault.error} and was NOT enforced"
    match fault.kind:
        case "failed":
            what = "failed" if is_enforced else "failed and was NOT enforced"
        case "timeout":
            what = "timed out" if is_enforced else "timed out and was NOT enforced"
        case "skipped":
            what = "was skipped" if is_enforced else "was skipped and NOT enforced"
        case _:
            assert_never(fault.kind)
    return f"{what}: {fault.error}"


def notices(runs: Iterable[HookRun]) -> tuple[str, ...]:
    return tuple(run.decision.notice for run in runs if run.decision.notice)


def outputs(runs: Iterable[HookRun]) -> tuple[HookOutput, ...]:
    return tuple(
        HookOutput(
            run.rule.event,
            label(run.rule.hook),
            run.rule.hook.kind,
            outcome(run),
            run_message(run),
            printed(run.report)[0],
            run.decision.notice,
        )
        for run in runs
    )
