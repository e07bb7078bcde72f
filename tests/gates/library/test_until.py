"""The gate `until`."""

from pathlib import Path
from typing import Any

import pytest

from tests.gates.cases.until import PROMISES, WORDS, goes_on
from tests.support.gates import (
    answer_of_process,
    answer_with_shell,
    blocked,
    claude_input,
)
from tests.support.transcripts import TranscriptBuilder, talk
from turngate.gates.library.until import has_promise


@pytest.mark.parametrize("answer", PROMISES)
def test_what_is_a_promise(answer: str) -> None:
    assert has_promise(answer, "ALL DONE") is PROMISES[answer]


def stops(project: Path, builder: TranscriptBuilder, words: tuple[str, ...], **fields: Any) -> dict[str, Any]:
    builder.write(project.parent / "transcript.jsonl")
    given = claude_input(project, last_assistant_message="Not yet.", **fields)
    return answer_with_shell(words, given, project)


def test_iterations_are_counted_until_the_users_next_message(project: Path) -> None:
    words = (*WORDS, "--max-iterations", "3")
    builder = talk()
    over = {"continue": False, "stopReason": 'the promise "DONE" was not kept in 3 iterations'}
    assert stops(project, builder, words) == blocked(goes_on(most=3))
    builder.feedback("go on").runs("make")
    assert stops(project, builder, words, stop_hook_active=True) == blocked(goes_on(iteration=2, most=3))
    assert stops(project, builder, words) == over  # whatever the host says in stop_hook_active
    assert stops(project, builder, words) == over
    assert stops(project, builder.user("Once more."), words) == blocked(goes_on(most=3))


def test_without_a_transcript_the_host_says_whether_a_prompt_is_new(project: Path) -> None:
    def stop(**fields: Any) -> dict[str, Any]:
        return answer_with_shell(
            WORDS, claude_input(project, last_assistant_message="No.", **fields), project
        )

    assert stop() == blocked(goes_on())
    assert stop(stop_hook_active=True) == blocked(goes_on(iteration=2))
    assert stop() == blocked(goes_on())
    assert stop(stop_hook_active=True) == blocked(goes_on(iteration=2))
    assert stop(prompt_id="p1") == blocked(goes_on())
    assert stop(prompt_id="p1") == blocked(goes_on(iteration=2))


def test_each_session_and_agent_has_its_own_count(project: Path) -> None:
    builder = talk()
    assert stops(project, builder, WORDS) == blocked(goes_on())
    assert stops(project, builder, WORDS, session_id="another") == blocked(goes_on())
    subagent = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_transcript_path": "/none"}
    assert stops(project, builder, WORDS, **subagent) == blocked(goes_on())
    assert stops(project, builder, WORDS) == blocked(goes_on(iteration=2))


def test_it_asks_for_continuations_and_says_when_it_gets_fewer(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TURNGATE_IN_HOOK", "1")
    talk().write(project.parent / "transcript.jsonl")
    fields = claude_input(project, last_assistant_message="No.", max_continuations=8)
    first = {**blocked(goes_on()), "continuations": 19}
    assert answer_of_process(WORDS, fields) == (0, first, "")
    fewer = "\nThis turn has at most 8 continuations, fewer than the 19 that this gate asks for."
    second = {**blocked(goes_on(iteration=2) + fewer), "continuations": 19}
    assert answer_of_process(WORDS, fields) == (0, second, "")
    granted = {**fields, "max_continuations": 19}
    third = {**blocked(goes_on(iteration=3)), "continuations": 19}
    assert answer_of_process(WORDS, granted) == (0, third, "")
