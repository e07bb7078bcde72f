"""A step of the loop guard → the answer to a host."""

import pytest

from tests.support.builders import run
from turngate.core.dialect import HOST, TURNGATE
from turngate.core.verdict.decisions import Allow, Block, Halt
from turngate.core.verdict.loop_guard import ContinueTurn, EndTurn, LoopGuard
from turngate.core.verdict.verdict import conclude
from turngate.hosts.host import HostAnswer
from turngate.hosts.stop import answer_for

GUARD = LoopGuard(dialect=HOST, limit=1, hard_limit=10)
CAPPED = LoopGuard(dialect=HOST, limit=1, hard_limit=10, count=1, continuations=1)


def step(*decisions: Allow | Block | Halt, guard: LoopGuard = GUARD) -> ContinueTurn | EndTurn:
    return guard.after(conclude(tuple(run(decision, "pytest") for decision in decisions), HOST))


@pytest.mark.parametrize(
    ("taken", "notices", "answer"),
    [
        (step(Allow()), (), HostAnswer(decision="allow")),
        (step(Allow()), ("a", "b"), HostAnswer(decision="allow", notices=("a", "b"))),
        (step(Block("2 failed\nsee x")), (), HostAnswer(decision="block", reason="2 failed\nsee x")),
        (
            step(Block("2 failed")),
            ("not enforced",),
            HostAnswer(decision="block", reason="2 failed", notices=("not enforced",)),
        ),
        (
            ContinueTurn("go on", GUARD, notice="gets 10"),
            ("b",),
            HostAnswer(decision="block", reason="go on", notices=("gets 10", "b")),
        ),
        (
            ContinueTurn(" \n", GUARD),
            (),
            HostAnswer(decision="block", reason="A hook blocked the stop without a reason."),
        ),
        (step(Halt("enough")), ("a",), HostAnswer(decision="halt", reason="enough", notices=("a",))),
        (step(Halt("")), (), HostAnswer(decision="halt", reason="no reason given")),
        (
            step(Halt("approve the plan?", waits=True)),
            (),
            HostAnswer(decision="halt", reason="waiting for the user: approve the plan?"),
        ),
        (
            step(Block("2 failed\nsee x"), guard=CAPPED),
            ("b",),
            HostAnswer(
                decision="allow",
                notices=(
                    'Turn ended after 1 continuation (the limit). Still blocked by: "pytest".',
                    "the last reason: 2 failed\n  see x",
                    "b",
                ),
            ),
        ),
        (
            EndTurn("stalled", "Turn ended: nothing changed.", last_reason="2 failed"),
            (),
            HostAnswer(
                decision="allow", notices=("Turn ended: nothing changed.", "the last reason: 2 failed")
            ),
        ),
    ],
)
def test_a_step_of_the_loop_guard_is_an_answer(
    taken: ContinueTurn | EndTurn, notices: tuple[str, ...], answer: HostAnswer
) -> None:
    assert answer_for(taken, notices) == answer


def test_the_heading_of_turngate_is_not_in_a_reason() -> None:
    assert TURNGATE.prefix
    assert TURNGATE.prefix.strip() not in answer_for(step(Block("2 failed"))).reason
