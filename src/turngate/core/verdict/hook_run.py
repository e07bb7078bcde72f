"""One run of one hook: its report, its decision, its outcome and its output."""

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Any, Literal, assert_never

from turngate._frozen_dataclass import frozen
from turngate.core.answers.answer_json import Answer
from turngate.core.answers.report_types import Detached, Report, Skipped, printed
from turngate.core.conversation.messages import Evaluation
from turngate.core.hooks.kinds import HookKind, Mode, label
from turngate.core.settings import Rule
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt

HookOutcome = Literal[
    "allow", "block", "advise", "halt", "failed", "timeout", "skipped", "waiting", "would_block"
]


# How the command line and the terminal name the outcome of one hook run.
OUTCOME_LABELS: Mapping[HookOutcome, str] = {
    "allow": "passed",
    "block": "blocked",
    "advise": "advised",
    "halt": "halted",
    "failed": "failed (not enforced)",
    "timeout": "timed out (not enforced)",
    "skipped": "skipped",
    "waiting": "waiting (not enforced)",
    "would_block": "would block",
}


@frozen
class HookRun:
    """One run of one hook: what was observed and what it means."""

    rule: Rule
    report: Report
    decision: Decision
    seconds: float = 0.0
    timeout: float | None = None  # the limit it ran under
    mode: Mode = "gate"
    finished: int = 0  # its position when the runs of this event are ordered by their end, from 0
    evaluation: Evaluation | None = None  # what the model of a prompt or agent hook cost
    answer: Answer | None = field(default=None, repr=False, compare=False)  # the JSON in `report`, parsed


@frozen
class HookOutput:
    """The output of one hook, for users of the Python API; in configured order."""

    event: str
    hook: str
    kind: HookKind
    outcome: HookOutcome
    said: str | None = None  # its reason or advice, or the error
    printed: str = ""  # the stdout of a command, the reply of a model or an endpoint
    notice: str | None = None


_RECORDED = ("event", "hook", "kind", "outcome", "said")


def record_outputs(hooks: Iterable[HookOutput]) -> list[dict[str, Any]]:
    """Return these outputs as they are stored: without what the hooks printed."""
    return [{name: getattr(hook, name) for name in _RECORDED} for hook in hooks]


def recorded_outputs(records: Any) -> tuple[HookOutput, ...]:
    """Return the outputs that `record_outputs` has given; anything else counts as none."""
    try:
        return tuple(HookOutput(**record) for record in records)
    except TypeError:
        return ()


# One run, for reporting


def outcome(run: HookRun) -> HookOutcome:
    if isinstance(run.report, Skipped) and not isinstance(run.decision, Block):
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
    if isinstance(run.report, Skipped) and not isinstance(run.decision, Block):
        return run.report.why
    if isinstance(run.report, Detached):
        effect = "exit code 2 wakes the agent" if run.rule.hook.rewake else "its decision is ignored"
        return f"started in the background: {effect}"
    match run.decision:
        case Advise(text) | Fault(text):
            return text
        case Allow(reason) | Halt(reason) | Block(reason):
            return reason
        case _:
            assert_never(run.decision)


def outputs(runs: Iterable[HookRun]) -> tuple[HookOutput, ...]:
    return tuple(map(_output, runs))


def _output(run: HookRun) -> HookOutput:
    event, hook, stdout = run.rule.event, run.rule.hook, printed(run.report)[0]
    return HookOutput(
        event, label(hook), hook.kind, outcome(run), run_message(run), stdout, run.decision.notice
    )
