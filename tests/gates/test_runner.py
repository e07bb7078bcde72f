"""What all gates have in common."""

import json
from pathlib import Path

import pytest

from tests.support.gates import answer_with_shell, claude_input
from turngate.gates.runner import UNCHANGED


def test_a_failing_command_blocks_with_its_output_and_says_when_nothing_has_changed(
    project: Path,
) -> None:
    words = ("--", "echo one; echo two >&2; exit 7")
    fields = claude_input(project)
    reason = "`echo one; echo two >&2; exit 7`: exit code 7\none\ntwo"
    assert answer_with_shell(words, fields, project) == {"decision": "block", "reason": reason}
    again = {"decision": "block", "reason": f"{reason}\n\n{UNCHANGED}"}
    assert answer_with_shell(words, fields, project) == again


@pytest.mark.req("S3-48")
def test_a_failure_is_checked_again_after_the_agent_has_run_a_command(project: Path) -> None:
    words = ("--", "echo run >> ../runs; echo no; exit 1")
    transcript = project.parent / "transcript.jsonl"
    transcript.write_text("")
    counts = []
    for commands in (0, 0, 1, 1):
        transcript.write_text(run_of_bash() * commands)
        answer_with_shell(words, claude_input(project), project)
        counts.append(len((project.parent / "runs").read_text().splitlines()))
    assert counts == [1, 1, 2, 2]


def run_of_bash() -> str:
    block = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "npm install"}}
    message = {"role": "assistant", "content": [block]}
    return json.dumps({"type": "assistant", "uuid": "u1", "message": message}) + "\n"
