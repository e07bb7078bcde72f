"""Local settings that git would commit."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from turngate.cli.main import main


def git(project: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(project), *words], check=True, capture_output=True)


def notes(
    project: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> tuple[int, list[tuple[str, str, str]]]:
    code = main(["check", "--project", str(project), "--json", *words])
    found = json.loads(capsys.readouterr().out)["problems"]
    return code, [(each["severity"], each["file"], each["hint"]) for each in found]


@pytest.mark.req("S0-11")
@pytest.mark.parametrize("family", ["mux", "turngate", "claude"])
def test_local_settings_that_git_does_not_ignore_are_noted_until_the_hint_is_followed(
    project: Path, capsys: pytest.CaptureFixture[str], family: str
) -> None:
    file = write_settings(project, family, stop_hooks("true"), "settings.local.json")
    write_settings(project, family, stop_hooks("true"))  # the shared settings belong into the repository
    assert notes(project, capsys) == (0, [])  # no repository
    git(project, "init")
    name = f".{family}/settings.local.json"
    hint = f"echo {name} >> .gitignore"
    assert notes(project, capsys) == (0, [("note", name, hint)])
    subprocess.run(hint, shell=True, cwd=project, check=True)
    assert notes(project, capsys) == (0, [])
    git(project, "check-ignore", str(file))


@pytest.mark.req("S0-11")
def test_local_settings_that_are_committed_are_noted_although_they_are_listed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "mux", stop_hooks("true"), "settings.local.json")
    (project / ".gitignore").write_text(".mux/settings.local.json\n")
    git(project, "init")
    git(project, "add", "--force", ".")
    assert [file for _, file, _ in notes(project, capsys)[1]] == [".mux/settings.local.json"]


def test_without_git_nothing_is_noted(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "mux", stop_hooks("/bin/true"), "settings.local.json")
    git(project, "init")
    monkeypatch.setenv("PATH", "/nonexistent")
    assert [file for severity, file, _ in notes(project, capsys)[1] if severity == "note"] == []


def test_check_runs_no_program_that_the_repository_configures(project: Path) -> None:
    """`core.fsmonitor` names a program that git starts when it reads its index."""
    monitor = script(project / "monitor", "#!/bin/sh\necho > started\n")
    write_settings(project, "turngate", {}, "settings.local.json")
    for words in (["init", "-q"], ["add", "monitor"], ["config", "core.fsmonitor", str(monitor)]):
        subprocess.run(["git", *words], cwd=project, check=True)
    assert main(["check", "--project", str(project)]) == 0
    assert not (project / "started").exists()


def test_check_runs_no_git_of_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tools such as direnv add a folder of the project to PATH."""
    git = script(project / "bin" / "git", "#!/bin/sh\necho > started\nexit 1\n")
    write_settings(project, "turngate", {}, "settings.local.json")
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    monkeypatch.setenv("PATH", f"{git.parent}:{os.environ['PATH']}")
    monkeypatch.chdir(project)
    assert main(["check"]) == 0
    assert not (project / "started").exists()


def test_check_runs_no_hook(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks("echo > started"))
    script(project / ".turngate" / "stop", "#!/bin/sh\necho > started\n")
    main(["check", "--project", str(project)])
    assert not (project / "started").exists()
