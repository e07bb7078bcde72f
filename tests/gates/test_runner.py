"""What all gates have in common."""

from pathlib import Path

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
