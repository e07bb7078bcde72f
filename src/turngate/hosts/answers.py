"""What the loop guard decided → the answer to a host."""

from collections.abc import Sequence

from turngate.core.verdict.loop_guard import ContinueTurn, EndTurn, describe_last_reason
from turngate.hosts.base import HostAnswer

# A host may take an empty reason for no block at all.
NO_REASON = "A hook blocked the stop without a reason."
NO_STOP_REASON = "no reason given"


def answer_for(step: ContinueTurn | EndTurn, notices: Sequence[str] = ()) -> HostAnswer:
    """Return the answer for the next step of a turn; `notices` are what else the user has to know."""
    last = describe_last_reason(step) if isinstance(step, EndTurn) else None
    texts = tuple(text for text in (step.notice, last, *notices) if text)
    match step:
        case ContinueTurn():
            return HostAnswer(decision="block", reason=_reason(step), notices=texts)
        case EndTurn(ended_by="halted"):
            return HostAnswer(decision="halt", reason=_stop_reason(step), notices=texts)
        case EndTurn(ended_by="checkpoint"):
            reason = f"waiting for the user: {_stop_reason(step)}"
            return HostAnswer(decision="halt", reason=reason, notices=texts)
        case EndTurn():
            return HostAnswer(decision="allow", notices=texts)


def _reason(step: ContinueTurn) -> str:
    return step.prompt.strip() or NO_REASON


def _stop_reason(step: EndTurn) -> str:
    return (step.stop_reason or "").strip() or NO_STOP_REASON
