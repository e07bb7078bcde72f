"""Exit code → decision: what the end of a command and its output mean in a dialect."""

import re
from dataclasses import replace
from typing import assert_never

from turngate.core.answers.contract import DENIED, Answer, InvalidAnswer, PlainText, read_answer
from turngate.core.answers.interpret_answer import Interpretation, decide, has_effect, with_notes
from turngate.core.answers.reports import Exited
from turngate.core.constants import OBSERVED_EVENTS, PERMISSION_EVENTS, STOP_EVENTS
from turngate.core.dialect import Dialect
from turngate.core.hooks.kinds import hook_text
from turngate.core.settings import Rule
from turngate.core.text import BLANKS, keep_ends, one_line
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault


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
    if isinstance(decision, Allow) and rule.event not in OBSERVED_EVENTS and _says_nothing(answer):
        decision = _interpret_stderr(report, decision)
        if report.held and isinstance(decision, Allow) and not dialect.held_pipes_void_json:
            return replace(decision, warnings=(*decision.warnings, LATE_OUTPUT))
    return decision


LATE_OUTPUT = (
    "passed, but a process that it started still held its output half a second after its exit: "
    "wait for that process, or redirect its output"
)


def _interpret_stderr(report: Exited, decision: Decision) -> Decision:
    """Return the decision of a hook that says nothing on stdout."""
    if not report.stderr:
        return decision
    from turngate.core.answers.misplaced_in_text import lost_in_text  # noqa: PLC0415  # few hooks that pass write to stderr

    return Fault(LOST_ON_STDERR) if lost_in_text(report.stderr) else _with_missing_program(report, decision)


def _with_missing_program(report: Exited, decision: Decision) -> Decision:
    """A shell goes on after `x=$(cat | jq …)` without jq: the hook passes, with a warning."""
    if report.code != 0 or not (found := _MISSING_PROGRAM.search(report.stderr)):
        return decision
    problem = f'passed, but its stderr says "{found[0]}": the gate may not have checked anything'
    return replace(decision, warnings=(*decision.warnings, problem))


_MISSING_PROGRAM = re.compile(r"(?<=: )[^\s:]{1,100}: (?:command )?not found(?=\r?$)", re.MULTILINE)


LOST_ON_STDERR = "its decision is on stderr, where it is not read: print it on stdout, or exit with 2"


def _says_nothing(answer: Answer | PlainText | InvalidAnswer) -> bool:
    return isinstance(answer, PlainText) or (isinstance(answer, Answer) and not has_effect(answer))


def _lost_answer(
    report: Exited, answer: Answer | PlainText | InvalidAnswer, dialect: Dialect
) -> tuple[str, ...]:
    """Return the warning about an answer of a hook that failed."""
    match answer:
        case InvalidAnswer(error):
            return (error,) if dialect.json_on_any_exit else ()
        case PlainText(lost):
            return (lost,) if lost else ()
        case Answer(decision="block"):
            return (
                f"it printed a block but exited with {report.code}, so the block is NOT enforced: exit with 0 or 2",
            )
        case Answer(continue_turn=False):
            return (
                f"it printed `continue: false` but exited with {report.code}, so the turn is NOT ended: exit with 0",
            )
        case Answer(permission="ask" | "defer"):
            return (
                f"it printed `{answer.permission}` but exited with {report.code}, so it is NOT enforced: exit with 0",
            )
        case Answer(lost=lost):
            return (lost,) if lost else ()
        case _:
            assert_never(answer)


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
    if dialect.missing_script_passes and _is_missing_script(report, rule):
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


def exited_with_2_at_request(report: Exited, rule: Rule, dialect: Dialect) -> Interpretation:
    """Exit 2 alone changes nothing here, but the JSON counts as with other exit codes."""
    answer = _read_stdout(report, rule, dialect)
    if isinstance(answer, Answer) and _counts_on_any_exit(answer, dialect):
        return Interpretation(decide(answer, rule.event, dialect), answer)
    return Interpretation(
        Fault("exit code 2 alone changes nothing at a PermissionRequest: answer with JSON", may_block=False)
    )


def _stderr_reason(report: Exited, rule: Rule, dialect: Dialect) -> str | None:
    blank = not report.stderr.strip()
    if dialect.names_exit2_command:
        text = dialect.default_stderr if blank else report.stderr
        return f"[{hook_text(rule.hook)}]: {text}"
    return None if blank else report.stderr.rstrip("\r\n")


def _is_missing_script(report: Exited, rule: Rule) -> bool:
    # Claude Code: "Hook script appears to be missing — … Treating as non-blocking", at stops alone (measured).
    names_file = "no such file" in report.stderr.lower() or "can't open" in report.stderr
    return rule.event in STOP_EVENTS and not report.stdout and names_file


def _likely_mistake(report: Exited) -> tuple[str, ...]:
    """A shell's syntax error, a missing program or script also lead to exit code 2: they block, with a warning."""
    last_line = report.stderr.strip().rpartition("\n")[2]
    if report.stdout or not _MISTAKE.search(last_line):
        return ()
    return (f"its exit code 2 looks like a mistake in the hook, not like a block: {last_line}",)


_MISTAKE = re.compile(
    r"can't open file|cannot open|cannot create|[Ss]yntax error|[Bb]ad substitution|No module named|No such file or directory$"
    r"|sh: .*(?:not found|Permission denied)$"
)
