"""Report → decision: what a hook's exit code and words mean in a dialect."""

from dataclasses import replace
from typing import Any, assert_never

from turngate.core.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.core.dialect import Dialect
from turngate.core.hook_output import (
    Answer,
    InvalidAnswer,
    PlainText,
    read_answer,
    read_object,
)
from turngate.core.hooks import AgentHook, hook_text
from turngate.core.judge import parse_judgement
from turngate.core.reports import (
    Detached,
    Exited,
    JudgeReplied,
    Replied,
    Report,
    Returned,
    RunFailed,
    Skipped,
    TimedOut,
)
from turngate.core.settings import Rule
from turngate.core.text import keep_ends, one_line, replace_surrogates


def interpret(report: Report, rule: Rule, dialect: Dialect) -> Decision:
    match report:
        case Returned(value):
            return _returned(value, rule, dialect)
        case Exited(code=2):
            return _refused(report, rule, dialect)
        case Exited(code=0):
            return _succeeded(report, rule, dialect)
        case Exited():
            return _failed(report, rule, dialect)
        case Replied(text):
            return _endpoint(text, rule, dialect)
        case JudgeReplied(text):
            # Claude Code: "ok:false -> `Agent hook condition was not met: <reason>`".
            heading = "Agent hook condition was not met" if isinstance(rule.hook, AgentHook) else None
            return decide(parse_judgement(text, hook_text(rule.hook), rule.event, dialect, heading), dialect)
        case Detached():
            return Allow()
        case TimedOut(seconds):
            return Fault(f"no answer within {seconds:.3g} s", "timeout")
        case RunFailed(error):
            return Fault(error)
        case Skipped(why, on_purpose):
            return Allow() if on_purpose else Fault(why, "skipped")
        case _:
            assert_never(report)


def _endpoint(text: str, rule: Rule, dialect: Dialect) -> Decision:
    """Claude Code: "2xx empty = allow; JSON as above; text -> error"."""
    answer = read_answer(text, rule.event, dialect)
    if isinstance(answer, PlainText) and text.strip("\ufeff \t\r\n"):
        return Fault("it answered with a text that is no JSON object", warnings=answer.warnings)
    return decide(answer, dialect)


def _succeeded(report: Exited, rule: Rule, dialect: Dialect) -> Decision:
    """Exit 0: the answer is on stdout."""
    if report.cut and report.stdout.lstrip("\ufeff \t\r\n").startswith("{"):
        return Fault("it printed more than we read, so its JSON could not be understood")
    answer = read_answer(report.stdout, rule.event, dialect)
    if report.held and dialect.held_pipes_void_json and isinstance(answer, Answer):
        # Claude Code: "stdio went quiet before end-of-stream … refusing to honor the suspect capture".
        if answer.go_on is False or not (answer.decision or answer.advice):
            return decide(answer, dialect)
        return Fault("a child still held its output when it ended, so its JSON was not honoured")
    return decide(answer, dialect)


def _refused(report: Exited, rule: Rule, dialect: Dialect) -> Decision:
    """Exit 2: the reason is on stderr."""
    if rule.event == "PermissionRequest":
        return Allow(warnings=("exit code 2 alone changes nothing at a PermissionRequest: answer with JSON",))
    answer = read_answer(report.stdout, rule.event, dialect) if dialect.json_on_any_exit else PlainText()
    if isinstance(answer, Answer):
        trusted = not (report.held and dialect.held_pipes_void_json)
        if answer.go_on is False or (answer.decision == "block" and trusted):
            return decide(answer, dialect)
        return _with_remarks(Block(_stderr_reason(report, rule, dialect) or "", answer.advice), answer)
    reason = _stderr_reason(report, rule, dialect)
    if reason is None:
        return Fault("it exited with 2 but gave no reason on stderr, so it does not block", may_block=False)
    void = (answer.error,) if isinstance(answer, InvalidAnswer) else ()
    return Block(reason, warnings=(*void, *_accident(report)))


def _stderr_reason(report: Exited, rule: Rule, dialect: Dialect) -> str | None:
    blank = not report.stderr.strip()
    if dialect.names_exit2_command:
        text = dialect.default_stderr if blank else report.stderr
        return f"[{hook_text(rule.hook)}]: {text}"
    return None if blank else report.stderr.rstrip("\r\n")


def _accident(report: Exited) -> tuple[str, ...]:
    """A shell that stumbles and an interpreter without its script exit with 2 as well; they block, but we say so."""
    last = report.stderr.strip().rpartition("\n")[2]
    if report.stdout or not any(words in last for words in _ACCIDENTS):
        return ()
    return (f"its exit code 2 looks like a mistake in the hook and not like a refusal: {last}",)


_ACCIDENTS = ("can't open file", "cannot open", "cannot create", "Syntax error", "syntax error")


def _failed(report: Exited, rule: Rule, dialect: Dialect) -> Decision:
    """Any other exit code: the hook is broken, not the work."""
    answer = read_answer(report.stdout, rule.event, dialect)
    if dialect.json_on_any_exit and isinstance(answer, Answer):
        return _succeeded(report, rule, dialect)
    warnings = (answer.error,) if dialect.json_on_any_exit and isinstance(answer, InvalidAnswer) else ()
    if isinstance(answer, Answer) and answer.decision == "block":
        warnings = (
            f"it printed a block but exited with {report.code}, so the block is NOT enforced: exit 0 or 2",
        )
    return Fault(failure(report), warnings=warnings)


def failure(report: Exited) -> str:
    """Why a command failed, on one line."""
    how = f"exit code {report.code}" if report.signal is None else f"killed by signal {report.signal}"
    stderr = keep_ends(one_line(report.stderr), 100, 200, " … ")
    return f"{how}: {stderr}" if stderr else f"{how}, nothing on stderr"


def _returned(value: Any, rule: Rule, dialect: Dialect) -> Decision:
    """What foreign code made may be anything, and may say of itself what it likes: its type is asked, not it."""
    if value is None:
        return Allow()
    made = type(value).__mro__
    if dict in made:
        if dict.__len__(value) > MOST_KEYS:
            return Fault(f"it returned a dict with {dict.__len__(value):,} keys, and no answer has so many")
        return decide(read_object(_plain(value), rule.event, dialect), dialect)
    kind = next((kind for kind in (Allow, Block, Advise, Halt, Fault) if kind in made), None)
    if kind is None:
        return Fault(f"it returned {type(value).__name__}; expected a decision, a dict or None")
    texts = {name: getattr(value, name) for name in _TEXTS if name in kind.__dataclass_fields__}
    odd = [name for name, text in texts.items() if text is not None and str not in type(text).__mro__]
    if odd:
        return Fault(f"it returned {kind.__name__} with a {odd[0]} that is no text")
    remarks = () if value.warnings is None else value.warnings
    if type(remarks) not in (tuple, list) or any(str not in type(remark).__mro__ for remark in remarks):
        return Fault(f"it returned {kind.__name__} with warnings that are no texts")
    clean: dict[str, Any] = {name: None if text is None else _clean(text) for name, text in texts.items()}
    return _reasoned(
        kind(**clean, warnings=tuple(map(_clean, remarks)), quiet=value.quiet is True), value, dialect
    )


MOST_KEYS = 1000
_TEXTS = ("reason", "advice", "error", "notice")


def _clean(text: str) -> str:
    return replace_surrogates(str.__str__(text))  # also of a subclass with ideas of its own


def _plain(value: Any, depth: int = 4) -> Any:
    """A dict of plain dicts and strings, as deep as answers go."""
    made = type(value).__mro__
    if str in made:
        return str.__str__(value)
    if dict in made and depth:
        return {_plain(name): _plain(inner, depth - 1) for name, inner in dict.items(value)}
    return value


def _reasoned(decision: Decision, returned: Any, dialect: Dialect) -> Decision:
    match decision:
        case Block(reason) if not (reason or "").strip():
            return Block(dialect.default_reason) if dialect.default_reason else UNREASONED
        case Advise() if dialect.advice == "never":
            return Allow(notice=decision.notice)
        case Advise(advice) if not (advice or "").strip():
            return Fault("it advised without a word")
        case Fault():
            kind: Any = returned.kind
            known = type(kind) is str and kind in ("failed", "timeout", "skipped")
            may_block = returned.may_block is not False
            return replace(decision, kind=kind if known else "failed", may_block=may_block)
        case _:
            return decision


def decide(answer: Answer | PlainText | InvalidAnswer, dialect: Dialect) -> Decision:
    """What an answer in the JSON contract means."""
    match answer:
        case PlainText(warnings):
            return Allow(warnings=warnings)
        case InvalidAnswer(error):
            return Fault(error)
        case Answer():
            return _with_remarks(_meant(answer, dialect), answer)
        case _:
            assert_never(answer)


def _meant(answer: Answer, dialect: Dialect) -> Decision:
    if answer.go_on is False:
        both = answer.decision == "block" and not dialect.strict_json
        return Halt(answer.stop_reason, warnings=(_HALT_AND_BLOCK,) if both else ())
    if answer.decision == "block":
        said = answer.reason if answer.reason and answer.reason.strip() else dialect.default_reason
        advice = answer.advice if dialect.advice != "never" else None
        return Block(said, advice) if said else UNREASONED
    if answer.advice and answer.advice.strip() and dialect.advice != "never":
        return Advise(answer.advice)
    return Allow(answer.reason)


UNREASONED = Fault("it blocked without a reason, so it does not block", may_block=False)
_HALT_AND_BLOCK = "it sent `continue: false` with a block: the turn ends and the block's reason is not used"


def _with_remarks(decision: Decision, answer: Answer) -> Decision:
    warnings = answer.warnings + decision.warnings
    if answer.notice is None and not warnings and not answer.quiet:
        return decision
    return replace(decision, notice=answer.notice, warnings=warnings, quiet=answer.quiet)
