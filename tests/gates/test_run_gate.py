"""What all gates have in common."""

import json
from pathlib import Path

import pytest

from tests.support.gates import answer_with_shell, claude_input
from tests.support.git_projects import make_repository
from turngate.core.verdict.decisions import UNCHANGED_RESULT


def test_a_failing_command_blocks_with_its_output_and_says_when_nothing_has_changed(
    project: Path,
) -> None:
    words = ("--", "echo one; echo two >&2; exit 7")
    fields = claude_input(project)
    reason = "`echo one; echo two >&2; exit 7`: exit code 7\none\ntwo"
    assert answer_with_shell(words, fields, project) == {"decision": "block", "reason": reason}
    again = {"decision": "block", "reason": f"{reason}\n\n{UNCHANGED_RESULT}"}
    assert answer_with_shell(words, fields, project) == again


@pytest.mark.req("S3-48")
def test_a_failure_is_checked_again_after_a_tool_call_and_after_a_prompt(project: Path) -> None:
    words = ("--", "echo run >> ../runs; echo no; exit 1")
    prompt, feedback = said_by_user("go on"), said_by_user("Stop hook feedback:\nno", isMeta=True)
    tool = run_of_tool("Write")
    counts = []
    for records in (
        prompt,
        prompt + feedback,
        prompt + feedback + tool,
        prompt + feedback + tool,
        tool + prompt,
    ):
        (project.parent / "transcript.jsonl").write_text(records)
        answer_with_shell(words, claude_input(project), project)
        counts.append(len((project.parent / "runs").read_text().splitlines()))
    assert counts == [1, 1, 2, 2, 3]


def test_a_failure_is_checked_again_if_it_is_not_known_what_was_done(project: Path) -> None:
    words = ("--", "test -f ../installed")
    fields = claude_input(project, transcript_path="")
    assert answer_with_shell(words, fields, project)["decision"] == "block"
    (project.parent / "installed").touch()
    assert answer_with_shell(words, fields, project) == {}


def test_a_gate_that_blocks_because_it_could_not_run_says_when_that_is_repeated(project: Path) -> None:
    words = ("todos", "--strict")
    fields = claude_input(project, transcript_path=str(project / "none.jsonl"))
    first, second = (answer_with_shell(words, fields, project)["reason"] for _ in range(2))
    assert second == f"{first}\n\n{UNCHANGED_RESULT}"


def test_a_report_that_a_command_writes_does_not_make_it_run_again(project: Path) -> None:
    make_repository(project, {"a.py": "1\n"})
    words = ("--", "echo run >> ../runs; date +%N > report.xml")
    for _ in range(3):
        assert answer_with_shell(words, claude_input(project), project) == {}
    assert (project.parent / "runs").read_text() == "run\n"


def test_a_tracked_file_that_a_command_writes_makes_it_run_again(project: Path) -> None:
    make_repository(project, {"a.py": "1\n"})
    words = ("--", "echo run >> ../runs; date +%N > a.py")
    for _ in range(2):
        assert answer_with_shell(words, claude_input(project), project) == {}
    assert (project.parent / "runs").read_text() == "run\nrun\n"


def said_by_user(text: str, **fields: object) -> str:
    record = {"type": "user", "message": {"role": "user", "content": text}, **fields}
    return json.dumps(record) + "\n"


def run_of_tool(name: str) -> str:
    block = {"type": "tool_use", "id": "t1", "name": name, "input": {}}
    message = {"role": "assistant", "content": [block]}
    return json.dumps({"type": "assistant", "uuid": "u1", "message": message}) + "\n"


@pytest.mark.req("S3-48")
def test_a_tree_that_has_passed_is_checked_again_only_after_a_failure(project: Path) -> None:
    words = ("--", "echo run >> ../runs; ! grep -q bad code")
    counts, answers = [], []
    for text in ("good", "better", "good", "better", "bad", "good"):
        (project / "code").write_text(text)
        answers.append(answer_with_shell(words, claude_input(project), project).get("decision"))
        counts.append(len((project.parent / "runs").read_text().splitlines()))
    assert (counts, answers) == ([1, 2, 2, 2, 3, 4], [None, None, None, None, "block", None])
