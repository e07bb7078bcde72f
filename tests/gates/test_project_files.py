import asyncio
import os
from pathlib import Path

import pytest

from tests.support.gates import ELSEWHERE, OtherShell
from tests.support.git_projects import make_repository, write
from turngate.gates.project_files import list_matching
from turngate.gates.run_commands import ProjectCommands
from turngate.shells.local import LocalShell

FILES = {
    "ruff.toml": "",
    "src/Makefile": "",
    "src/web/package.json": "{}",
    "src/ignored/Makefile": "",
    "src/a.py": "",
    ".gitignore": "ignored/\n",
    "node_modules/m/package.json": "{}",
}
CONFIGURATION = r"(^|/)(ruff\.toml|makefile|package\.json)$"
IN_GIT = ("node_modules/m/package.json", "ruff.toml", "src/Makefile", "src/web/package.json")
WITHOUT_GIT = ("ruff.toml", "src/Makefile", "src/ignored/Makefile", "src/web/package.json")


def names_of(project: Path, *, is_local: bool, limit: int = 10) -> tuple[str, ...]:
    async def read() -> tuple[str, ...]:
        shell, folder = (LocalShell(), str(project)) if is_local else (OtherShell(project), ELSEWHERE)
        commands = ProjectCommands(shell, folder, os.environ, None)
        state = os.environ["TURNGATE_STATE"]
        return (await list_matching(commands, CONFIGURATION, limit, state))[0]

    return asyncio.run(read())


@pytest.mark.parametrize("is_local", [True, False])
@pytest.mark.parametrize(
    ("has_git", "folder", "expected"),
    [
        (True, ".", IN_GIT),
        (True, "src", ("Makefile", "web/package.json")),
        (True, "src/ignored", ("Makefile",)),
        (False, ".", WITHOUT_GIT),
    ],
)
def test_files_that_match_are_listed_on_each_machine(
    tmp_path: Path, is_local: bool, has_git: bool, folder: str, expected: tuple[str, ...]
) -> None:
    if has_git:
        make_repository(tmp_path, FILES)
    else:
        write(tmp_path, FILES)
    assert names_of(tmp_path / folder, is_local=is_local) == expected


def test_of_more_files_than_the_limit_the_nearest_are_listed(tmp_path: Path) -> None:
    make_repository(tmp_path, FILES)
    assert names_of(tmp_path, is_local=True, limit=2) == ("ruff.toml", "src/Makefile")


def test_a_file_whose_name_git_quotes_is_listed(tmp_path: Path) -> None:
    make_repository(tmp_path, {"ü/Makefile": "", "a\nb/Makefile": ""})
    assert names_of(tmp_path, is_local=True) == ("a\nb/Makefile", "ü/Makefile")
