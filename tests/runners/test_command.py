"""What the runner of command hooks gives a shell: the environment, and the words of the command."""

import asyncio
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import script, stop_event
from tests.support.machines import Machine, ask_on
from tests.support.prefixed_files import PrefixedFiles
from turngate.core.answers.report_types import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Settings
from turngate.ports import HookRunContext, RemoteMachine, World
from turngate.runners.command import MAX_ENVIRONMENT_BYTES, MAX_VARIABLE_BYTES, run_command, sanitize_env
from turngate.shells.local import LocalShell

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


class FolderShell(LocalShell):
    """A shell of a machine whose folder `/far` is somewhere else on this one."""

    def __init__(self, far: Path) -> None:
        super().__init__()
        self.far = far

    async def run(self, hook: CommandHook, **options: Any) -> Exited:
        args = hook.args and tuple(arg.replace("/far", str(self.far)) for arg in hook.args)
        env = {name: value.replace("/far", str(self.far)) for name, value in options.pop("env").items()}
        return await super().run(replace(hook, args=args), env=env, **options)


def test_the_folder_for_the_data_of_a_plugin_is_made_where_the_hook_runs(
    project: Path, tmp_path: Path
) -> None:
    """`/far` does not exist here."""
    far = tmp_path / "far"
    far.mkdir()
    hook = CommandHook(
        'echo data > "$CLAUDE_PLUGIN_DATA/out"', env={"CLAUDE_PLUGIN_DATA": "/far/plugins/a b"}
    )
    world = World(FolderShell(far), str(project), remote=RemoteMachine(PrefixedFiles(far, "/far")))
    live = HookRunContext()
    report = asyncio.run(run_command(hook, stop_event(cwd=str(project)), Settings(), world, live))
    assert (report, live.warnings) == (Exited(0), [])
    assert (far / "plugins" / "a b" / "out").read_text() == "data\n"
    assert oct((far / "plugins" / "a b").stat().st_mode) == "0o40700"
    assert not os.path.lexists("/far")


def test_a_folder_for_data_that_cannot_be_made_there_is_a_warning(project: Path, tmp_path: Path) -> None:
    hook = CommandHook("true", env={"CLAUDE_PLUGIN_DATA": "/dev/null/data"})
    files = PrefixedFiles(tmp_path, "/")
    world = World(LocalShell(), str(project), remote=RemoteMachine(files))
    live = HookRunContext()
    report = asyncio.run(run_command(hook, stop_event(cwd=str(project)), Settings(), world, live))
    [warning] = live.warnings
    assert report == Exited(0)
    assert warning.startswith("the folder for its data could not be made: ")
    assert "/dev/null" in warning
