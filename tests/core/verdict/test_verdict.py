import pytest

from tests.support.builders import rule, run
from turngate.core.answers.report_types import Skipped, TimedOut
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.hooks.kinds import CommandHook
from turngate.core.verdict.decisions import Advise, Allow, Block, Fault, Halt
from turngate.core.verdict.hook_run import HookOutput, HookRun, outcome, run_message
from turngate.core.verdict.verdict import Continue, Stop, conclude, notices, unenforced, warnings


@pytest.mark.req("S0-08")
def test_no_hook_no_objection() -> None:
    assert conclude((), TURNGATE) == Stop()


@pytest.mark.req("S0-49", "S0-02", "S0-45", "S3-20", "S3-24")
def test_the_main_agent_gets_one_line_and_then_the_reason() -> None:
    runs = (run(Block("Please run tests before stopping")),)
    assert conclude(runs, TURNGATE) == Continue(
        runs, "[Stop hook requested continuation]\nPlease run tests before stopping"
    )


def test_a_subagent_gets_the_bare_reason() -> None:
    runs = (run(Block("use tools"), event="SubagentStop"),)
    assert conclude(runs, TURNGATE) == Continue(runs, "use tools")


@pytest.mark.req("C-05", "U-15")
def test_several_reasons_are_one_message_and_each_names_its_hook() -> None:
    runs = (
        run(Block("fix the lint"), "make lint"),
        run(Allow(), "make docs"),
        run(Block("fix the tests"), CommandHook("make test", id="tests")),
    )
    assert conclude(runs, TURNGATE) == Continue(
        runs, "[Stop hook requested continuation]\nmake lint: fix the lint\n\ntests: fix the tests"
    )


def test_a_long_command_is_named_by_its_beginning() -> None:
    runs = (run(Block("a"), "x " * 100), run(Block("b"), "short"))
    verdict = conclude(runs, TURNGATE)
    assert isinstance(verdict, Continue)
    assert verdict.prompt.splitlines()[1] == "x " * 39 + "x…: a"


@pytest.mark.req("S0-46", "C-06")
def test_one_halt_beats_every_block() -> None:
    runs = (run(Block("go on")), run(Halt("enough")), run(Block("more")))
    assert conclude(runs, TURNGATE) == Stop(runs, halted=True, stop_reason="enough")


@pytest.mark.req("S0-47")
def test_the_first_halt_that_gives_a_reason_gives_it_to_the_user() -> None:
    runs = (run(Halt()), run(Halt("enough")), run(Halt("too late")))
    assert conclude(runs, TURNGATE) == Stop(runs, halted=True, stop_reason="enough")


def test_no_objection_cannot_cancel_a_block() -> None:
    runs = (run(Allow("fine")), run(Block("not fine")))
    assert isinstance(conclude(runs, TURNGATE), Continue)


@pytest.mark.req("S3-21", "C-10", "C-29")
def test_a_broken_hook_does_not_block() -> None:
    runs = (run(Fault("exit code 1: boom")),)
    assert conclude(runs, TURNGATE) == Stop(runs)


@pytest.mark.req("S3-28", "C-10", "C-29")
def test_a_broken_hook_that_is_blocking_blocks_with_its_error() -> None:
    runs = (run(Fault("exit code 1: boom"), CommandHook("check", blocking=True)),)
    assert conclude(runs, TURNGATE) == Continue(
        runs,
        "[Stop hook requested continuation]\nthis check failed and must pass before you may stop: exit code 1: boom",
    )


def test_claude_knows_no_blocking_failures() -> None:
    runs = (run(Fault("exit code 1: boom"), CommandHook("check", blocking=True)),)
    assert conclude(runs, CLAUDE) == Stop(runs)


@pytest.mark.req("C-03")
def test_an_observer_blocks_nothing_and_its_block_is_recorded() -> None:
    runs = (run(Block("go on"), mode="observe"), run(Halt("enough"), mode="observe"))
    assert (conclude(runs, TURNGATE), [outcome(r) for r in runs]) == (
        Stop(runs),
        ["would_block", "would_block"],
    )


def test_advice_alone_continues_the_turn_and_is_distinguished_from_a_block() -> None:
    runs = (run(Advise("think of x")),)
    assert conclude(runs, TURNGATE) == Continue(
        runs, "[Stop hook requested continuation]\nthink of x", advice_only=True
    )


def test_advice_follows_the_reasons() -> None:
    runs = (run(Advise("think of x")), run(Block("fix it", "and of y")))
    assert conclude(runs, TURNGATE) == Continue(
        runs, "[Stop hook requested continuation]\nfix it\n\nthink of x\n\nand of y"
    )


def test_claude_tells_each_block_under_its_own_heading_in_order_of_completion() -> None:
    runs = (run(Block("slow"), "a", finished=1), run(Block("quick"), "b", finished=0))
    assert conclude(runs, CLAUDE) == Continue(runs, "Stop hook feedback:\nquick\n\nStop hook feedback:\nslow")


def test_claude_wraps_advice_in_a_reminder_that_names_the_event() -> None:
    runs = (run(Advise("ctx"), event="SubagentStop"),)
    told = "<system-reminder>\nSubagentStop hook additional context: ctx\n</system-reminder>"
    assert conclude(runs, CLAUDE) == Continue(runs, told, advice_only=True)


def test_mux_and_turngate_say_the_same() -> None:
    runs = (run(Block("x")),)
    assert conclude(runs, MUX) == conclude(runs, TURNGATE)


@pytest.mark.req("X-09")
def test_every_decision_has_its_own_outcome() -> None:
    assert [
        outcome(run(decision, report=report))
        for decision, report in (
            (Allow(), None),
            (Block("x"), None),
            (Advise("x"), None),
            (Halt(), None),
            (Fault("x"), None),
            (Fault("x", "timeout"), None),
            (Fault("x", "skipped"), Skipped("x")),
            (Allow(), Skipped("x", on_purpose=True)),
        )
    ] == ["allow", "block", "advise", "halt", "failed", "timeout", "skipped", "skipped"]


@pytest.mark.req("S0-65", "X-09")
def test_warnings_of_all_hooks_say_which_gate_is_not_enforced() -> None:
    runs = (
        run(Fault("exit code 1: boom"), "lint"),
        run(Allow(warnings=("odd",)), "docs"),
        run(Fault("timed out after 5 s", "timeout"), "tests", report=TimedOut(5.0)),
        run(Fault("no slot", "timeout"), "slow"),
        run(Fault("off", "skipped"), "later"),
        run(Fault("no file"), CommandHook("strict", blocking=True)),
        run(Fault("boom"), '"$DIR"/gate.sh'),
        run(Fault("gone"), "seen", mode="observe"),
    )
    assert warnings(runs, TURNGATE) == (
        'hook "lint" failed and was NOT enforced: exit code 1: boom',
        'hook "docs": odd',
        'hook "tests" timed out after 5 s and was NOT enforced',
        'hook "slow" timed out and was NOT enforced: no slot',
        'hook "later" was skipped and NOT enforced: off',
        'hook "strict" failed: no file',
        "hook '\"$DIR\"/gate.sh' failed and was NOT enforced: boom",
        'hook "seen" failed: gone',
    )


def test_what_was_left_out_on_purpose_is_not_unenforced() -> None:
    on_purpose = HookRun(rule(), Skipped("other child", on_purpose=True), Allow())
    switched_off = HookRun(rule(), Skipped("off"), Fault("off", "skipped"))
    observed = HookRun(rule(), Skipped("off"), Fault("off", "skipped"), mode="observe")
    assert unenforced((on_purpose, switched_off, observed), TURNGATE) == (switched_off,)


@pytest.mark.req("S3-26")
def test_words_for_the_user_never_reach_the_model() -> None:
    runs = (run(Block("fix it", notice="I refused")), run(Allow(notice="all well")))
    verdict = conclude(runs, TURNGATE)
    assert (notices(runs), verdict) == (
        ("I refused", "all well"),
        Continue(runs, "[Stop hook requested continuation]\nfix it"),
    )


@pytest.mark.req("C-11")
def test_a_block_without_a_reason_does_not_block_even_where_the_hook_is_blocking() -> None:
    runs = (run(Fault("no reason", may_block=False), CommandHook("check", blocking=True)),)
    assert (conclude(runs, TURNGATE), unenforced(runs, TURNGATE)) == (Stop(runs), runs)


@pytest.mark.parametrize("event", ["SessionStart", "SubagentStart", "StopFailure", "SessionEnd"])
def test_events_that_cannot_be_blocked_stay_unblocked(event: str) -> None:
    runs = (run(Block("no"), event=event),)
    assert conclude(runs, TURNGATE) == Stop(runs)


def test_a_blocked_tool_gets_the_bare_reason_and_advice_blocks_nothing() -> None:
    refused, advised = (run(Block("no rm"), event="PreToolUse"),), (run(Advise("x"), event="PreToolUse"),)
    assert (conclude(refused, TURNGATE), conclude(advised, TURNGATE)) == (
        Continue(refused, "no rm"),
        Stop(advised),
    )


def test_a_hook_that_was_not_asked_says_why() -> None:
    assert run_message(HookRun(rule(), Skipped("another child", on_purpose=True), Allow())) == "another child"


def test_in_the_claude_dialect_context_beside_a_block_is_a_message_of_its_own() -> None:
    runs = (run(Block("run the tests", advice="use pytest")), run(Advise("and ruff")))
    feedback = "Stop hook feedback:\nrun the tests"
    context = (
        "<system-reminder>\nStop hook additional context: use pytest\n</system-reminder>\n\n"
        "<system-reminder>\nStop hook additional context: and ruff\n</system-reminder>"
    )
    expected = Continue(runs, f"{feedback}\n\n{context}", messages=(feedback, context))
    assert conclude(runs, CLAUDE) == expected


def test_in_the_turngate_dialect_context_follows_the_reason_in_one_message() -> None:
    runs = (run(Block("run the tests", advice="use pytest")),)
    prompt = "[Stop hook requested continuation]\nrun the tests\n\nuse pytest"
    assert conclude(runs, TURNGATE) == Continue(runs, prompt)


def test_a_verdict_knows_which_gates_were_not_enforced() -> None:
    failed, observer, fine = (
        run(Fault("boom"), "lint"),
        run(Fault("x"), "watch", mode="observe"),
        run(Allow()),
    )
    lost = HookOutput("Stop", "lint", "command", "failed", "boom")
    for others, kind in (((fine,), Stop), ((run(Block("no")),), Continue), ((run(Halt("enough")),), Stop)):
        verdict = conclude((failed, observer, *others), TURNGATE)
        assert (type(verdict), verdict.unenforced) == (kind, (lost,))
    assert conclude((fine,), TURNGATE).unenforced == ()


@pytest.mark.parametrize(("dialect", "count"), [(TURNGATE, 0), (MUX, 0), (CLAUDE, 1)])
def test_a_failure_that_blocks_is_enforced(dialect: Dialect, count: int) -> None:
    failed = run(Fault("boom"), CommandHook("lint", blocking=True))
    assert len(conclude((failed, run(Block("no"))), dialect).unenforced) == count


def test_a_failure_is_not_enforced_where_no_hook_can_block() -> None:
    failed = run(Fault("boom"), CommandHook("lint", blocking=True), event="SessionStart")
    verdict = conclude((failed,), TURNGATE)
    assert (type(verdict), len(verdict.unenforced)) == (Stop, 1)
