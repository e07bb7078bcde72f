"""Report → decision: what the exit code, the output and the answer of a hook mean in a dialect."""

import re
from dataclasses import replace
from typing import Any, NamedTuple, assert_never

from turngate.core.answers.answer_json import (
    ANSWER_KEYS,
    DENIED,
    Answer,
    InvalidAnswer,
    PlainText,
    read_answer,
    read_object,
)
from turngate.core.answers.report_types import (
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
from turngate.core.hooks.kinds import AgentHook, PromptHook, hook_text, label
from turngate.core.settings import Rule
from turngate.core.text import BLANKS, keep_ends, one_line, quote_name
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
        if answer.waits:
            return Fault(answer.not_enforced, "waiting", may_block=False)
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
    # For hosts that know no `notEnforced`, the notice says what the warning about the fault says.
    repeats_fault = answer.not_enforced and answer.not_enforced in (answer.notice or "")
    notice = None if repeats_fault else answer.notice
    if notice is None and not warnings and not answer.quiet:
        return decision
    return replace(decision, notice=notice, warnings=warnings, quiet=answer.quiet)


def interpret_exit(report: Exited, rule: Rule, dialect: Dialect) -> Interpretation:
    """Exit 0: the answer is on stdout. Any other code but 2: the hook failed, unless the dialect reads JSON."""
    if report.code == 0 and report.truncated:
        if report.stdout.lstrip(BLANKS).startswith("{"):
            return Interpretation(Fault("its JSON output is longer than the limit, so it was not parsed"))
        if rule.event in PERMISSION_EVENTS:
            return Interpretation(Fault("its output is longer than the limit, so its end was not read"))
    answer = _read_stdout(report, rule, dialect)
    if report.code == 0 or (isinstance(answer, Answer) and _counts_on_any_exit(answer, dialect)):
        decision = _interpret_success(report, answer, rule, dialect)
    else:
        decision = Fault(_exit_error(report), warnings=_lost_answer(report, answer, dialect))
    return Interpretation(decision, answer if isinstance(answer, Answer) else None)


def _read_stdout(report: Exited, rule: Rule, dialect: Dialect) -> Answer | PlainText | InvalidAnswer:
    answer = read_answer(report.stdout, rule.event, dialect)
    return PlainText() if report.truncated and not isinstance(answer, PlainText) else answer


def _counts_on_any_exit(answer: Answer, dialect: Dialect) -> bool:
    has_reason = bool(answer.reason and answer.reason.strip())
    is_block = answer.decision == "block" and has_reason and answer.continue_turn is not False
    return dialect.json_on_any_exit or (dialect.block_on_any_exit and is_block)


def _interpret_success(
    report: Exited, answer: Answer | PlainText | InvalidAnswer, rule: Rule, dialect: Dialect
) -> Decision:
    if report.held and dialect.held_pipes_void_json and isinstance(answer, Answer):
        # Claude Code: "stdio went quiet before end-of-stream … refusing to honor the suspect capture".
        if answer.continue_turn is False or not (answer.decision or answer.advice):
            return decide(answer, rule.event, dialect)
        return Fault("a child process still held its output when it exited, so its JSON was ignored")
    decision = decide(answer, rule.event, dialect)
    says_nothing = not (isinstance(answer, Answer) and has_effect(answer))
    if isinstance(decision, Allow) and rule.event not in OBSERVED_EVENTS and says_nothing:
        decision = _interpret_stderr(report, decision)
        if report.held and isinstance(decision, Allow) and not dialect.held_pipes_void_json:
            return replace(decision, warnings=(*decision.warnings, LATE_OUTPUT))
    return decision


LATE_OUTPUT = (
    "passed, but a process that it started still held its output half a second after its exit: "
    "wait for that process, or redirect its output"
)


def _interpret_stderr(report: Exited, decision: Decision) -> Decision:
    """Return the decision of a hook that says nothing on stdout.

    A shell goes on after `x=$(cat | jq …)` without jq: the hook passes, with a warning.
    """
    if not report.stderr:
        return decision
    from turngate.core.answers.misplaced import lost_in_text  # noqa: PLC0415  # few hooks that pass write to stderr

    if lost_in_text(report.stderr):
        return Fault(LOST_ON_STDERR)
    if report.code != 0 or not (found := re.search(_MISSING_PROGRAM, report.stderr)):
        return decision
    problem = f'passed, but its stderr says "{found[0]}": the gate may not have checked anything'
    return replace(decision, warnings=(*decision.warnings, problem))


_MISSING_PROGRAM = r"(?m)(?<=: )[^\s:]{1,100}: (?:command )?not found(?=\r?$)"
LOST_ON_STDERR = "its decision is on stderr, where it is not read: print it on stdout, or exit with 2"


def _lost_answer(
    report: Exited, answer: Answer | PlainText | InvalidAnswer, dialect: Dialect
) -> tuple[str, ...]:
    exited = f"but exited with {report.code}, so"
    match answer:
        case InvalidAnswer(error):
            lost = error if dialect.json_on_any_exit else None
        case Answer(decision="block"):
            lost = f"it printed a block {exited} the block is NOT enforced: exit with 0 or 2"
        case Answer(continue_turn=False):
            lost = f"it printed `continue: false` {exited} the turn is NOT ended: exit with 0"
        case Answer(permission="ask" | "defer"):
            lost = f"it printed `{answer.permission}` {exited} it is NOT enforced: exit with 0"
        case _:
            lost = answer.lost
    return (lost,) if lost else ()


def _exit_error(report: Exited) -> str:
    """Return on one line why a command failed."""
    how = f"exit code {report.code}" if report.signal is None else f"killed by signal {report.signal}"
    stderr = keep_ends(one_line(report.stderr), 100, 200, " … ")
    if stderr:
        return f"{how}: {stderr}"
    stdout = keep_ends(one_line(report.stdout[-10_000:]), 0, 300, "… ")
    is_text = stdout and not report.stdout.lstrip(BLANKS).startswith("{")  # a warning is about an answer
    return f"{how}, nothing on stderr; on stdout: {stdout}" if is_text else f"{how}, nothing on stderr"


def exited_with_2(report: Exited, rule: Rule, dialect: Dialect) -> Decision:
    """Exit 2 blocks; the reason is on stderr."""
    if rule.event in STOP_EVENTS and not report.stdout and _is_not_started(report.stderr, dialect):
        return Fault(f"its script appears to be missing, so it does not block: {_exit_error(report)}")
    answer = _read_stdout(report, rule, dialect) if dialect.json_on_any_exit else PlainText()
    if isinstance(answer, Answer):
        trusted = not (report.held and dialect.held_pipes_void_json)
        if answer.continue_turn is False or (answer.decision == "block" and trusted):
            return decide(answer, rule.event, dialect)
        return with_notes(Block(_stderr_reason(report, rule, dialect) or "", answer.advice), answer)
    reason = _stderr_reason(report, rule, dialect)
    if reason is None and dialect.block_on_any_exit:
        printed = _read_stdout(report, rule, dialect)
        if isinstance(printed, Answer) and _counts_on_any_exit(printed, dialect):
            return decide(printed, rule.event, dialect)
    if reason is None and rule.event in PERMISSION_EVENTS:
        reason = DENIED
    if reason is None:
        return Fault("it exited with 2 but gave no reason on stderr, so it does not block", may_block=False)
    invalid = (answer.error,) if isinstance(answer, InvalidAnswer) else ()
    return Block(reason, warnings=(*invalid, *_likely_mistake(report)))


def _stderr_reason(report: Exited, rule: Rule, dialect: Dialect) -> str | None:
    blank = not report.stderr.strip()
    if dialect.names_exit2_command:
        text = dialect.default_stderr if blank else report.stderr
        return f"[{hook_text(rule.hook)}]: {text}"
    return None if blank else report.stderr.rstrip("\r\n")


def _is_not_started(stderr: str, dialect: Dialect) -> bool:
    """Whether a program that ends with 2 says that the script that it should run is not there."""
    if dialect.any_missing_file_passes:
        # Claude Code: "Hook script appears to be missing — … Treating as non-blocking", at stops alone (measured).
        return "no such file" in stderr.lower() or "can't open" in stderr
    if not any(words in stderr for words in ("open ", "error: ", "make")):  # as each of these programs prints
        return False
    from turngate.core.answers.missing_programs import NOT_STARTED  # noqa: PLC0415 # lazy: large patterns, few blocks

    return re.search(NOT_STARTED, stderr[-MAX_SEARCHED_CHARS:].rstrip()) is not None


MAX_SEARCHED_CHARS = 2000


def _likely_mistake(report: Exited) -> tuple[str, ...]:
    """A shell's syntax error, a missing program or script also lead to exit code 2: they block, with a warning."""
    last_line = report.stderr.strip().rpartition("\n")[2]
    if report.stdout or not re.search(_MISTAKE, last_line):
        return ()
    return (f"its exit code 2 looks like a mistake in the hook, not like a block: {last_line}",)


_MISTAKE = (
    r"can't open file|cannot open|cannot create|[Ss]yntax error|[Bb]ad substitution|No module named|No such file or directory$"
    r"|sh: .*(?:not found|Permission denied)$"
)


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
    if isinstance(answer, InvalidAnswer) or answer.lost is not None:
        return True
    if isinstance(answer, PlainText):
        return False
    denies = answer.decision == "block" or answer.permission in ("deny", "ask", "defer")
    return denies or answer.continue_turn is False


def _without_block(block: Block, answer: Answer | None, event: str) -> Interpretation:
    """A block has no effect at this event; the context of a hook that also blocks is kept."""
    error = f"a hook cannot block at {event}: {one_line(block.reason, MAX_BLOCK_CHARS)}"
    if block.advice:
        advise = Advise(block.advice, notice=block.notice, warnings=(error, *block.warnings))
        return Interpretation(advise, answer)
    fault = Fault(error, may_block=False, notice=block.notice, warnings=block.warnings)
    return Interpretation(replace(fault, quiet=block.quiet), answer)


MAX_BLOCK_CHARS = 300


def _interpret(report: Report, rule: Rule, dialect: Dialect) -> Interpretation:
    match report:
        case Returned(value):
            return _interpret_return(value, rule, dialect)
        case Exited(code=2) if rule.event == "PermissionRequest":  # the JSON counts as with other exit codes
            answer = _read_stdout(report, rule, dialect)
            if isinstance(answer, Answer) and _counts_on_any_exit(answer, dialect):
                return Interpretation(decide(answer, rule.event, dialect), answer)
            error = "exit code 2 alone changes nothing at a PermissionRequest: answer with JSON"
            return Interpretation(Fault(error, may_block=False))
        case Exited(code=2):
            return Interpretation(exited_with_2(report, rule, dialect))
        case Exited():
            return interpret_exit(report, rule, dialect)
        case Replied(text):
            return _interpret_reply(text, rule, dialect)
        case JudgeReplied(text):
            return _interpret_judgment(text, rule, dialect)
        case Detached():
            return PASSED
        case TimedOut(seconds):
            return Interpretation(Fault(f"timed out after {seconds:.3g} s", "timeout"))
        case HookFailed(error):
            return Interpretation(Fault(error))
        case Skipped(why, is_change=True) if rule.held and rule.event in STOP_EVENTS:
            what = f"The gate {quote_name(label(rule.hook))} is NOT enforced: {why}."
            person = "ask the user to approve it in another terminal with `turngate hooks approve --all`"
            return Interpretation(Block(f"{what} Undo this change, or {person}."))
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
    if isinstance(answer, PlainText) and text.strip(BLANKS):
        lost = (answer.lost,) if answer.lost else ()
        return Interpretation(Fault("its reply is not a JSON object", warnings=(*lost, *answer.warnings)))
    return Interpretation(decide(answer, rule.event, dialect), answer if isinstance(answer, Answer) else None)


def _interpret_judgment(text: str, rule: Rule, dialect: Dialect) -> Interpretation:
    from turngate.core.answers.judge import parse_judgment  # noqa: PLC0415 # lazy: few hooks ask a model

    # Claude Code (measured): the block of a prompt hook ends the turn at these events, that of an agent hook does not.
    ends_turn = dialect.judge_ends_turn and isinstance(rule.hook, PromptHook) and rule.event in _ENDED_EVENTS
    if ends_turn and not rule.hook.continue_on_block:
        decision = decide(parse_judgment(text, rule.event, dialect), rule.event, dialect)
        return Interpretation(Halt(decision.reason) if isinstance(decision, Block) else decision)
    # Claude Code: "ok:false -> `Agent hook condition was not met: <reason>`".
    is_agent = isinstance(rule.hook, AgentHook)
    heading = "Agent hook condition was not met: " if is_agent else f"[{hook_text(rule.hook)}]: "
    return Interpretation(decide(parse_judgment(text, rule.event, dialect, heading), rule.event, dialect))


_ENDED_EVENTS = ("UserPromptSubmit", "PreToolUse", "PostToolUse")


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
