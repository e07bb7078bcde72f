"""Exit codes and words, in one table per dialect; no process is needed for any of it."""

import json
from typing import Any

import pytest

from tests.support.builders import rule
from turngate.core.decisions import Advise, Allow, Block, Decision, Fault, Halt
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.hooks import CommandHook
from turngate.core.interpret import interpret
from turngate.core.reports import Detached, Exited, HookFailed, Replied, Report, Returned, Skipped, TimedOut


def said(code: int = 0, stderr: str = "", /, **answer: Any) -> Exited:
    return Exited(code, json.dumps(answer), stderr)


UNREASONED = Fault("it blocked without a reason, so it does not block", may_block=False)
BURIED = "its last line is JSON that blocks, but the text before it makes the output plain text"
BOTH = "it sent `continue: false` with a block: the turn ends and the block's reason is not used"

NOT_JSON = (
    "its output looks like a JSON object but is not valid JSON (line 1, column 23: "
    "Expecting property name enclosed in double quotes)"
)

IN_TURNGATE: list[tuple[str, Report, Decision]] = [
    ("S0-37", Exited(0), Allow()),
    ("S0-37", Exited(0, "all is well\n"), Allow()),
    ("S0-38", Exited(0, "hello {"), Allow()),
    ("S0-36", said(decision="block", reason="run the tests"), Block("run the tests")),
    ("S0-42", said(decision="block", reason="more"), Block("more")),
    ("C-07", said(decision="deny", reason="more"), Block("more")),
    ("C-07", said(decision="approve"), Allow()),
    ("S3-23", said(decision="approve", reason="fine"), Allow("fine")),
    ("C-07", said(decision="allow"), Allow()),
    ("C-07", said(decision=None), Allow()),
    ("S0-43", said(), Allow()),
    ("S0-43", said(reason="x"), Allow("x")),
    (
        "C-07",
        said(decision="BLOCK", reason="x"),
        Allow(
            "x",
            warnings=('`decision` is "BLOCK", expected "block" or "approve": ignored',),
        ),
    ),
    ("S0-44", said(decision="block"), UNREASONED),
    ("C-11", said(decision="block", reason="  \n"), UNREASONED),
    (
        "C-11",
        said(decision="block", reason=7),
        Fault(UNREASONED.error, may_block=False, warnings=("`reason` is 7, expected a string: ignored",)),
    ),
    ("S0-39", Exited(2, "", "run make test\n"), Block("run make test")),
    ("S0-50", Exited(2, "", "one\n\n  two\nthree\n"), Block("one\n\n  two\nthree")),
    ("S0-50", Exited(2, "", "  indented\nlast\n"), Block("  indented\nlast")),
    (
        "C-11",
        Exited(2, "a word on stdout"),
        Fault("it exited with 2 but gave no reason on stderr, so it does not block", may_block=False),
    ),
    ("S0-41", Exited(2, '{"continue":false}', "x"), Block("x")),
    ("S0-40", Exited(1, "", "no npm\nhere\n"), Fault("exit code 1: no npm here")),
    ("S0-40", Exited(3), Fault("exit code 3, nothing on stderr")),
    ("S0-40", Exited(126, "", "denied"), Fault("exit code 126: denied")),
    ("S0-40", Exited(127, "", "not found"), Fault("exit code 127: not found")),
    ("S0-40", Exited(130), Fault("exit code 130, nothing on stderr")),
    ("S0-40", Exited(137, signal=9), Fault("killed by signal 9, nothing on stderr")),
    (
        "S3-22",
        said(1, decision="block", reason="x"),
        Fault(
            "exit code 1, nothing on stderr",
            warnings=(
                "it printed a block but exited with 1, so the block is NOT enforced: exit with 0 or 2",
            ),
        ),
    ),
    ("S0-46", said(**{"continue": False, "stopReason": "enough"}), Halt("enough")),
    (
        "C-06",
        said(**{"continue": False, "decision": "block", "reason": "x"}),
        Halt(warnings=(BOTH,)),
    ),
    ("S3-25", said(**{"continue": True, "decision": "block", "reason": "x"}), Block("x")),
    ("S3-25", said(**{"continue": True}), Allow()),
    (
        "S0-07",
        said(**{"continue": "false"}),
        Allow(warnings=('`continue` is "false", expected true or false: ignored',)),
    ),
    ("S3-26", said(systemMessage="a word"), Allow(notice="a word")),
    ("S0-48", said(suppressOutput=True), Allow(quiet=True)),
    (
        "",
        said(hookSpecificOutput={"hookEventName": "Stop", "additionalContext": "think of x"}),
        Advise("think of x"),
    ),
    (
        "S0-07",
        said(hookSpecificOutput={"hookEventName": "PreToolUse", "additionalContext": "y"}),
        Allow(warnings=('`hookEventName` is "PreToolUse", expected "Stop": ignored',)),
    ),
    (
        "S0-07",
        said(additionalContext="y"),
        Allow(warnings=("`additionalContext` belongs into `hookSpecificOutput`: ignored at the top level",)),
    ),
    ("S0-38", Exited(0, 'ran 3 tests\n{"decision":"block","reason":"x"}\n'), Allow(warnings=(BURIED,))),
    (
        "S0-38",
        Exited(0, '{"decision": "block", reason}'),
        Allow(warnings=(NOT_JSON + ", so it was taken as plain text",)),
    ),
    ("S0-36", Exited(0, '\ufeff\n  {"decision":"block","reason":"bom"}'), Block("bom")),
    ("S0-37", Exited(0, '[{"decision":"block"}]'), Allow()),
    (
        "X-12",
        Exited(0, '{"reason":"' + "x" * 99, truncated=True),
        Fault("its JSON output is longer than the limit, so it was not parsed"),
    ),
    ("X-12", Exited(0, "x" * 99, truncated=True), Allow()),
    ("X-11", Exited(0, '{"decision":"block","reason":"held"}', held=True), Block("held")),
    ("S0-40", TimedOut(0.5), Fault("timed out after 0.5 s", "timeout")),
    ("X-09", HookFailed("no such file"), Fault("no such file")),
    ("X-09", Skipped("switched off"), Fault("switched off", "skipped")),
    ("X-09", Skipped("not its child", on_purpose=True), Allow()),
    ("C-03", Detached(), Allow()),
    ("C-07", Replied('{"decision":"block","reason":"says the judge"}'), Block("says the judge")),
]


@pytest.mark.parametrize(
    ("report", "decision"),
    [
        pytest.param(report, decision, marks=[pytest.mark.req(req)] if req else [])
        for req, report, decision in IN_TURNGATE
    ],
)
def test_a_report_means_in_turngate(report: Report, decision: Decision) -> None:
    assert interpret(report, rule(), TURNGATE).decision == decision


@pytest.mark.parametrize(
    ("report", "decision"),
    [(report, decision) for _, report, decision in IN_TURNGATE if not isinstance(decision, Advise)],
)
def test_mux_reads_answers_as_turngate_does_but_for_advice(report: Report, decision: Decision) -> None:
    assert interpret(report, rule(), MUX).decision == decision


def test_mux_ignores_advice_beside_a_block_and_from_a_callback_too() -> None:
    both = said(
        decision="block", reason="no", hookSpecificOutput={"hookEventName": "Stop", "additionalContext": "x"}
    )
    assert interpret(both, rule(), MUX).decision == Block("no")
    assert interpret(Returned(Advise("x")), rule(), MUX).decision == Allow()


def test_exit_2_alone_changes_nothing_at_a_permission_request() -> None:
    decision = interpret(Exited(2, "", "no"), rule(event="PermissionRequest"), TURNGATE).decision
    assert decision == Allow(
        warnings=("exit code 2 alone changes nothing at a PermissionRequest: answer with JSON",)
    )


BLOCKS_WITHOUT_A_REASON = [
    Block(""),
    Block(None),  # type: ignore[arg-type]
    Block(None, notice="for the user"),  # type: ignore[arg-type]
    {"decision": "block"},
    {"decision": "block", "reason": ""},
]


@pytest.mark.parametrize("value", BLOCKS_WITHOUT_A_REASON, ids=repr)
def test_a_callback_that_blocks_without_a_word_blocks_in_claude(value: Any) -> None:
    assert interpret(Returned(value), rule(), CLAUDE).decision == Block("Blocked by hook")


@pytest.mark.req("C-11")
@pytest.mark.parametrize("dialect", [TURNGATE, MUX], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("value", [*BLOCKS_WITHOUT_A_REASON, {"decision": "block", "reason": None}], ids=repr)
def test_elsewhere_a_callback_that_blocks_without_a_word_does_not_block(value: Any, dialect: Dialect) -> None:
    assert interpret(Returned(value), rule(), dialect).decision == UNREASONED


def test_a_reason_of_none_is_an_empty_reason() -> None:
    assert Block(None, "look", notice="n") == Block("", "look", notice="n")  # type: ignore[arg-type]


def test_mux_ignores_advice() -> None:
    advice = said(hookSpecificOutput={"hookEventName": "Stop", "additionalContext": "think of x"})
    assert interpret(advice, rule(), MUX).decision == Allow()


VOID = "its JSON is ignored: "

IN_CLAUDE: list[tuple[Report, Decision]] = [
    (Exited(2, "", "again\n"), Block("[check]: again\n")),
    (Exited(2), Block("[check]: No stderr output")),
    (Exited(2, "only stdout"), Block("[check]: No stderr output")),
    (said(2, "err", decision="block", reason="json"), Block("json")),
    (said(2, "err", decision="approve"), Block("[check]: err")),
    (
        said(2, "err", decision="maybe"),
        Block("[check]: err", warnings=(VOID + '`decision` must be "approve" or "block"',)),
    ),
    (
        said(1, "err", decision=5),
        Fault("exit code 1: err", warnings=(VOID + '`decision` must be "approve" or "block"',)),
    ),
    (said(2, "err", **{"continue": False}), Halt()),
    (
        said(2, "err", hookSpecificOutput={"hookEventName": "Stop", "additionalContext": "ctx"}),
        Block("[check]: err", "ctx"),
    ),
    (said(1, decision="block", reason="json"), Block("json")),
    (said(1, **{"continue": False, "stopReason": "enough"}), Halt("enough")),
    (said(decision="block"), Block("Blocked by hook")),
    (said(decision="block", reason=""), Block("Blocked by hook")),
    (said(decision="block", reason=None), Fault(VOID + "`reason` must be a string")),
    (said(decision="allow"), Fault(VOID + '`decision` must be "approve" or "block"')),
    (said(decision=None), Fault(VOID + '`decision` must be "approve" or "block"')),
    (said(**{"continue": "false"}), Fault(VOID + "`continue` must be true or false")),
    (
        said(hookSpecificOutput={"additionalContext": "x"}),
        Fault(VOID + "`hookSpecificOutput` needs a `hookEventName`"),
    ),
    (
        said(hookSpecificOutput={"hookEventName": "PreToolUse"}),
        Fault("its `hookEventName` is 'PreToolUse', expected 'Stop'"),
    ),
    (Exited(0, '{"decision": "block", reason}'), Fault(NOT_JSON)),
    (Exited(0, '{"decision":"block","reason":"x'), Allow()),
    (
        Exited(0, '{"decision":"block","reason":"x"}', held=True),
        Fault("a child process still held its output when it exited, so its JSON was ignored"),
    ),
    (Exited(0, '{"continue":false}', held=True), Halt()),
    (Exited(2, '{"decision":"block","reason":"x"}', "err", held=True), Block("[check]: err")),
    (Exited(0, "", held=True), Allow()),
    (said(systemMessage="hello"), Allow(notice="hello")),
    (said(suppressOutput=True), Allow()),
    (Exited(1, "", "boom"), Fault("exit code 1: boom")),
]


@pytest.mark.req("S0-06", "S0-07")
@pytest.mark.parametrize(("report", "decision"), IN_CLAUDE)
def test_a_report_means_in_claude(report: Report, decision: Decision) -> None:
    assert interpret(report, rule(), CLAUDE).decision == decision


RETURNED: list[tuple[Any, Decision]] = [
    (None, Allow()),
    (Block("more"), Block("more")),
    (Block(" "), UNREASONED),
    (Advise("x"), Advise("x")),
    ({"decision": "block", "reason": "more"}, Block("more")),
    ({}, Allow()),
    (True, Fault("it returned bool; expected a decision, a dict or None")),
    ("block", Fault("it returned str; expected a decision, a dict or None")),
]


@pytest.mark.req("C-07")
@pytest.mark.parametrize(("value", "decision"), RETURNED)
def test_a_callback_returns_a_decision_a_dict_or_none(value: Any, decision: Decision) -> None:
    assert interpret(Returned(value), rule(), TURNGATE).decision == decision


def test_an_interpreter_that_did_not_find_its_script_blocks_but_the_accident_is_named() -> None:
    stderr = "python3: can't open file '/p/hook.py': [Errno 2] No such file or directory\n"
    assert interpret(Exited(2, "", stderr), rule(), TURNGATE).decision == Block(
        stderr.strip(),
        warnings=(f"its exit code 2 looks like a mistake in the hook, not like a block: {stderr.strip()}",),
    )


def test_half_a_surrogate_in_a_reason_can_still_be_written_anywhere() -> None:
    report = Exited(0, '{"decision":"block","reason":"half \\ud83c"}')
    assert interpret(report, rule(), TURNGATE).decision == Block("half ?")


def test_the_program_form_is_named_with_its_arguments() -> None:
    hook = CommandHook("/bin/check", args=("--all", "x"))
    assert interpret(Exited(2, "", "err"), rule(hook), CLAUDE).decision == Block("[/bin/check --all x]: err")
