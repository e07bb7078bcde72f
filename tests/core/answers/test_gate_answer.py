"""The keys of an answer that only Turngate reads, and what they do to a turn."""

import json
from typing import Any

import pytest

from tests.support.builders import rule, run
from turngate.cli.commands.hooks.trial import explain
from turngate.core.answers.interpret import interpret
from turngate.core.answers.report_types import Exited, Returned
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.settings import Settings
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault, Halt
from turngate.core.verdict.hook_run import HookRun
from turngate.core.verdict.json_output import verdict_json
from turngate.core.verdict.loop_guard import ContinueTurn, EndTurn, LoopGuard, new_guard
from turngate.core.verdict.verdict import Stop, conclude, warnings


def decide(dialect: Dialect = TURNGATE, /, **answer: Any) -> Decision:
    return interpret(Exited(0, json.dumps(answer)), rule(), dialect).decision


@pytest.mark.parametrize("dialect", [TURNGATE, MUX], ids=["turngate", "mux"])
def test_a_gate_that_could_not_check_anything_has_failed(dialect: Dialect) -> None:
    assert decide(dialect, notEnforced="npm is missing") == Fault("npm is missing")


def test_a_notice_that_says_the_same_is_shown_once() -> None:
    text = 'gate "tests" could not run: npm is missing; it was NOT enforced'
    assert decide(notEnforced="npm is missing", systemMessage=text) == Fault("npm is missing")
    assert decide(notEnforced="npm is missing", systemMessage="hi") == Fault("npm is missing", notice="hi")


def test_a_block_counts_although_a_part_of_the_gate_could_not_check_anything() -> None:
    assert decide(notEnforced="npm is missing", decision="block", reason="no") == Block("no")


@pytest.mark.parametrize(("value", "shown"), [(True, "true"), ("  ", '"  "'), (5, "5")])
def test_a_gate_that_does_not_say_why_has_failed_too(value: Any, shown: str) -> None:
    assert decide(notEnforced=value) == Fault(f"`notEnforced` is {shown}, expected a string that says why")


def test_a_halt_can_wait_for_the_user() -> None:
    waiting = {"continue": False, "stopReason": "approve the plan", "waits": True}
    assert [decide(dialect, **waiting) for dialect in (TURNGATE, MUX, CLAUDE)] == [
        Halt("approve the plan", waits=True),
        Halt("approve the plan", waits=True),
        Halt("approve the plan"),
    ]


def test_a_gate_that_was_not_asked_because_the_agent_waits_never_blocks() -> None:
    waiting = {"notEnforced": "a subagent works", "waits": True}
    fault = Fault("a subagent works", "waiting", may_block=False)
    assert [decide(dialect, **waiting) for dialect in (TURNGATE, MUX, CLAUDE)] == [fault, fault, Allow()]


def test_otherwise_nothing_waits() -> None:
    assert decide(waits=True) == Allow(
        warnings=("`waits` has an effect only with `continue: false` or `notEnforced`: ignored",)
    )
    assert decide(waits="yes", **{"continue": False}) == Halt(
        warnings=('`waits` is "yes", expected true or false: ignored',)
    )


def test_a_block_can_ask_for_continuations() -> None:
    answer = {"decision": "block", "reason": "more", "continuations": 20}
    assert [decide(dialect, **answer) for dialect in (TURNGATE, MUX, CLAUDE)] == [
        Block("more", continuations=20),
        Block("more", continuations=20),
        Block("more"),
    ]


@pytest.mark.parametrize(
    ("value", "shown"), [(0, "0"), (-1, "-1"), (True, "true"), (2.5, "2.5"), ("9", '"9"')]
)
def test_other_numbers_of_continuations_are_ignored(value: Any, shown: str) -> None:
    warning = f"`continuations` is {shown}, expected a whole number, 1 or more: ignored"
    assert decide(decision="block", reason="more", continuations=value) == Block("more", warnings=(warning,))


def test_a_callback_can_answer_with_these_keys() -> None:
    returned = Returned({"notEnforced": "no npm"})
    assert interpret(returned, rule(), TURNGATE).decision == Fault("no npm")


@pytest.mark.parametrize("value", [0, True, "many"])
def test_a_decision_in_python_is_checked_where_it_is_made(value: Any) -> None:
    with pytest.raises(ValueError, match=r"Block\.continuations must be a whole number, 1 or more"):
        Block("more", continuations=value)
    with pytest.raises(TypeError, match=r"Halt\.waits must be True or False, not str"):
        Halt("wait", waits="yes")  # type: ignore[arg-type]


# A turn that waits


def waiting_runs() -> tuple[HookRun, ...]:
    return (
        run(Block("go on"), "make test"),
        run(Halt("enough"), "budget"),
        run(Halt("approve the plan", waits=True), "plan"),
    )


def test_a_halt_that_waits_beats_every_other_decision() -> None:
    runs = waiting_runs()
    assert conclude(runs, TURNGATE) == Stop(runs, halted=True, stop_reason="approve the plan", waits=True)


def test_a_turn_that_waits_ends_at_a_checkpoint() -> None:
    guard = new_guard(Settings(), {})
    assert guard.after(conclude(waiting_runs(), TURNGATE)) == EndTurn(
        "checkpoint", stop_reason="approve the plan"
    )


def test_json_output_names_the_checkpoint() -> None:
    shown = verdict_json(conclude(waiting_runs(), TURNGATE), "Stop", Settings())
    assert (shown["verdict"], shown["ended_by"], shown["stop_reason"]) == (
        "stop",
        "checkpoint",
        "approve the plan",
    )


# A gate that needs continuations


def ask_for(count: int | None, guard: LoopGuard, reason: str = "more") -> ContinueTurn | EndTurn:
    return guard.after(conclude((run(Block(reason, continuations=count), "until"),), guard.dialect))


def play(settings: Settings, requests: list[int | None], **options: Any) -> tuple[int, list[str], str]:
    """Return the continuations, the notices and the end of a turn in which a gate always blocks."""
    guard, asked = new_guard(settings, {}, **options), 0
    notices: list[str] = []
    while True:
        step = ask_for(requests[min(asked, len(requests) - 1)], guard, f"reason {asked}")
        asked += 1
        if isinstance(step, EndTurn):
            return guard.continuations, notices, step.ended_by
        guard = step.guard
        notices += [step.notice] if step.notice else []


LESS = 'gate "until" asks for 20 continuations and gets 10, the hard limit: raise `hardLimit` in the user settings for more'


@pytest.mark.req("C-18")
def test_a_gate_gets_the_continuations_that_it_asks_for() -> None:
    assert play(Settings(), [7]) == (7, [], "capped")


@pytest.mark.req("C-18")
def test_no_gate_gets_more_than_the_hard_limit_and_the_user_is_told_once() -> None:
    assert play(Settings(), [20]) == (10, [LESS], "capped")
    assert play(Settings(hard_limit=30), [20]) == (20, [], "capped")


@pytest.mark.req("C-18")
def test_a_request_only_raises_the_limit() -> None:
    assert play(Settings(), [1]) == (3, [], "capped")
    assert play(Settings(), [6, 2, None]) == (6, [], "capped")
    assert play(Settings(), [5, 20]) == (10, [LESS], "capped")


def test_a_limit_of_0_stays() -> None:
    assert play(Settings(limit=0), [20]) == (0, [], "capped")


def test_a_subagent_has_its_own_limit_and_the_same_hard_limit() -> None:
    assert play(Settings(child_limit=1), [None], child=True) == (1, [], "capped")
    assert play(Settings(child_limit=1), [20], child=True) == (10, [LESS], "capped")


def test_the_most_that_a_blocking_gate_asks_for_counts() -> None:
    runs = (
        run(Block("a", continuations=5), "one"),
        run(Block("b", continuations=8), "two"),
        run(Block("c", continuations=9), "observed", mode="observe"),
    )
    step = new_guard(Settings(), {}).after(conclude(runs, TURNGATE))
    assert isinstance(step, ContinueTurn)
    assert (step.guard.limit, step.notice) == (8, None)


# `turngate hooks test`


def ignored(**answer: Any) -> list[str]:
    report = Exited(0, json.dumps(answer))
    decision, read = interpret(report, rule(), TURNGATE)
    notes = explain(HookRun(rule(), report, decision, answer=read), TURNGATE)
    return [note.field for note in notes if note.is_ignored]


def test_keys_without_an_effect_are_named() -> None:
    assert ignored(notEnforced="no npm", systemMessage="could not run: no npm") == ["systemMessage"]
    assert ignored(**{"continue": False, "waits": True}) == []
    assert ignored(decision="block", reason="more", continuations=5) == []
    assert ignored(waits=True, continuations=5) == ["waits", "continuations"]


def test_the_warning_names_the_gate_that_was_not_enforced() -> None:
    runs = (run(Fault("no npm"), "tests"),)
    assert warnings(runs, TURNGATE) == ('hook "tests" failed and was NOT enforced: no npm',)
