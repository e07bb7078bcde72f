"""Paths that lead nowhere, round in circles, into /proc or too deep: no command and no tool fails with an exception."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.scripted_run import scripted, turngate
from turngate.agent.agent_session import read_guides
from turngate.agent.tools import TOOLS, ToolContext, ToolFailed, check_arguments
from turngate.cli.main import main
from turngate.core.text import truncate
from turngate.errors import UsageError
from turngate.project.files import LOCAL
from turngate.trust.load import load_settings

DEEP = "a/" * 1990
LOOP = "Too many levels of symbolic links"
LOOP_OF_SETTINGS = "leads back to itself, or through too many links"
INPUTS: dict[str, dict[str, Any]] = {
    "Read": {},
    "Write": {"content": "x"},
    "Edit": {"old_string": "x", "new_string": "y"},
    "Glob": {"pattern": "*"},
    "Grep": {"pattern": "x"},
}


def use(name: str, path: str, project: Path) -> str:
    """Return the tool's answer, or what it says when it fails."""
    context, tool = ToolContext(str(project), dict(os.environ)), TOOLS[name]
    given = {tool.paths[0]: path, **INPUTS[name]}

    async def run() -> str:
        return (await tool.run(check_arguments(tool, given, context), context)).text

    try:
        return asyncio.run(run())
    except ToolFailed as failed:
        return f"FAILED: {failed}"


def chain(project: Path, name: str, length: int = 1500) -> str:
    """Make a chain of links that begins with this name, and return the name."""
    folder = project.parent / "links"
    folder.mkdir(exist_ok=True)
    for number in range(length):
        (folder / f"{name}-{number}").symlink_to(folder / f"{name}-{number + 1}")
    (project / name).symlink_to(folder / f"{name}-0")
    return name


@pytest.fixture
def _shallow(tmp_path: Path) -> Iterator[None]:
    """Remove folders that are too deep for pytest: `shutil.rmtree` calls itself for each level."""
    yield
    top, aside = tmp_path / "project" / "a", tmp_path / "aside"
    while top.exists():
        inner = top / "a"
        if inner.exists():
            inner.rename(aside)
        for entry in top.iterdir():
            entry.unlink()
        top.rmdir()
        if aside.exists():
            aside.rename(top)


# Tools


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("path", ["/proc/1/exe", "/proc/2/exe", "/proc/1/cwd/x", "link-into-proc"])
def test_a_path_into_another_process_is_a_failed_call(name: str, path: str, project: Path) -> None:
    (project / "link-into-proc").symlink_to("/proc/2/exe")
    full = os.path.join(project, path)
    assert use(name, path, project) in (
        f"FAILED: {full} cannot be used: Permission denied",
        f"FAILED: {full} is not allowed: it is outside of the project {project}",
    )


@pytest.mark.parametrize("name", INPUTS)
def test_a_chain_of_1500_links_is_a_failed_call(name: str, project: Path) -> None:
    path = chain(project, "chain")
    assert use(name, path, project) == f"FAILED: {project}/chain cannot be used: {LOOP}"


@pytest.mark.usefixtures("_shallow")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Read", "FAILED: {} does not exist"),
        ("Write", "Created {}"),
        ("Edit", "FAILED: {} does not exist"),
        ("Glob", "FAILED: {} does not exist"),
        ("Grep", "FAILED: {} does not exist"),
    ],
)
def test_a_path_of_almost_2000_folders_is_a_path(name: str, said: str, project: Path) -> None:
    depth = (4000 - len(f"{project}/b")) // 2  # the system takes 4,095 bytes
    path = f"{project}/{'a/' * depth}b"
    assert use(name, path, project) == said.format(path)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("path", [DEEP + "b" * 200, DEEP * 100], ids=["1990 folders", "199000 folders"])
def test_a_path_that_is_too_long_is_a_failed_call(name: str, path: str, project: Path) -> None:
    full = truncate(f"{project}/{path}".rstrip("/"), 4096)
    assert use(name, path, project) == f"FAILED: {full} cannot be used: File name too long"
    assert os.listdir(project) == []


def test_a_turn_ends_in_the_usual_way_after_such_calls(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    chain(project, "chain")
    paths = ("/proc/1/exe", "/proc/2/exe", "chain", DEEP * 100)
    calls = [{"name": "Read", "input": {"file_path": path}} for path in paths]
    code, out, err = turngate(capfd, project, "go", replies=({"tools": calls}, "done"))
    assert (code, out, "internal error" in err) == (0, "done\n", False)


# Settings


def link_to(target: str) -> Callable[[str], Callable[[Path], None]]:
    def named(name: str) -> Callable[[Path], None]:
        def make(project: Path) -> None:
            path = project / name
            path.parent.mkdir(exist_ok=True)
            path.symlink_to(target)

        return make

    return named


def long_chain(name: str) -> Callable[[Path], None]:
    def make(project: Path) -> None:
        chain(project, "chain")
        path = project / name
        path.parent.mkdir(exist_ok=True)
        path.symlink_to(project / "chain")

    return make


HOSTILE = {
    f"{name} is {kind}": make(name)
    for name in (
        ".turngate",
        ".claude",
        ".mux",
        ".turngate/settings.json",
        ".turngate/settings.yaml",
        ".turngate/stop",
        ".turngate/agents",
        "AGENTS.md",
        "CLAUDE.md",
        "settings.json",
        ".git",
    )
    for kind, make in (
        ("a link into /proc", link_to("/proc/2/exe")),  # of a thread of the kernel: it cannot be read
        ("a link to nothing", link_to("gone")),
        ("a chain of links", long_chain),
    )
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_no_link_in_a_project_makes_a_command_fail_by_an_exception(
    hostile: str, project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    HOSTILE[hostile](project)
    monkeypatch.chdir(project)
    model = scripted(project, "done")
    codes = {
        "check": main(["check"]),
        "fire": main(["fire", "Stop"]),
        "doctor": main(["doctor", "--prove"]),
        "run": main(["run", "-p", "go", "--model", model]),
    }
    assert ({name: code for name, code in codes.items() if code not in (0, 1, 13)}, errors(capfd)) == ({}, [])


def errors(capfd: pytest.CaptureFixture[str]) -> list[str]:
    return [line for line in capfd.readouterr().err.splitlines() if "internal error" in line]


@pytest.mark.parametrize(
    ("hostile", "said"),
    [
        (
            ".turngate is a link to nothing",
            "is a link to a folder that does not exist; no settings are read from it",
        ),
        (".turngate is a chain of links", f"is a link that {LOOP_OF_SETTINGS}; none of its hooks run"),
        (
            ".turngate/settings.json is a chain of links",
            f"is a link that {LOOP_OF_SETTINGS}; none of its hooks run",
        ),
        (
            ".turngate/settings.json is a link to nothing",
            "is a link to a file that does not exist; none of its hooks run",
        ),
    ],
)
def test_settings_behind_a_link_that_leads_nowhere_are_a_problem(
    hostile: str, said: str, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    HOSTILE[hostile](project)
    assert main(["check", "--project", str(project), "--json"]) == 1
    problems = json.loads(capfd.readouterr().out)["problems"]
    assert said in [problem["message"] for problem in problems]
    assert {problem["severity"] for problem in problems} == {"error"}


def test_check_does_not_wait_for_a_pipe_when_it_looks_for_the_name_of_a_plugin(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / ".turngate").mkdir()
    (project / ".turngate" / "settings.json").write_text('{"turngate": {"plugins": ["slack"]}}')
    os.mkfifo(project / ".turngate" / "settings.local.json")
    assert main(["check", "--project", str(project), "--json"]) == 1
    problems = json.loads(capfd.readouterr().out)["problems"]
    assert sorted((problem["file"], problem["message"]) for problem in problems) == [
        (
            ".turngate/settings.json",
            "enables the plugin 'slack', which is not installed, so `turngate run` does not start",
        ),
        (".turngate/settings.local.json", "is not a regular file; none of its hooks run"),
    ]


@pytest.mark.parametrize("path", ["a\0b", "a\ud800"])
def test_a_path_that_no_file_can_have_is_a_usage_error(path: str, project: Path) -> None:
    with pytest.raises(UsageError) as raised:
        load_settings(str(project), extra=path)
    assert str(raised.value) == f"--settings {path}: cannot be read: Invalid argument"


@pytest.mark.parametrize("name", ["AGENTS.md", "CLAUDE.md"])
def test_a_guide_that_is_a_link_in_the_project_is_read(name: str, project: Path) -> None:
    (project / "docs").mkdir()
    (project / "docs" / "guide.md").write_text("be kind")
    (project / name).symlink_to("docs/guide.md")
    assert "".join(read_guides(str(project), LOCAL)) == f"The project's {name}:\nbe kind"
