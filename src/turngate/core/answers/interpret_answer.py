"""Answer → decision: what an answer in the JSON contract means in a dialect."""

from dataclasses import replace
from typing import NamedTuple, assert_never

from turngate.core.answers.contract import DENIED, Answer, InvalidAnswer, PlainText
from turngate.core.constants import PERMISSION_EVENTS
from turngate.core.dialect import Dialect
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt


class Interpretation(NamedTuple):
    """A decision, and the JSON answer it was made from, if the hook gave one."""

    decision: Decision
    answer: Answer | None = None


def decide(answer: Answer | PlainText | InvalidAnswer, event: str, dialect: Dialect) -> Decision:
    """Return what an answer in the JSON contract means."""
    match answer:
        case PlainText(lost, warnings):
            return Fault(lost, warnings=warnings) if lost else Allow(warnings=warnings)
        case InvalidAnswer(error):
            return Fault(error)
        case Answer():
            return with_notes(_decision_of(answer, event, dialect), answer)
        case _:
            assert_never(answer)


def _decision_of(answer: Answer, event: str, dialect: Dialect) -> Decision:
    if answer.continue_turn is False:
        both = answer.decision == "block" and not dialect.strict_json
        return Halt(answer.stop_reason, waits=answer.waits, warnings=(_HALT_AND_BLOCK,) if both else ())
    if answer.decision == "block":
        advice = answer.advice if dialect.advice != "never" else None
        if answer.reason and answer.reason.strip():
            return Block(answer.reason, advice, continuations=answer.continuations)
        return block_without_reason(event, dialect, advice)
    if answer.lost and not (dialect.strict_json and has_effect(answer)):
        return Fault(answer.lost)
    if answer.not_enforced:
        return Fault(answer.not_enforced)
    if answer.advice and answer.advice.strip() and dialect.advice != "never":
        return Advise(answer.advice)
    return Allow(answer.reason)


def block_without_reason(event: str, dialect: Dialect, advice: str | None = None) -> Decision:
    """At a stop the reason is the next prompt, so there is no block without one; a denial needs none (C-11)."""
    reason = dialect.default_reason or (DENIED if event in PERMISSION_EVENTS else None)
    return Block(reason, advice) if reason else NO_REASON


def has_effect(answer: Answer) -> bool:
    """Return whether an answer does something, apart from a reason and a notice."""
    halts = answer.continue_turn is False
    changes = answer.updated_input is not None or answer.updated_output is not None
    return bool(answer.decision or halts or answer.advice or answer.permission or changes)


NO_REASON = Fault("it blocked without a reason, so it does not block", may_block=False)
_HALT_AND_BLOCK = "it sent `continue: false` with a block: the turn ends and the block's reason is not used"


def with_notes(decision: Decision, answer: Answer) -> Decision:
    warnings = answer.warnings + decision.warnings
    if answer.lost and not isinstance(decision, Fault):
        warnings = (f"{answer.lost}; this part of its answer is NOT enforced", *warnings)
    notice = None if _repeats_fault(answer) else answer.notice
    if notice is None and not warnings and not answer.quiet:
        return decision
    return replace(decision, notice=notice, warnings=warnings, quiet=answer.quiet)


def _repeats_fault(answer: Answer) -> bool:
    """Return whether the notice says what the warning about the fault says, for hosts that know no `notEnforced`."""
    return bool(answer.not_enforced and answer.notice and answer.not_enforced in answer.notice)
