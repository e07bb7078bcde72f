"""Report → decision: what a hook's exit code and output mean in a dialect."""

from dataclasses import replace
from typing import Any, assert_never

from turngate.core.answers.contract import Answer, InvalidAnswer, PlainText, read_answer, read_object
from turngate.core.answers.exit_codes import exited_with_2, exited_with_2_at_request, interpret_exit
from turngate.core.answers.interpret_answer import Interpretation, block_without_reason, decide
from turngate.core.answers.judge import parse_judgement
from turngate.core.answers.misplaced import ANSWER_KEYS
from turngate.core.answers.reports import (
    Detached,
    Exited,
    HookFailed,
    JudgeReplied,
    Replied,
    Report,
    Returned,
    Skipped,
    TimedOut,
)
from turngate.core.constants import OBSERVED_EVENTS, PERMISSION_EVENTS, STOP_EVENTS
from turngate.core.dialect import Dialect
from turngate.core.hooks.kinds import AgentHook, hook_text
from turngate.core.settings import Rule
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt

PASSED = Interpretation(Allow())


def interpret(report: Report, rule: Rule, dialect: Dialect) -> Interpretation:
    interpretation = _interpret(report, rule, dialect)
    if isinstance(interpretation.decision, Block) and rule.event in OBSERVED_EVENTS:
        return _without_block(interpretation.decision, interpretation.answer, rule.event)
    fault = interpretation.decision
    if isinstance(fault, Fault) and dialect.unreadable_asks and _has_unreadable_answer(report, rule, dialect):
        return interpretation._replace(decision=replace(fault, asks_user=True))
    return interpretation


def _has_unreadable_answer(report: Report, rule: Rule, dialect: Dialect) -> bool:
    """Return whether a hook that failed has answered about a tool call: it may have been a denial."""
    if rule.event not in PERMISSION_EVENTS:
        return False
    match report:
        case Exited(code=0) | Exited(code=2) | Replied() | JudgeReplied() | Returned():
            return True
        case Exited(stdout=stdout) | TimedOut(stdout=stdout):
            return _restricts(read_answer(stdout, rule.event, dialect))
        case _:
            return False


def _restricts(answer: Answer | PlainText | InvalidAnswer) -> bool:
    match answer:
        case Answer():
            denies = answer.decision == "block" or answer.permission in ("deny", "ask", "defer")
            return denies or answer.continue_turn is False or answer.lost is not None
        case PlainText(lost):
            return lost is not None
        case InvalidAnswer():
            return True
        case _:
            assert_never(answer)


def _without_block(block: Block, answer: Answer | None, event: str) -> Interpretation:
    """A block has no effect at this event; the context of a hook that also blocks is kept."""
    error = f"a hook cannot block at {event}: {one_line(block.reason, MAX_BLOCK_CHARS)}"
    if block.advice:
        return Interpretation(
            Advise(block.advice, notice=block.notice, warnings=(error, *block.warnings)), answer
        )
    fault = Fault(error, may_block=False, notice=block.notice, warnings=block.warnings)
    return Interpretation(replace(fault, quiet=block.quiet), answer)


MAX_BLOCK_CHARS = 300


def _interpret(report: Report, rule: Rule, dialect: Dialect) -> Interpretation:
    match report:
        case Returned(value):
            return _interpret_return(value, rule, dialect)
        case Exited(code=2) if rule.event == "PermissionRequest":
            return exited_with_2_at_request(report, rule, dialect)
        case Exited(code=2):
            return Interpretation(exited_with_2(report, rule, dialect))
        case Exited():
            return interpret_exit(report, rule, dialect)
        case Replied(text):
            return _interpret_reply(text, rule, dialect)
        case JudgeReplied(text):
            return _interpret_judgement(text, rule, dialect)
        case Detached():
            return PASSED
        case TimedOut(seconds):
            return Interpretation(Fault(f"timed out after {seconds:.3g} s", "timeout"))
        case HookFailed(error):
            return Interpretation(Fault(error))
        case Skipped(why, on_purpose):
            # What was not approved decides nothing, not even by `blocking`.
            fault = Fault(why, "skipped", may_block=rule.pending is None)
            return PASSED if on_purpose else Interpretation(fault)
        case _:
            assert_never(report)


# Endpoints, judges and callbacks


def _interpret_reply(text: str, rule: Rule, dialect: Dialect) -> Interpretation:
    """Claude Code: "2xx empty = allow; JSON as above; text -> error"."""
    answer = read_answer(text, rule.event, dialect)
    if isinstance(answer, PlainText) and text.strip("\ufeff \t\r\n"):
        lost = (answer.lost,) if answer.lost else ()
        return Interpretation(Fault("its reply is not a JSON object", warnings=(*lost, *answer.warnings)))
    return Interpretation(decide(answer, rule.event, dialect), answer if isinstance(answer, Answer) else None)


def _interpret_judgement(text: str, rule: Rule, dialect: Dialect) -> Interpretation:
    # Claude Code: "ok:false -> `Agent hook condition was not met: <reason>`".
    heading = "Agent hook condition was not met" if isinstance(rule.hook, AgentHook) else None
    decision = decide(
        parse_judgement(text, hook_text(rule.hook), rule.event, dialect, heading), rule.event, dialect
    )
    ends_turn = dialect.judge_ends_turn and not rule.hook.continue_on_block and rule.event not in STOP_EVENTS
    if ends_turn and isinstance(decision, Block):
        # Claude Code: "on UserPromptSubmit `{"ok": false, "reason": "no"}` ends the turn with" these words.
        return Interpretation(Halt(f"Operation stopped by hook: {decision.reason}"))
    return Interpretation(decision)


def _interpret_return(value: Any, rule: Rule, dialect: Dialect) -> Interpretation:
    if value is None:
        return PASSED
    if isinstance(value, Decision):
        return Interpretation(_for_dialect(value, rule.event, dialect))
    if isinstance(value, dict):
        return _interpret_returned_dict(value, rule, dialect)
    return Interpretation(Fault(f"it returned {type(value).__name__}; expected a decision, a dict or None"))


def _interpret_returned_dict(value: dict[Any, Any], rule: Rule, dialect: Dialect) -> Interpretation:
    """A dict with unknown keys alone is a failure, not consent; one beside known keys is a warning."""
    answer = read_object(value, rule.event, dialect)
    decision = decide(answer, rule.event, dialect)
    unknown = [f"`{key}`" for key in value if key not in _RETURNED_KEYS]
    if unknown and not isinstance(decision, Fault):
        problem = f"it returned the unknown {'keys' if len(unknown) > 1 else 'key'} {', '.join(unknown)}"
        if rule.event not in OBSERVED_EVENTS and isinstance(decision, Allow):
            problem += '; to block, return {"decision": "block", "reason": "…"}'
            if len(unknown) == len(value):
                return Interpretation(Fault(problem))
        decision = replace(decision, warnings=(*decision.warnings, problem))
    return Interpretation(decision, answer if isinstance(answer, Answer) else None)


_RETURNED_KEYS = ANSWER_KEYS | {"async", "asyncTimeout"}


def _for_dialect(decision: Decision, event: str, dialect: Dialect) -> Decision:
    """Apply the dialect's rules for blocks without a reason and for advice to a callback's decision."""
    match decision:
        case Block(reason) if not reason.strip():
            return block_without_reason(event, dialect)
        case Advise() if dialect.advice == "never":
            return Allow(notice=decision.notice)
        case Advise(advice) if not advice.strip():
            return Fault("it returned Advise with a blank advice")
        case _:
            return decision
