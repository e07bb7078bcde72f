"""What the runner of command hooks gives a shell: the environment, and the words of the command."""

from pathlib import Path

import pytest

from tests.support.builders import script
from tests.support.machines import Machine, ask_on
from turngate.core.hooks import CommandHook
from turngate.core.reports import Exited
from turngate.runners.command import MAX_ENVIRONMENT_BYTES, MAX_VARIABLE_BYTES, sanitize_env

PLAIN = {"PATH": "/bin", "EMPTY": "", "LANG": "C"}


@pytest.mark.parametrize(
    "bad",
    [
        {"NUL": "a\0b"},
        {"N\0L": "a"},
        {"a=b": "c"},
        {"": "nameless"},
        {"HALF": "\ud800"},
        {"LONG": "x" * MAX_VARIABLE_BYTES},
        {"WIDE": "\u00e9" * (MAX_VARIABLE_BYTES // 2)},
    ],
)
def test_one_bad_variable_is_left_out_and_the_others_are_passed(bad: dict[str, str]) -> None:
    assert (sanitize_env({**PLAIN, **bad}), sanitize_env({**bad, **PLAIN}), sanitize_env(PLAIN)) == (
        PLAIN,
        PLAIN,
        PLAIN,
    )


def test_where_the_room_is_short_the_later_variables_come_first() -> None:
    many = {f"V{number}": "x" * (MAX_VARIABLE_BYTES - 100) for number in range(15)}
    kept = sanitize_env(many)
    assert (list(kept), len(kept) * MAX_VARIABLE_BYTES) == (
        [f"V{number}" for number in range(14, 4, -1)],
        MAX_ENVIRONMENT_BYTES,
    )


@pytest.mark.parametrize("family", ["CLAUDE", "MUX", "TURNGATE"])
def test_args_name_the_projects_folder(family: str, project: Path, machine: Machine) -> None:
    variable = f"${{{family}_PROJECT_DIR}}"
    script(project / "each.sh", '#!/bin/sh\nfor word; do echo "$word"; done\n')
    hook = CommandHook(f"{variable}/each.sh", args=(f"{variable}/x", f"--in={variable}:{variable}"))
    [run] = machine.run(ask_on(machine, project, hook)).runs
    assert run.report == Exited(0, f"{project}/x\n--in={project}:{project}\n")


def test_a_project_with_a_blank_and_a_backslash_stays_one_argument(tmp_path: Path, machine: Machine) -> None:
    project = tmp_path / r"my \1 project"
    script(project / "count.sh", '#!/bin/sh\nprintf "%s %s" $# "$1"\n')
    hook = CommandHook("${CLAUDE_PROJECT_DIR}/count.sh", args=("${CLAUDE_PROJECT_DIR}",))
    [run] = machine.run(ask_on(machine, project, hook)).runs
    assert run.report == Exited(0, f"1 {project}")
