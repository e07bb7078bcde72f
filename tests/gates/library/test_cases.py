"""The cases of each gate, as a process on this machine, and in this process for a project on another one."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.gates import cases
from tests.support.gates import GateCase, answer_to, run_case_as_process, run_case_with_shell
from tests.support.machines import Machine
from turngate.gates.library import GATES

TABLES = [each.name for each in pkgutil.iter_modules(cases.__path__)]
SHOWN = {"checklist": "T-6", "todos": "T-6", "evidence": "T-2", "plan": "S3-52", "command": "X-37"}
HERE = ("judge",)  # acts on this machine and runs no command


def cases_of(*, without: tuple[str, ...] = ()) -> Iterator[ParameterSet]:
    for name in TABLES:
        marks = [pytest.mark.req(SHOWN[name])] if name in SHOWN else []
        for case in getattr(import_module(f"{cases.__name__}.{name}"), "CASES", ()):
            if name not in without:
                yield pytest.param(case, id=f"{name}: {case.name}", marks=marks)


@pytest.mark.parametrize("case", list(cases_of()))
def test_the_gate_answers(case: GateCase, project: Path) -> None:
    assert run_case_as_process(case, project) == (0, answer_to(case), "")
    assert not (project / "ran").exists()  # made by a command that the gate must not run


@pytest.mark.req("S0-105")
@pytest.mark.parametrize("case", list(cases_of(without=HERE)))
def test_the_gate_answers_for_a_project_on_another_machine(
    case: GateCase, project: Path, ssh_machine: Machine
) -> None:
    assert run_case_with_shell(case, project, ssh_machine) == answer_to(case)


@pytest.mark.parametrize("gate", list(GATES))
def test_every_gate_has_cases_or_tests(gate: str) -> None:
    name = (
        "project_checks" if gate in ("tests", "lint", "types", "format", "build") else gate.replace("-", "_")
    )
    assert name in TABLES or Path(__file__).with_name(f"test_{name}.py").exists()
