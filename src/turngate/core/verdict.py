"""Decisions → verdict: may the agent stop, and if not, what is it told?"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

from turngate.core.constants import OBSERVED, STOP_EVENTS
from turngate.core.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.core.dialect import Dialect
from turngate.core.hooks import HookKind, Mode, label
from turngate.core.messages import Evaluation
from turngate.core.reports import Detached, Report, Skipped, printed
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
    """A result never loses the hook it came from."""

    rule: Rule
    report: Report
    decision: Decision
    seconds: float = 0.0
    timeout: float | None = None  # the limit it ran under
    mode: Mode = "gate"
    finished: int = 0  # which of its siblings it was to end, counting from 0
    evaluation: Evaluation | None = None  # what it took of a model, if it asked one


@dataclass(frozen=True)
class HookOutput:
    """What one hook gave back, in the order of the configuration."""

    event: str
    hook: str
    kind: HookKind
    outcome: RunOutcome
    said: str | None = None  # its reason or its praise, whatever it decided
    printed: str = ""  # a command's stdout, a model's or an endpoint's whole reply
    notice: str | None = None


@dataclass(frozen=True)
class Stop:
    """The agent may go home."""

    runs: tuple[HookRun, ...] = ()
    halted: bool = False
    stop_reason: str | None = None  # for the user

    @property
    def hook_outputs(self) -> tuple[HookOutput, ...]:
        return outputs(self.runs)


@dataclass(frozen=True)
class Continue:
    """The agent goes on with this prompt."""

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
        return Stop(runs)  # as most stops end
    enforced = [run for run in runs if run.mode == "gate"]
    halts = [run.decision for run in enforced if isinstance(run.decision, Halt)]
    if halts:  # `continue: false` beats every block of every hook (C-06)
        return Stop(runs, halted=True, stop_reason=next((h.reason for h in halts if h.reason), None))
    event = runs[0].rule.event if runs else ""
    refusing = [run for run in enforced if event not in OBSERVED and refuses(run, dialect)]
    if refusing:
        return Continue(runs, _message(refusing, enforced, dialect))
    if event in STOP_EVENTS and any(_advice(run) for run in enforced):
        return Continue(runs, _message([], enforced, dialect), advice_only=True)
    return Stop(runs)


def refuses(run: HookRun, dialect: Dialect) -> bool:
    """An explicit block always counts; a failure only where the hook asked for it (C-10)."""
    match run.decision:
        case Block():
            return True
        case Fault():
            may = run.decision.may_block and dialect.failure_may_block
            return may and run.rule.hook.blocking and run.mode == "gate"
        case Allow() | Advise() | Halt():
            return False
        case _:
            assert_never(run.decision)


def stops_sequence(run: HookRun, dialect: Dialect) -> bool:
    """In the order `first_block`: nobody after this hook is asked."""
    return isinstance(run.decision, Halt) or refuses(run, dialect)


def refusal(verdict: Continue, dialect: Dialect) -> tuple[tuple[str, str], ...]:
    """Who refuses and why, in a form that can be compared with the next refusal."""
    gates = (run for run in verdict.runs if run.mode == "gate" and refuses(run, dialect))
    return tuple(sorted((label(run.rule.hook), _reason(run)) for run in gates))


def _message(refusing: list[HookRun], enforced: list[HookRun], dialect: Dialect) -> str:
    event = enforced[0].rule.event
    if event not in STOP_EVENTS:
        return "\n\n".join(_reason(run) for run in refusing)
    prefix = dialect.child_prefix if event == "SubagentStop" else dialect.prefix
    if dialect.prefix_each:
        by_end = sorted(enforced, key=lambda run: run.finished)
        parts = [prefix + _reason(run) for run in by_end if run in refusing]
        parts += [_reminder(event, _advice(run)) for run in by_end if _advice(run)]
        return "\n\n".join(parts)
    several = len(refusing) > 1
    parts = [f"{label(run.rule.hook)}: {_reason(run)}" if several else _reason(run) for run in refusing]
    parts += [_advice(run) for run in enforced if _advice(run)]
    return prefix + "\n\n".join(parts)


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


def said(run: HookRun) -> str | None:
    """What the hook said, whatever it decided; of one that was not run, why."""
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
    """The gates that failed, timed out or were skipped, so that nothing stands behind them."""
    return tuple(
        run
        for run in runs
        if run.mode == "gate" and isinstance(run.decision, Fault) and not refuses(run, dialect)
    )


def warnings(runs: Iterable[HookRun], dialect: Dialect) -> tuple[str, ...]:
    """Everything that somebody should know about these runs, each with its hook's name."""
    loose = unenforced(runs := tuple(runs), dialect)
    found = []
    for run in runs:
        if isinstance(run.decision, Fault) and (run.rule.hook.kind, run.decision.kind) not in dialect.silent:
            tail = ": NOT enforced" if run in loose else ""
            found.append(f"{label(run.rule.hook)} {_FAULTS[run.decision.kind]}{tail}: {run.decision.error}")
        found += [f"{label(run.rule.hook)}: {warning}" for warning in run.decision.warnings]
    return tuple(found)


_FAULTS = {"failed": "failed", "timeout": "timed out", "skipped": "was skipped"}


def notices(runs: Iterable[HookRun]) -> tuple[str, ...]:
    return tuple(run.decision.notice for run in runs if run.decision.notice)


def outputs(runs: Iterable[HookRun]) -> tuple[HookOutput, ...]:
    return tuple(
        HookOutput(
            run.rule.event,
            label(run.rule.hook),
            run.rule.hook.kind,
            outcome(run),
            said(run),
            printed(run.report)[0],
            run.decision.notice,
        )
        for run in runs
    )
