"""The gate `untouched`, as a process on this machine, and over SSH."""

from pathlib import Path

import pytest

from tests.gates.cases.untouched import CASES
from tests.support.gates import GateCase, run_case_as_process, run_case_with_shell
from tests.support.machines import Machine


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_gate_answers(case: GateCase, project: Path) -> None:
    assert run_case_as_process(case, project) == (0, case.answer, "")


@pytest.mark.req("S0-105")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_gate_answers_for_a_project_on_another_machine(
    case: GateCase, project: Path, ssh_machine: Machine
) -> None:
    assert run_case_with_shell(case, project, ssh_machine) == case.answer
