"""The gate `command`, as a process and with a shell that is not the local one."""

from pathlib import Path

import pytest

from tests.gates.cases.command import CASES
from tests.support.gates import (
    GateCase,
    run_case_as_process,
    run_case_with_shell,
)


@pytest.mark.req("X-37")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_gate_answers(case: GateCase, project: Path) -> None:
    assert run_case_as_process(case, project) == (0, case.answer, "")


@pytest.mark.req("X-37")
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_the_gate_reaches_the_project_through_the_shell_alone(case: GateCase, project: Path) -> None:
    assert run_case_with_shell(case, project) == case.answer
