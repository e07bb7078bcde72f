"""The gate `checklist`."""

from pathlib import Path

from tests.gates.cases.checklist import OPEN, OPEN_REASON
from tests.support.gates import answer_with_shell, blocked, claude_input
from turngate.core.verdict.decisions import UNCHANGED_RESULT


def test_a_checklist_that_has_not_changed_is_reported_as_unchanged(project: Path) -> None:
    (project / "TODO.md").write_text(OPEN)
    words, fields = ("checklist", "TODO.md"), claude_input(project)
    assert answer_with_shell(words, fields, project) == blocked(OPEN_REASON, "checklist")
    assert answer_with_shell(words, fields, project) == blocked(
        f"{blocked(OPEN_REASON, 'checklist')['reason']}\n\n{UNCHANGED_RESULT}"
    )
    (project / "TODO.md").write_text(OPEN.replace("[ ]", "[x]"))
    assert answer_with_shell(words, fields, project) == {}
