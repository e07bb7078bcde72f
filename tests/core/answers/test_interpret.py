"""Exit codes and words, in one table per dialect; no process is needed for any of it."""

import json
from typing import Any

import pytest

from tests.support.builders import rule
from turngate.core.answers.interpret import interpret
from turngate.core.answers.report_types import (
    Detached,
    Exited,
    HookFailed,
    Replied,
    Report,
    Returned,
    Skipped,
    TimedOut,
)
from turngate.core.dialect import CLAUDE, HOST, MUX, TURNGATE, Dialect
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.decisions import Advise, Allow, Block, Decision, Fault, Halt


def said(code: int = 0, stderr: str = "", /, **answer: Any) -> Exited:
    return Exited(code, json.dumps(answer), stderr)


UNREASONED = Fault("it blocked without a reason, so it does not block", may_block=False)
ONLY_JSON = "print only the JSON on stdout, and everything else on stderr"
BURIED = f"its decision was not read, because there is text before its JSON: {ONLY_JSON}"
OK_FALSE = '`ok` is the answer of a prompt hook: print {"decision": "block", "reason": "…"} instead'
BOTH = "it sent `continue: false` with a block: the turn ends and the block's reason is not used"

NOT_JSON_WHERE = "line 1, column 23: Expecting property name enclosed in double quotes"
NOT_JSON = f"its output looks like a JSON object but is not valid JSON ({NOT_JSON_WHERE})"

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
    ("C-07", said(decision="BLOCK", reason="x"), Block("x")),
    ("C-07", said(decision=" Approve "), Allow()),
    (
        "C-07",
        said(decision="blok", reason="x"),
        Fault('`decision` is "blok", expected "block" or "approve"; did you mean "block"?'),
    ),
    ("C-07", said(decision="maybe"), Fault('`decision` is "maybe", expected "block" or "approve"')),
    ("C-07", said(decision=True), Fault('`decision` is true, expected "block" or "approve"')),
    (
        "C-07",
        said(decision="blok", systemMessage="seen"),
        Fault('`decision` is "blok", expected "block" or "approve"; did you mean "block"?', notice="seen"),
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
    (
        "C-11",
        Exited(2, "", "  \n"),
        Fault("it exited with 2 but gave no reason on stderr, so it does not block", may_block=False),
    ),
    ("S0-41", Exited(2, '{"continue":false}', "x"), Block("x")),
    ("S0-40", Exited(1, "", "no npm\nhere\n"), Fault("exit code 1: no npm here")),
    ("S0-40", Exited(3), Fault("exit code 3, nothing on stderr")),
    ("S0-40", Exited(126, "", "denied"), Fault("exit code 126: denied")),
    ("S0-40", Exited(127, "", "not found"), Fault("exit code 127: not found")),
    ("S0-40", Exited(130), Fault("exit code 130, nothing on stderr")),
    ("S0-40", Exited(137, signal=9), Fault("killed by signal 9, nothing on stderr")),
    ("S3-22", said(1, "err", decision="approve"), Fault("exit code 1: err")),
    ("S3-22", said(1, "err", decision="approve", reason="fine"), Fault("exit code 1: err")),
    (
        "S3-22",
        said(1, **{"continue": False}),
        Fault(
            "exit code 1, nothing on stderr",
            warnings=(
                "it printed `continue: false` but exited with 1, so the turn is NOT ended: exit with 0",
            ),
        ),
    ),
    (
        "S3-22",
        Exited(1, 'ran\n{"decision":"block","reason":"x"}', "err"),
        Fault("exit code 1: err", warnings=(BURIED,)),
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
        Fault('`continue` is "false", expected true or false'),
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
        Allow(warnings=("`additionalContext` belongs in `hookSpecificOutput`: ignored at the top level",)),
    ),
    ("S0-38", Exited(0, 'ran 3 tests\n{"decision":"block","reason":"x"}\n'), Fault(BURIED)),
    (
        "S0-38",
        Exited(0, '{"decision": "block", reason}'),
        Fault(f"its decision was not read, because its output is not valid JSON ({NOT_JSON_WHERE})"),
    ),
    ("S0-36", Exited(0, '\ufeff\n  {"decision":"block","reason":"bom"}'), Block("bom")),
    (
        "S0-37",
        Exited(0, '[{"decision":"block"}]'),
        Fault("its decision was not read, because it is inside a list: print the object alone"),
    ),
    (
        "",
        said(decision="block", hookSpecificOutput={"reason": "x"}),
        Fault(
            UNREASONED.error,
            may_block=False,
            warnings=("`reason` is inside `hookSpecificOutput`: move it to the top level",),
        ),
    ),
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
    assert decision == Fault(
        "exit code 2 alone changes nothing at a PermissionRequest: answer with JSON",
        may_block=False,
        asks_user=True,
    )


@pytest.mark.req("S3-22")
@pytest.mark.parametrize("code", [1, 3, 127])
def test_a_block_with_a_reason_counts_on_any_exit_code_in_turngate_but_not_in_mux(code: int) -> None:
    block = Exited(code, '{"decision":"block","reason":"x"}')
    assert [interpret(block, rule(), dialect).decision for dialect in (TURNGATE, CLAUDE, MUX)] == [
        Block("x"),
        Block("x"),
        Fault(
            f"exit code {code}, nothing on stderr",
            warnings=(
                f"it printed a block but exited with {code}, so the block is NOT enforced: exit with 0 or 2",
            ),
        ),
    ]


def test_a_block_without_a_reason_is_still_a_failure_on_exit_code_1() -> None:
    assert isinstance(interpret(Exited(1, '{"decision":"block"}'), rule(), TURNGATE).decision, Fault)


@pytest.mark.req("S3-22")
def test_with_exit_code_2_and_an_empty_stderr_the_reason_of_the_json_counts_in_turngate() -> None:
    block = Exited(2, '{"decision":"block","reason":"x"}')
    silent = Fault("it exited with 2 but gave no reason on stderr, so it does not block", may_block=False)
    assert [interpret(block, rule(), dialect).decision for dialect in (TURNGATE, MUX)] == [Block("x"), silent]


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
        Block("[check]: err", warnings=(VOID + '`decision` is "maybe", expected "block" or "approve"',)),
    ),
    (
        said(1, "err", decision=5),
        Fault("exit code 1: err", warnings=(VOID + '`decision` is 5, expected "block" or "approve"',)),
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
    (said(decision="allow"), Fault(VOID + '`decision` is "allow", expected "block" or "approve"')),
    (said(decision=None), Fault(VOID + '`decision` is null, expected "block" or "approve"')),
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
    (
        said(decision="block", reason="x", terminalSequence=5),
        Fault(VOID + "`terminalSequence` must be a string"),
    ),
    (said(decision="block", reason="x", terminalSequence="\x07"), Block("x")),
    (
        Exited(0, '{"decision":"block","reason":"x'),
        Fault(
            "its decision was not read, because its JSON is truncated "
            "(line 1, column 30: Unterminated string starting at)"
        ),
    ),
    (Exited(0, 'ran 3 tests\n{"decision":"block","reason":"x"}\n'), Fault(BURIED)),
    (
        said(ok=False),
        Fault(OK_FALSE),
    ),
    (
        said(hookSpecificOutput={"hookEventName": "Stop", "decision": "block"}),
        Fault("`decision` is inside `hookSpecificOutput`: move it to the top level"),
    ),
    (
        said(ok=False, hookSpecificOutput={"hookEventName": "Stop", "additionalContext": "ctx"}),
        Advise(
            "ctx",
            warnings=(f"{OK_FALSE}; this part of its answer is NOT enforced",),
        ),
    ),
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


UNKNOWN_FLAG = '`{}` is unknown: a block is {{"decision": "block", "reason": "…"}}'

RETURNED: list[tuple[Any, Decision]] = [
    (None, Allow()),
    (Block("more"), Block("more")),
    (Block(" "), UNREASONED),
    (Advise("x"), Advise("x")),
    ({"decision": "block", "reason": "more"}, Block("more")),
    ({}, Allow()),
    ({"async": True}, Allow()),
    ({"allow": False, "prompt": "p"}, Fault(UNKNOWN_FLAG.format("allow"))),
    ({"block": True}, Fault(UNKNOWN_FLAG.format("block"))),
    ({"block": True, "reason": "r"}, Fault(UNKNOWN_FLAG.format("block"))),
    (
        {"stop": True, "prompt": "p"},
        Fault(
            'it returned the unknown keys `stop`, `prompt`; to block, return {"decision": "block", "reason": "…"}'
        ),
    ),
    (
        {"stop": True, "reason": "r"},
        Allow(
            "r",
            warnings=(
                'it returned the unknown key `stop`; to block, return {"decision": "block", "reason": "…"}',
            ),
        ),
    ),
    (True, Fault("it returned bool; expected a decision, a dict or None")),
    ("block", Fault("it returned str; expected a decision, a dict or None")),
]


@pytest.mark.req("C-07")
@pytest.mark.parametrize(("value", "decision"), RETURNED)
def test_a_callback_returns_a_decision_a_dict_or_none(value: Any, decision: Decision) -> None:
    assert interpret(Returned(value), rule(), TURNGATE).decision == decision


def test_where_a_block_has_no_effect_an_unknown_key_is_only_a_warning() -> None:
    decision = interpret(Returned({"seen": 1}), rule(event="SessionEnd"), TURNGATE).decision
    assert decision == Allow(warnings=("it returned the unknown key `seen`",))


@pytest.mark.parametrize(
    "stderr",
    [
        "/bin/sh: 1: ruff: not found\n",
        "bash: line 1: ruff: command not found\n",
        "/usr/bin/python3: No module named pytest\n",
        "cat: PLAN.md: No such file or directory\n",
        "sh: 1: ./gate.sh: Permission denied\n",
    ],
)
def test_a_program_that_a_hook_does_not_find_blocks_but_the_accident_is_named(stderr: str) -> None:
    assert interpret(Exited(2, "", stderr), rule(), TURNGATE).decision == Block(
        stderr.strip(),
        warnings=(f"its exit code 2 looks like a mistake in the hook, not like a block: {stderr.strip()}",),
    )


@pytest.mark.parametrize("reason", ["the changelog entry was not found", "No such file: write PLAN.md"])
def test_a_reason_that_only_sounds_like_an_accident_is_a_reason(reason: str) -> None:
    assert interpret(Exited(2, "", reason), rule(), TURNGATE).decision == Block(reason)


def test_half_a_surrogate_in_a_reason_can_still_be_written_anywhere() -> None:
    report = Exited(0, '{"decision":"block","reason":"half \\ud83c"}')
    assert interpret(report, rule(), TURNGATE).decision == Block("half ?")


def test_the_program_form_is_named_with_its_arguments() -> None:
    hook = CommandHook("/bin/check", args=("--all", "x"))
    assert interpret(Exited(2, "", "err"), rule(hook), CLAUDE).decision == Block("[/bin/check --all x]: err")


MISSING = "bash: /p/.claude/hooks/gate.sh: No such file or directory\n"
NO_SCRIPT = "python3: can't open file '/p/gate.py': [Errno 2] No such file or directory\n"


@pytest.mark.parametrize(
    ("dialect", "event", "report", "blocks"),
    [
        (CLAUDE, "Stop", Exited(2, "", MISSING), False),
        (CLAUDE, "SubagentStop", Exited(2, "", "NO SUCH FILE: gate.sh"), False),
        (CLAUDE, "Stop", Exited(2, "", "python3: can't open file '/p/gate.py'"), False),
        (CLAUDE, "Stop", Exited(2, "", "sh: 0: cannot open gate.sh"), True),
        (CLAUDE, "Stop", Exited(2, "running\n", MISSING), True),
        (CLAUDE, "PreToolUse", Exited(2, "", MISSING), True),
        (TURNGATE, "Stop", Exited(2, "", MISSING), True),
        (MUX, "Stop", Exited(2, "", MISSING), True),
        (TURNGATE, "Stop", Exited(2, "", NO_SCRIPT), False),
        (HOST, "Stop", Exited(2, "", NO_SCRIPT), False),
        (MUX, "SubagentStop", Exited(2, "", NO_SCRIPT), False),
        (TURNGATE, "Stop", Exited(2, "", f"installing\n{NO_SCRIPT}"), False),
        (TURNGATE, "Stop", Exited(2, "", f"{NO_SCRIPT}The check failed.\n"), True),
        (TURNGATE, "Stop", Exited(2, "running\n", NO_SCRIPT), True),
        (TURNGATE, "PreToolUse", Exited(2, "", NO_SCRIPT), True),
    ],
)
def test_exit_2_of_a_program_without_its_script_is_not_a_block_at_a_stop(
    dialect: Dialect, event: str, report: Exited, blocks: bool
) -> None:
    assert isinstance(interpret(report, rule(event=event), dialect).decision, Block) is blocks


# As printed by Python 3.11, uv 0.4 and 0.13, dash 0.5.12, perl 5.36, GNU make 4.3; the others as their sources say.
NOT_STARTED = [
    "/usr/bin/python3: can't open file '/p/a gate.py': [Errno 2] No such file or directory",
    "error: Failed to spawn: gate.py\n  cause: No such file or directory (os error 2)",
    "error: Failed to spawn: `gate.py`\n  Caused by: No such file or directory (os error 2)",
    "Downloading pygments (1.2MiB)\nerror: Failed to spawn: ./gate\n  cause: Permission denied (os error 13)",
    "error: No interpreter found for Python >=3.99 in managed installations or search path",
    "sh: 0: cannot open gate.sh: No such file",
    "sh: can't open 'gate.sh': No such file or directory",
    'Can\'t open perl script "gate.pl": No such file or directory',
    "Fatal error: cannot open file 'gate.R': No such file or directory",
    "make: *** No rule to make target 'gate'.  Stop.",
    "make: *** No targets specified and no makefile found.  Stop.",
    "make: *** web: No such file or directory.  Stop.",
]


@pytest.mark.req("S0-104")
@pytest.mark.parametrize("stderr", NOT_STARTED)
def test_a_runner_that_ends_with_2_without_its_script_has_failed(stderr: str) -> None:
    error = f"its script appears to be missing, so it does not block: exit code 2: {' '.join(stderr.split())}"
    assert interpret(Exited(2, "", f"{stderr}\n"), rule(), TURNGATE).decision == Fault(error)


@pytest.mark.parametrize(
    "stderr",
    [
        "make: *** [Makefile:2: test] Error 1",
        "make: *** No rule to make target 'a.o', needed by 'app'.  Stop.",
        "/bin/sh: 1: cannot open PLAN.md: No such file",
        "error: 3 tests failed",
    ],
)
def test_a_check_that_ends_with_2_blocks(stderr: str) -> None:
    assert isinstance(interpret(Exited(2, "", stderr), rule(), TURNGATE).decision, Block)


def test_a_missing_script_is_named_as_not_enforced() -> None:
    why = "bash: /p/.claude/hooks/gate.sh: No such file or directory"
    assert interpret(Exited(2, "", MISSING), rule(), CLAUDE).decision == Fault(
        f"its script appears to be missing, so it does not block: exit code 2: {why}"
    )


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
def test_a_decision_on_stderr_is_lost(dialect: Dialect) -> None:
    report = Exited(0, "checked\n", '{"decision": "block", "reason": "x"}\n')
    lost = Fault("its decision is on stderr, where it is not read: print it on stdout, or exit with 2")
    assert interpret(report, rule(), dialect).decision == lost
    approved = Exited(0, '{"decision": "approve"}', report.stderr)
    assert interpret(approved, rule(), dialect).decision == Allow()


@pytest.mark.parametrize("dialect", [TURNGATE, MUX, CLAUDE], ids=lambda dialect: dialect.name)
@pytest.mark.parametrize("event", ["SessionStart", "SubagentStart", "StopFailure", "SessionEnd"])
def test_where_no_hook_can_block_a_block_is_a_failure(event: str, dialect: Dialect) -> None:
    by_exit = interpret(Exited(2, "", "no"), rule(event=event), dialect).decision
    reason = "[check]: no" if dialect is CLAUDE else "no"
    assert by_exit == Fault(f"a hook cannot block at {event}: {reason}", may_block=False)
    by_json = interpret(said(decision="block", reason="no"), rule(event=event), dialect).decision
    assert by_json == Fault(f"a hook cannot block at {event}: no", may_block=False)


def test_where_no_hook_can_block_no_decision_is_lost() -> None:
    text = Exited(0, 'notes\n{"decision": "block", "reason": "x"}')
    assert interpret(text, rule(event="SessionStart"), TURNGATE).decision == Allow()
    word = interpret(said(decision="blok"), rule(event="SessionStart"), TURNGATE).decision
    warning = '`decision` is "blok", expected "block" or "approve"; did you mean "block"?: ignored'
    assert word == Allow(warnings=(warning,))


def test_context_beside_a_block_is_kept_where_no_hook_can_block() -> None:
    both = said(
        decision="block",
        reason="no",
        hookSpecificOutput={"hookEventName": "SessionStart", "additionalContext": "notes"},
    )
    assert interpret(both, rule(event="SessionStart"), TURNGATE).decision == Advise(
        "notes", warnings=("a hook cannot block at SessionStart: no",)
    )


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        ("/bin/sh: 1: jq: not found\n", "jq: not found"),
        ("a\n./gate.sh: line 3: jq: command not found\nb\n", "jq: command not found"),
        ("sh: jq: not found", "jq: not found"),
    ],
)
def test_a_hook_that_passes_without_its_program_has_a_warning(stderr: str, said: str) -> None:
    warning = f'passed, but its stderr says "{said}": the gate may not have checked anything'
    assert interpret(Exited(0, "", stderr), rule(), TURNGATE).decision == Allow(warnings=(warning,))


@pytest.mark.parametrize("stderr", ["jq was not found\n", "not found\n", "GET /x: 404 not found\n"])
def test_other_words_about_what_is_not_found_are_ordinary(stderr: str) -> None:
    assert interpret(Exited(0, "", stderr), rule(), TURNGATE).decision == Allow()


def test_the_last_lines_of_stdout_say_why_a_hook_without_stderr_failed() -> None:
    decision = interpret(Exited(1, "x" * 500 + "\n1 failed\n"), rule(), TURNGATE).decision
    assert decision == Fault(f"exit code 1, nothing on stderr; on stdout: … {'x' * 291} 1 failed")


@pytest.mark.parametrize("event", ["Stop", "PreToolUse"])
def test_a_hook_that_says_nothing_while_a_process_holds_its_output_passes_with_a_warning(event: str) -> None:
    warning = (
        "passed, but a process that it started still held its output half a second after its exit: "
        "wait for that process, or redirect its output"
    )
    silent = Exited(0, "", held=True)
    reports = (silent, Exited(0, '{"decision": "approve"}', held=True), Exited(0))
    decisions = [interpret(report, rule(event=event), TURNGATE).decision for report in reports]
    assert decisions == [Allow(warnings=(warning,)), Allow(), Allow()]
    assert interpret(silent, rule(event=event), CLAUDE).decision == Allow()  # as in Claude Code
    assert interpret(silent, rule(event="SessionStart"), TURNGATE).decision == Allow()
