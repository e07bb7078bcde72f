"""The record of missed gates: written whole, read with whatever a transcript has in its place."""

import json
from typing import Any

import pytest

from turngate.core.events.stream_events import MissedGates, SubagentFinished, merge_missed, missed_gates_of
from turngate.core.verdict.hook_run import HookOutput

HOOK = HookOutput("Stop", "tests", "command", "timeout", "timed out after 5 s")
SUBAGENT = SubagentFinished("a1", "lines", "ok", 3, 1.5, "tester", "capped", ("tests", "lint"), "r1", (HOOK,))
MISSED = MissedGates(unenforced=(HOOK,), subagents=(SUBAGENT,))


def stored(missed: MissedGates) -> Any:
    return json.loads(json.dumps(missed.as_record()))


def test_a_record_is_read_as_it_was_written() -> None:
    assert missed_gates_of(stored(MISSED)) == MISSED


def test_the_notices_name_hooks_and_whose_they_are() -> None:
    assert MISSED.notices() == (
        'hook "tests" was NOT enforced before the process died: timed out after 5 s',
        'hook "tests" of subagent lines was NOT enforced before the process died: timed out after 5 s',
    )


def test_what_a_hook_printed_is_not_kept() -> None:
    loud = HookOutput("Stop", "tests", "command", "timeout", "timed out after 5 s", "much", "notice")
    assert missed_gates_of(stored(MissedGates(unenforced=(loud,)))) == MissedGates(unenforced=(HOOK,))


@pytest.mark.parametrize("value", [None, 5, "text", [5]])
def test_a_record_without_lists_of_objects_has_nothing(value: object) -> None:
    assert missed_gates_of({"unenforced": value, "subagents": value}) == MissedGates()


def test_repetitions_are_merged() -> None:
    assert merge_missed([MISSED, MissedGates(), MISSED]) == MISSED
