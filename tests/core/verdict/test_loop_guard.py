"""Every rule about counting, and every way in which a turn can end by its hooks."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.builders import run, settings
from turngate.core.dialect import CLAUDE, MUX, TURNGATE, Dialect
from turngate.core.settings import Settings
from turngate.core.verdict.decisions import UNCHANGED_RESULT, Advise, Block, Halt
from turngate.core.verdict.loop_guard import ContinueTurn, EndTurn, LoopGuard, new_guard
from turngate.core.verdict.verdict import Continue, Stop, conclude


def guard(dialect: Dialect = TURNGATE, **fields: Any) -> LoopGuard:
    return LoopGuard(
        **{"dialect": dialect, "limit": dialect.limit, "hard_limit": dialect.hard_limit, **fields}
    )


def refuse(reason: str = "more", hook: str = "make test") -> Continue:
    verdict = conclude((run(Block(reason), hook),), TURNGATE)
    assert isinstance(verdict, Continue)
    return verdict


def advise() -> Continue:
    verdict = conclude((run(Advise("think")),), TURNGATE)
    assert isinstance(verdict, Continue)
    return verdict


def go_on(state: LoopGuard, verdict: Continue | None = None) -> LoopGuard:
    step = state.after(verdict or refuse())
    assert isinstance(step, ContinueTurn)
    return step.guard


@pytest.mark.req("C-04")
def test_a_blocked_stop_does_not_end_the_turn_and_the_final_one_ends_it_once() -> None:
    state = guard()
    steps = [state.after(refuse()), go_on(state).after(refuse()), go_on(go_on(state)).after(Stop())]
    assert [type(step) for step in steps] == [ContinueTurn, ContinueTurn, EndTurn]


def test_without_a_block_the_turn_ends() -> None:
    assert guard().after(Stop()) == EndTurn("allowed")


@pytest.mark.req("S0-47", "S3-25")
def test_a_halt_ends_the_turn_and_its_reason_is_for_the_user() -> None:
    runs = (run(Halt("enough")),)
    assert guard().after(conclude(runs, TURNGATE)) == EndTurn("halted", stop_reason="enough")


@pytest.mark.req("S0-30")
def test_active_is_false_at_the_first_stop_and_true_in_every_continuation() -> None:
    first = guard()
    second = go_on(first)
    third = go_on(second.after_tool_call())
    assert [state.active for state in (first, second, third)] == [False, True, True]


@pytest.mark.req("C-18", "X-10")
@pytest.mark.parametrize("dialect", [TURNGATE, MUX])
def test_three_continuations_and_the_fourth_block_caps(dialect: Dialect) -> None:
    state = guard(dialect)
    for number in range(3):
        state = go_on(state, refuse(f"reason {number}")).after_tool_call()
    assert (state.count, state.below_limit, state.after(refuse("reason 4"))) == (
        3,
        False,
        EndTurn(
            "capped",
            notice='Turn ended after 3 continuations (the limit). Still blocked by: "make test".',
            last_reason="reason 4",
        ),
    )


@pytest.mark.req("C-18")
def test_at_the_limit_the_hooks_are_asked_once_more_and_agreement_completes_the_turn() -> None:
    assert guard(count=3, continuations=3).after(Stop()) == EndTurn("allowed")


def test_a_continuation_that_waited_behind_others_keeps_what_they_counted_and_is_active() -> None:
    waiting = go_on(guard())
    woken = waiting.after_report().redirected().after_report()
    resumed = woken.resume_continuation(waiting)
    assert (resumed.count, resumed.continuations, resumed.active) == (2, 2, True)
    assert guard().resume_continuation(waiting) == waiting


def test_limit_zero_means_no_continuation() -> None:
    step = guard(limit=0).after(refuse())
    assert isinstance(step, EndTurn)
    assert step.ended_by == "capped"


def test_a_gate_that_says_that_nothing_has_changed_repeats_its_block() -> None:
    state = go_on(guard(replace(TURNGATE, stall_after=1)), refuse("more"))
    step = state.after(refuse(f"more\n\n{UNCHANGED_RESULT}"))
    assert isinstance(step, EndTurn)
    assert step.ended_by == "stalled"


@pytest.mark.req("X-08")
def test_the_same_block_after_three_idle_continuations_stalls_the_turn() -> None:
    state = guard(limit=10)
    for _ in range(3):
        state = go_on(state)
    assert state.after(refuse()) == EndTurn(
        "stalled",
        notice='Turn ended: nothing changed in 3 continuations. Still blocked by: "make test".',
        last_reason="more",
    )


def test_a_turn_that_stalls_after_one_continuation_says_so_in_the_singular() -> None:
    state = go_on(guard(replace(TURNGATE, stall_after=1)))
    assert state.after(refuse()) == EndTurn(
        "stalled",
        notice='Turn ended: nothing changed in 1 continuation. Still blocked by: "make test".',
        last_reason="more",
    )


@pytest.mark.req("X-08")
def test_a_tool_call_between_blocks_is_no_stall_but_the_absolute_cap_stays() -> None:
    state = guard(limit=10)
    for _ in range(10):
        state = go_on(state).after_tool_call()
    step = state.after(refuse())
    assert isinstance(step, EndTurn)
    assert step.ended_by == "capped"


@pytest.mark.req("X-08")
def test_another_reason_or_another_hook_is_another_block() -> None:
    state = guard(limit=10)
    for verdict in (
        refuse("a"),
        refuse("a"),
        refuse("b"),
        refuse("b", "make lint"),
        refuse("b", "make lint"),
    ):
        state = go_on(state, verdict)
    assert (state.repeats, state.count) == (2, 5)


def test_at_limit_three_a_stall_is_always_capped() -> None:
    state = guard()
    for _ in range(3):
        state = go_on(state)
    step = state.after(refuse())
    assert isinstance(step, EndTurn)
    assert step.ended_by == "capped"


@pytest.mark.parametrize("dialect", [MUX, CLAUDE])
def test_only_turngate_looks_for_stalls(dialect: Dialect) -> None:
    state = guard(dialect, limit=8)
    for _ in range(8):
        state = go_on(state)
    step = state.after(refuse())
    assert isinstance(step, EndTurn)
    assert step.ended_by == "capped"


@pytest.mark.req("S0-30")
def test_claude_counts_consecutive_blocks_only() -> None:
    state = guard(CLAUDE)
    for _ in range(13):
        state = go_on(state).after_tool_call()
    assert (state.count, state.continuations, state.active) == (0, 13, True)


def test_advice_continues_a_turn_once_and_counts() -> None:
    state = go_on(guard(), advise())
    assert (state.count, state.after(advise())) == (1, EndTurn("allowed"))


def test_advice_at_the_limit_is_not_a_block() -> None:
    assert guard(count=3, continuations=3).after(advise()) == EndTurn("allowed")


def test_a_hook_may_raise_the_limit_up_to_the_hard_one_and_never_lower_it() -> None:
    assert [guard().extended(wanted).limit for wanted in (1, 5, 99)] == [3, 5, 10]


LIMITS: list[tuple[Settings, dict[str, str], dict[str, Any], int | None]] = [
    (settings(), {}, {}, 3),
    (settings(limit=5), {}, {}, 5),
    (settings(limit=0), {}, {}, 0),
    (settings(limit=50), {}, {}, 10),
    (settings(limit=50, hard_limit=40), {}, {}, 40),
    (settings(hard_limit=2), {}, {}, 2),
    (settings(limit=5), {}, {"limit": 30}, 30),
    (settings(limit=5, child_limit=7), {}, {"child": True}, 7),
    (settings(limit=5), {}, {"child": True}, 5),
    (settings(dialect=MUX), {}, {}, 3),
    (settings(dialect=CLAUDE), {}, {}, 8),
    (settings(dialect=CLAUDE), {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "2.7"}, {}, 2),
    (settings(dialect=CLAUDE), {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0"}, {}, None),
    (settings(dialect=CLAUDE), {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "-1"}, {}, None),
    (settings(dialect=CLAUDE), {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "abc"}, {}, 8),
    (settings(dialect=CLAUDE, env={"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "4"}), {}, {}, 4),
    (settings(), {"CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "9"}, {}, 3),
]


@pytest.mark.req("C-18")
@pytest.mark.parametrize(("said", "environ", "asked", "limit"), LIMITS)
def test_the_limit_comes_from_the_caller_the_settings_or_the_dialect(
    said: Settings, environ: dict[str, str], asked: dict[str, Any], limit: int | None
) -> None:
    assert new_guard(said, environ, **asked).limit == limit


def test_without_a_limit_a_guard_is_always_open() -> None:
    assert guard(limit=None, count=1000).below_limit


def test_a_stored_guard_counts_on_and_one_of_a_transcript_counts_its_continuations() -> None:
    state = replace(go_on(go_on(guard()), advise()), requested=7)
    assert LoopGuard.from_json(json.loads(json.dumps(state.to_json())), guard()) == state
    assert LoopGuard.from_json({"continuations": 2}, guard()) == guard(count=2, continuations=2)
