"""The figures of the status line."""

from dataclasses import replace

from tests.support.builders import settings
from turngate.cli.commands.run.chat import Totals
from turngate.core.conversation.messages import Usage
from turngate.core.events.stream_events import TurnResult
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Rule

RULES = [Rule("Stop", CommandHook("true", id=name)) for name in ("tests", "lint", "types")]
GATES = replace(settings(), rules=(*RULES, Rule("PreToolUse", CommandHook("true", id="before"))))


def turn(tokens: int, cost: float | None) -> TurnResult:
    usage = Usage(input_tokens=tokens)
    return TurnResult(ended_by="allowed", session_id="s", transcript_path="t", usage=usage, cost=cost)


def test_tokens_dollars_and_gates_of_a_conversation() -> None:
    totals = Totals()
    assert [totals.format(settings()), totals.format(GATES)] == ["", "3 gates"]
    totals.add(turn(1200, 0.25))
    totals.add(turn(34, 0.5))
    totals.gates |= {"tests": "block", "lint": "allow", "types": "allow", "before": "allow"}
    assert totals.format(GATES) == "1,234 tokens · $0.7500 · 3 gates: 1 blocked, 2 passed"


def test_the_cost_is_left_out_if_the_price_of_a_turn_is_not_known() -> None:
    totals = Totals()
    for cost in (0.25, None, 0.5):
        totals.add(turn(100, cost))
    assert totals.format(settings()) == "300 tokens"


def test_a_gate_that_did_not_run_is_not_counted_as_passed() -> None:
    totals = Totals()
    totals.gates["tests"] = "allow"
    assert totals.format(GATES) == "3 gates: 1 passed"
