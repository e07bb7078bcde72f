"""The user is in charge: questions in prose, and `turngate: keep`."""

from pathlib import Path
from typing import Any

import pytest

from tests.gates.cases.todos import OPEN_TWO, OPEN_TWO_REASON
from tests.support.gates import answer_of_process, answer_with_shell, blocked, claude_input, record_with_shell
from tests.support.transcripts import TranscriptBuilder, talk
from turngate.core.text import one_line
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


def test_a_strict_gate_is_not_kept_either(project: Path) -> None:
    builder = talk().calls("TodoWrite", OPEN_TWO)
    answer = stop(project, ("todos", "--strict"), builder, "turngate: keep todos: no")
    assert answer == blocked(OPEN_TWO_REASON)


def test_a_question_of_a_later_prompt_is_not_the_same_again_where_there_is_no_transcript(
    project: Path,
) -> None:
    def ask(prompt: str) -> str | None:
        fields = claude_input(
            project, last_assistant_message=QUESTION, prompt_id=prompt, transcript_path=None
        )
        return answer_with_shell(FAILS, fields, project).get("decision")

    assert [ask("1"), ask("1"), ask("2"), ask("2")] == ["block", None, "block", None]


def test_a_hard_gate_cannot_be_kept(project: Path) -> None:
    assert stop(project, FAILS, talk(), "turngate: keep command: failed before") == blocked(FAILED)


FAILS_AS_PRINTED = ("--", "cat failures; exit 1")
NO_BASELINE = (
    "All failures count, because what failed at the session's start is not known: "
    "the files of the session's start are not recorded in git."
)
KEEP_FAILURES = "If all of this failed before, end your answer with `turngate: keep command: failed before`."
KEPT = "turngate: keep command: failed before"


def begin_without_baseline(project: Path, words: tuple[str, ...]) -> None:
    """Start a session that changes a file of a project whose start cannot be restored."""
    print_failures(project, "test_a", "test_b")
    record_with_shell(words, claude_input(project), project)
    (project / "code.py").write_text("x = 2\n")


def print_failures(project: Path, *names: str) -> None:
    lines = [f"FAILED tests/test_a.py::{name} - assert 1 == 2\n" for name in names]
    (project / "failures").write_text("".join(lines))


def failed(*names: str) -> str:
    lines = "".join(f"FAILED tests/test_a.py::{name} - assert 1 == 2\n" for name in names)
    return f"`cat failures; exit 1`: exit code 1\n{lines}\n{NO_BASELINE}"


def test_where_no_baseline_is_known_the_agent_may_keep_the_failures_of_a_hard_gate_once_per_prompt(
    project: Path,
) -> None:
    builder, words = talk(), FAILS_AS_PRINTED
    begin_without_baseline(project, words)
    first = stop(project, words, builder, "Done.")
    assert first == blocked(f"{failed('test_a', 'test_b')}\n{KEEP_FAILURES}")
    kept = stop(project, words, builder.feedback("…"), f"They failed before.\n\n{KEPT}")
    found = one_line(failed("test_a", "test_b"), 300)
    notice = f'gate "command": the agent keeps this: failed before (found: {found})'
    assert kept == {"systemMessage": notice}
    print_failures(project, "test_b")
    fewer = stop(project, words, builder, "One is repaired.")
    assert fewer == {"systemMessage": notice.replace(found, one_line(failed("test_b"), 300))}
    print_failures(project, "test_b", "test_c")
    other = blocked(f"{failed('test_b', 'test_c')}\n{KEEP_FAILURES}")
    assert stop(project, words, builder, f"All of them.\n\n{KEPT}") == other
    next_prompt = builder.user("Go on.")
    assert stop(project, words, next_prompt, "Done.")["reason"].startswith(other["reason"])


def test_a_kept_failure_is_no_pass_of_the_tree(project: Path) -> None:
    """Which a later stop, in a process of its own, would pass without asking the gate."""
    builder, words = talk(), FAILS_AS_PRINTED
    print_failures(project, "test_a")
    answer_of_process(words, claude_input(project, hook_event_name="SessionStart"))
    (project / "code.py").write_text("x = 2\n")

    def stop_in_process(answer: str) -> dict[str, Any]:
        builder.says(answer).write(project.parent / "transcript.jsonl")
        return answer_of_process(words, claude_input(project, last_assistant_message=answer))[1]

    assert stop_in_process("Done.")["decision"] == "block"
    assert "systemMessage" in stop_in_process(KEPT)
    builder.user("Go on.")
    assert stop_in_process("Done.")["decision"] == "block"


@pytest.mark.parametrize("option", ["--firm", "--all-failures", "--strict"])
def test_a_hard_gate_that_is_firm_or_counts_all_failures_cannot_be_kept(project: Path, option: str) -> None:
    words = (option, *FAILS_AS_PRINTED)
    begin_without_baseline(project, words)
    answer = stop(project, words, talk(), KEPT)
    assert (answer["decision"], "turngate: keep" in answer["reason"]) == ("block", False)


def test_a_check_that_was_changed_cannot_be_kept_as_a_failure_from_before(project: Path) -> None:
    words, builder = ("tests",), talk()
    (project / "Makefile").write_text("test:\n\tcat failures; exit 1\n")
    begin_without_baseline(project, words)
    assert stop(project, words, builder, "Done.")["reason"].endswith("`turngate: keep tests: failed before`.")
    (project / "Makefile").write_text("test:\n\ttrue\n")
    answer = stop(project, words, builder, "turngate: keep tests: failed before")
    assert (answer["decision"], "turngate: keep" in answer["reason"]) == ("block", False)
