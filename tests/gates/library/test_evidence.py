"""The gate `evidence`."""

from pathlib import Path

import pytest

from tests.gates.cases.evidence import CASES, NOTHING, ends
from tests.support.gates import GateCase, answer_with_shell, blocked, check_case, claude_input
from tests.support.machines import Machine
from tests.support.transcripts import talk
from turngate.core.verdict.decisions import UNCHANGED_RESULT


@pytest.mark.req("T-2", "S0-105")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_evidence(case: GateCase, project: Path, ssh_machine: Machine) -> None:
    check_case(case, project, ssh_machine)


def test_a_claim_that_is_repeated_is_reported_as_unchanged(project: Path) -> None:
    fields = claude_input(project, **ends(talk())(project))
    assert answer_with_shell(("evidence",), fields, project) == NOTHING
    again = blocked(f"{NOTHING['reason']}\n\n{UNCHANGED_RESULT}")
    assert answer_with_shell(("evidence",), fields, project) == again
