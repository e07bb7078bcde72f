"""The user is in charge: questions in prose, and `turngate: keep`."""

from pathlib import Path
from typing import Any

from tests.gates.cases.todos import OPEN_TWO, OPEN_TWO_REASON
from tests.support.gates import answer_with_shell, blocked, claude_input
from tests.support.transcripts import TranscriptBuilder, talk
from turngate.core.verdict.decisions import UNCHANGED_RESULT
from turngate.gates.run_gate import INSIST

WAITS = "waits: the agent asks the user; it was NOT enforced"
FAILS = ("--", "echo no; exit 1")
FAILED = "`echo no; exit 1`: exit code 1\nno"
QUESTION = "Should the port be 80 or 8080?"


def stop(project: Path, words: tuple[str, ...], builder: TranscriptBuilder, answer: str) -> dict[str, Any]:
    builder.says(answer).write(project.parent / "transcript.jsonl")
    return answer_with_shell(words, claude_input(project, last_assistant_message=answer), project)


def test_a_soft_gate_waits_while_the_agent_asks_the_user(project: Path) -> None:
    builder = talk().calls("TodoWrite", OPEN_TWO)
    assert stop(project, ("todos",), builder, QUESTION) == {"systemMessage": f'gate "todos" {WAITS}'}
    assert stop(project, ("todos",), builder, f"All is done. {QUESTION}")["decision"] == "block"


def test_a_hard_gate_blocks_a_question_once_and_says_how_to_insist(project: Path) -> None:
    builder = talk()
    first = blocked(f"{FAILED}\n{INSIST}")
    assert stop(project, FAILS, builder, QUESTION) == first
    assert stop(project, FAILS, builder.feedback("…"), QUESTION) == {
        "systemMessage": f'gate "command" {WAITS}'
    }
    again = blocked(f"{first['reason']}\n\n{UNCHANGED_RESULT}")
    assert stop(project, FAILS, builder.runs("ls"), QUESTION) == again


def test_a_hard_gate_passes_a_question_if_all_is_well(project: Path) -> None:
    assert stop(project, ("--", "true"), talk(), QUESTION) == {}


def test_the_agent_may_keep_what_a_soft_gate_has_found_once_per_prompt(project: Path) -> None:
    builder = talk().calls("TodoWrite", OPEN_TWO)
    keep = "Parsed it.\n\nturngate: keep todos: the user wants the rest tomorrow"
    kept = (
        'gate "todos": the agent keeps this: the user wants the rest tomorrow (found: 2 of 3 tasks in your task list are open: '
        "- Test (in progress) - Write Finish them and update the list; remove what is no longer needed.)"
    )
    assert stop(project, ("todos",), builder, keep) == {"systemMessage": kept}
    assert stop(project, ("todos",), builder.feedback("…"), "As I said.") == {"systemMessage": kept}
    more = {"todos": [*OPEN_TWO["todos"], {"content": "More", "status": "pending"}]}
    assert stop(project, ("todos",), builder.calls("TodoWrite", more), keep)["decision"] == "block"


def test_a_firm_gate_and_one_of_another_name_are_not_kept(project: Path) -> None:
    builder = talk().calls("TodoWrite", OPEN_TWO)
    assert stop(project, ("todos", "--firm"), builder, "turngate: keep todos: no") == blocked(OPEN_TWO_REASON)
    other = stop(project, ("todos",), builder, "turngate: keep clean: no")
    assert other == blocked(OPEN_TWO_REASON, "todos")


def test_a_hard_gate_cannot_be_kept(project: Path) -> None:
    assert stop(project, FAILS, talk(), "turngate: keep command: failed before") == blocked(FAILED)
