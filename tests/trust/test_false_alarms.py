"""What an agent, a tool or a user does without a change of the hooks: nothing becomes pending."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.trust.support import RUNS, approve_all, ask, command, make, said, write

PYTHON = sys.executable


class Case(NamedTuple):
    text: str
    files: dict[str, str]
    change: Callable[[Path], object]


def edit(*names: str) -> Callable[[Path], object]:
    return lambda project: write(project, dict.fromkeys(names, "# edited\n"))


def append(*names: str) -> Callable[[Path], object]:
    """Write files that cannot be run."""

    def change(project: Path) -> None:
        for name in names:
            path = project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("data\n")

    return change


CHECK = {"hooks/check.sh": RUNS}
LARGE = "x" * 2_000_000


def write_again(project: Path) -> None:
    shutil.rmtree(project / "hooks")
    write(project, CHECK)


COMPONENT = {"src/hooks/useForm.ts": "", "src/hooks/useForm.test.ts": ""}

CASES = {
    "a test that a program runs": Case(
        "true pytest -q tests/test_app.py",
        {"tests/test_app.py": ""},
        edit("tests/test_app.py", "tests/test_b.py"),
    ),
    "code that a linter reads": Case(
        "true shellcheck install.sh src/app.py",
        {"install.sh": "", "src/app.py": ""},
        edit("install.sh", "src/app.py"),
    ),
    "code in a folder with the name `hooks`": Case(
        "true eslint src/hooks src/hooks/*.ts", COMPONENT, edit(*COMPONENT, "src/hooks/new.ts")
    ),
    "a module of the project that `-m` does not run": Case(
        f"{PYTHON} -m hooks.check", {"hooks/check.py": "import app", "app.py": ""}, edit("app.py")
    ),
    "what a hook writes beside itself": Case(
        "sh hooks/check.sh",
        CHECK,
        append(
            *(
                "hooks/check.log",
                "hooks/.cache/x",
                "hooks/log.jsonl",
                "hooks/state/1.json",
                "hooks/stop_count",
            ),
            *(
                "hooks/log.txt",
                "hooks/run-log.json",
                "hooks/output.txt",
                "hooks/report.json",
                "hooks/metrics.csv",
            ),
        ),
    ),
    "what a command writes": Case(
        "echo >> .claude/agent-log.jsonl; echo > .claude/last.txt",
        {},
        append(".claude/agent-log.jsonl", ".claude/last.txt"),
    ),
    "bytecode": Case("sh hooks/check.sh", CHECK, edit("hooks/__pycache__/x.pyc")),
    "another script beside it": Case(
        "sh scripts/check.sh",
        {"scripts/check.sh": RUNS, "scripts/deploy.sh": ""},
        edit("scripts/deploy.sh", "scripts/new.py"),
    ),
    "a file that a program makes": Case("flock lock true", {}, append("lock")),
    "times and modes": Case(
        "sh hooks/check.sh", CHECK, lambda project: os.utime(project / "hooks/check.sh", (1, 1))
    ),
    "a checkout that writes the same files": Case("sh hooks/check.sh", CHECK, write_again),
    "a checkout that writes the same large file": Case(
        "true || hooks/large", {"hooks/large": LARGE}, lambda project: write(project, {"hooks/large": LARGE})
    ),
    "a script of another language": Case(
        "bin/check",
        {"bin/check": "#!/bin/true\nload('src/app.rb')\nsrc/app.rb\n", "src/app.rb": ""},
        edit("src/app.rb"),
    ),
    "what is in an activated environment": Case(
        "true", {".venv/bin/other": ""}, edit(".venv/bin/third", ".venv/lib/module.py")
    ),
}


@pytest.fixture(autouse=True)
def _without_trust(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")


@pytest.mark.parametrize("name", CASES)
def test_a_hook_stays_approved(name: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", f"{project}/.venv/bin:/usr/bin:/bin")
    case = CASES[name]
    make(project, command(case.text), case.files)
    approve_all(project)
    assert said(ask(project)) == []
    case.change(project)
    assert said(ask(project)) == []


def test_a_project_below_a_folder_with_the_name_hooks(tmp_path: Path) -> None:
    """What a script of such a project imports is still its own code."""
    project = tmp_path / "hooks/project"
    make(project, command(f"{PYTHON} tests/run.py"), {"tests/run.py": "import app", "tests/app.py": ""})
    approve_all(project)
    write(project, {"tests/app.py": "# edited"})
    assert said(ask(project)) == []


def test_a_plugin_of_the_command_line_needs_no_approval_after_a_change_either(project: Path) -> None:
    hooks = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "NAME 1"}]}]}}'
    for name in ("true", "echo"):
        write(project, {"plugin/hooks/hooks.json": hooks.replace("NAME", name)})
        assert said(ask(project, plugin_dirs=[str(project / "plugin")])) == []
