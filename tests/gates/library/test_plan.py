"""The gate `plan`."""

from pathlib import Path

import pytest

from tests.gates.cases.plan import DONE, PAUSE, PHASE_2_REASON, PLAN
from tests.support.gates import (
    answer_of_process,
    answer_with_shell,
    blocked,
    claude_input,
    record_with_shell,
)
from tests.support.transcripts import TranscriptBuilder, talk

PHASE_1_IS_DONE = {
    "systemMessage": "Phase 1: Parser is complete; 2 tasks are open in Phase 2: Printer. "
    "Check the result, then say whether to go on."
}
PHASE_2_IS_DONE = {
    "systemMessage": "Phase 2: Printer is complete; 1 task is open in Phase 3: Docs. "
    "Check the result, then say whether to go on."
}


@pytest.mark.req("S3-64")
def test_each_phase_waits_once_for_the_users_next_message(project: Path) -> None:
    builder = talk().edits("PLAN.md")
    phase_2_done = PLAN.replace("[ ] Write the printer", "[x] A").replace("1. [ ]", "1. [x]")

    def stop(plan: str, talk: TranscriptBuilder) -> dict[str, object]:
        (project / "PLAN.md").write_text(plan)
        talk.write(project.parent / "transcript.jsonl")
        return answer_with_shell(PAUSE, claude_input(project), project)

    assert stop(PLAN, builder) == PHASE_1_IS_DONE
    assert (
        stop(PLAN, builder.feedback("another gate").says("…")) == PHASE_1_IS_DONE
    )  # not an answer of the user
    assert stop(PLAN, builder.user("Looks good, go on.")) == blocked(PHASE_2_REASON, "plan")
    assert stop(phase_2_done, builder.edits("PLAN.md")) == PHASE_2_IS_DONE
    assert stop(DONE, builder.user("Go on.").edits("PLAN.md")) == {}


@pytest.mark.req("S3-64")
def test_a_phase_that_was_complete_at_the_sessions_start_needs_no_answer(project: Path) -> None:
    (project / "PLAN.md").write_text(PLAN)
    fields = claude_input(project)
    talk().edits("PLAN.md").write(project.parent / "transcript.jsonl")
    record_with_shell(PAUSE, fields, project)
    assert answer_with_shell(PAUSE, fields, project) == blocked(PHASE_2_REASON, "plan")


@pytest.mark.req("S3-64")
def test_below_our_own_engine_the_turn_ends_as_waiting(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "PLAN.md").write_text(PLAN)
    talk().edits("PLAN.md").write(project.parent / "transcript.jsonl")
    monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
    waits = {"continue": False, "stopReason": PHASE_1_IS_DONE["systemMessage"], "waits": True}
    assert answer_of_process(PAUSE, claude_input(project)) == (0, waits, "")
