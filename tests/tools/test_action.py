"""The GitHub Action: its script runs the gates with the inputs of the workflow."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from tests.support.builders import write_settings
from tests.support.git_projects import commit, git, make_repository, write
from tests.support.paths import ROOT

GATES = [
    {"type": "gate", "id": "tests", "command": "test -e done"},
    {"type": "gate", "id": "lint", "command": "no-such-linter"},
    {"type": "gate", "id": "stubs", "gate": "no-stubs"},
]


def run_action(project: Path, tmp_path: Path, **inputs: str) -> tuple[int, list[str]]:
    """Run the script of the action; Turngate is installed already."""
    program = tmp_path / "turngate-venv" / "bin" / "turngate"
    program.parent.mkdir(parents=True, exist_ok=True)
    if not program.exists():
        program.symlink_to(Path(sys.executable).with_name("turngate"))
    given = {"GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(tmp_path), **inputs}
    done = subprocess.run(
        ["sh", str(ROOT / "tools" / "action.sh")],
        cwd=project,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, [
        line for line in done.stdout.splitlines() if line[:2] == "::" or line[-1:].isalpha()
    ]


@pytest.fixture
def repository(project: Path) -> Path:
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": GATES}]}})
    make_repository(project, {"README.md": "shop\n"})
    return project


@pytest.mark.parametrize(
    ("inputs", "code", "last"),
    [
        ({}, 1, "1 failed, 1 could not run, 1 left out"),
        ({"TURNGATE_GATES": "tests"}, 1, "1 failed"),
        ({"TURNGATE_GATES": "lint"}, 13, "1 could not run"),
        ({"TURNGATE_GATES": "lint", "TURNGATE_LENIENT": "true"}, 0, "1 could not run"),
        ({"TURNGATE_GATES": "tests; touch injected"}, 64, None),
    ],
)
def test_the_action_runs_the_gates(
    repository: Path, tmp_path: Path, inputs: dict[str, str], code: int, last: str | None
) -> None:
    ended, lines = run_action(repository, tmp_path, **inputs)
    totals = [line for line in lines if not line.startswith("::") and line[0].isdigit()]
    assert (ended, totals[-1] if totals else None, (repository / "injected").exists()) == (code, last, False)


def test_the_base_of_a_pull_request_is_compared_with(repository: Path, tmp_path: Path) -> None:
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    write(repository, {"a.py": "def total(prices):\n    raise NotImplementedError\n"})
    commit(repository)
    code, lines = run_action(repository, tmp_path, GITHUB_BASE_REF="main", TURNGATE_GATES="stubs")
    assert (code, [line for line in lines if line.startswith("::")]) == (
        1,
        ["::error file=a.py,line=2,title=stubs%3A failed::not implemented: raise NotImplementedError"],
    )


def test_the_workflow_of_the_page_installs_turngate_and_fails_for_a_gate(repository: Path) -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs").rglob("*.md"))
    [text] = re.findall(
        r"^```yaml \.github/workflows/gates-by-hand\.yml\n(.*?)^```$", pages, re.MULTILINE | re.DOTALL
    )
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    install, run = [step["run"] for step in yaml.safe_load(text)["jobs"]["gates"]["steps"] if "run" in step]
    git(repository, "update-ref", "refs/remotes/origin/main", "HEAD")
    program = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": program, "GITHUB_BASE_REF": "main"}
    done = subprocess.run(["sh", "-c", run], cwd=repository, env=environ, check=False)
    address = f"git+{project['urls']['Homepage']}@v{project['version']}"
    assert (install, done.returncode) == (f'pip install "{address}"', 1)
