"""`turngate status`: what one screen says about a project, from real settings, approvals and journals."""

import json
from pathlib import Path

import pytest

from tests.support.builders import script, stop_hooks, write_settings
from turngate.cli.main import main

NOBODY = "  none  no agent program is on PATH or runs Turngate"


@pytest.fixture(autouse=True)
def _in_project(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Start in the project, with approvals as users have them, and without agent programs on PATH."""
    script(tmp_path / "bin" / "turngate", "#!/bin/sh\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    monkeypatch.delenv("TURNGATE_TRUST")
    monkeypatch.chdir(project)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main([*words])
    return capsys.readouterr().out


def status(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    code = main(["status", *words])
    assert code == 0
    return capsys.readouterr().out.splitlines()


def test_a_project_without_anything_is_told_to_init(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(capsys) == [
        f"Project {project}",
        "Agent programs",
        NOBODY,
        "Gates",
        "  none  nothing is checked when an agent stops",
        "Next: `turngate init` writes gates for the checks of this project",
    ]


def test_each_step_leads_to_the_next_one(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("test -e done || { echo no >&2; exit 2; }", id="done"))
    assert status(capsys)[4:] == [
        "  done  waits for your approval (new)",
        "Next: `turngate hooks approve --all` shows what is not approved, and asks you",
    ]
    run(capsys, "hooks", "approve", "--all", "--yes")
    assert status(capsys)[4:] == [
        "  done  has not run yet",
        "Next: `turngate install HOST` lets an agent program run these gates",
    ]
    run(capsys, "install", "claude", "--yes")
    assert status(capsys)[1:] == [
        "Agent programs",
        "  Claude Code  runs Turngate (~/.claude/settings.json)",
        "Gates",
        "  done  has not run yet",
        "Next: `turngate fire Stop` runs the gates now, as if an agent had said that it is done",
    ]
    run(capsys, "fire", "Stop")
    [line, _] = status(capsys)[4:]
    assert line.startswith("  done  blocked 20")
    assert line.endswith("; never passed")
    (project / "done").touch()
    run(capsys, "fire", "Stop")
    [line, last] = status(capsys)[4:]
    assert (line[:17], last) == (
        "  done  passed 20",
        "Next: `turngate doctor --prove` shows that each gate blocks",
    )


def test_an_agent_program_on_path_without_the_line_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    script(tmp_path / "bin" / "codex", "#!/bin/sh\nexit 1\n")
    write_settings(project, "turngate", stop_hooks("true", id="ok"))
    run(capsys, "hooks", "approve", "--all", "--yes")
    assert status(capsys)[1:] == [
        "Agent programs",
        "  Codex  does not run Turngate; `turngate install codex`",
        "Gates",
        "  ok  has not run yet",
        "Next: `turngate install codex` lets an agent program run these gates",
    ]


def test_settings_of_an_agent_program_that_are_not_json_are_named(
    home: Path, capsys: pytest.CaptureFixture[str], project: Path
) -> None:
    write_settings(home, "claude", '{"hooks": ')
    assert status(capsys)[2].startswith(
        "  Claude Code  does NOT run Turngate here: ~/.claude/settings.json cannot be parsed: not JSON at line 1"
    )


def test_a_line_of_the_project_may_not_be_read_in_a_subfolder(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "turngate", stop_hooks("true", id="ok"))
    run(capsys, "install", "claude", "--project", "--yes")
    (project / "src").mkdir()
    monkeypatch.chdir(project / "src")
    assert status(capsys)[2] == (
        "  Claude Code  runs Turngate (.claude/settings.json): an agent that starts in this subfolder may not read it"
    )


def test_what_is_wrong_with_the_settings_comes_first(
    project: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "turngate", '{"hooks": ')
    monkeypatch.chdir(tmp_path)
    assert status(capsys, "--project", "project")[-3:] == [
        "Settings",
        "  problems  1 error; `turngate check --project project` lists them",
        "Next: `turngate check --project project` shows which settings do not work",
    ]


def test_a_hook_that_was_approved_and_is_gone_is_named(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("true", id="ok"))
    run(capsys, "hooks", "approve", "--all", "--yes")
    write_settings(project, "turngate", {})
    assert status(capsys)[-3:-1] == ["Other hooks", "  ok  was approved, but is no longer configured"]


def test_json_has_the_same(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true", id="ok"))
    assert json.loads(run(capsys, "status", "--json")) == {
        "project": str(project),
        "hosts": [],
        "gates": [{"key": "ok", "trust": "new", "last": None, "passed": None}],
        "pending": ["ok"],
        "goals": [],
        "gone": [],
        "problems": {},
        "next": "`turngate hooks approve --all` shows what is not approved, and asks you",
    }


def test_json_counts_the_problems(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", '{"hooks": ')
    assert json.loads(run(capsys, "status", "--json"))["problems"] == {"error": 1}
