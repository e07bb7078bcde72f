"""The gate `checklist`."""

from pathlib import Path

import pytest

from tests.gates.cases.checklist import CASES, OPEN, OPEN_REASON
from tests.support.gates import GateCase, answer_with_shell, blocked, check_case, claude_input
from tests.support.machines import Machine
from turngate.core.verdict.decisions import UNCHANGED_RESULT


@pytest.mark.req("T-6", "S0-105")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_checklist(case: GateCase, project: Path, ssh_machine: Machine) -> None:
    check_case(case, project, ssh_machine)


def test_a_checklist_that_has_not_changed_is_reported_as_unchanged(project: Path) -> None:
    (project / "TODO.md").write_text(OPEN)
    words, fields = ("checklist", "TODO.md"), claude_input(project)
    assert answer_with_shell(words, fields, project) == blocked(OPEN_REASON)
    assert answer_with_shell(words, fields, project) == blocked(f"{OPEN_REASON}\n\n{UNCHANGED_RESULT}")
    (project / "TODO.md").write_text(OPEN.replace("[ ]", "[x]"))
    assert answer_with_shell(words, fields, project) == {}
