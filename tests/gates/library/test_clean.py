"""The gate `clean`, as a process on this machine, and over SSH."""

import json
from pathlib import Path

import pytest

from tests.support.cli import turngate
from tests.support.gates import (
    answer_with_shell,
    claude_input,
    could_not_run,
)
from tests.support.git_projects import make_repository, write


def test_a_gate_of_the_settings_records_the_start_of_the_session(project: Path) -> None:
    make_repository(project, {"a.txt": "1"})
    gate = {"type": "gate", "gate": "clean"}
    write(
        project,
        {
            "a.txt": "of the user",
            ".turngate/settings.json": json.dumps({"hooks": {"Stop": [{"hooks": [gate]}]}}),
        },
    )

    def fire(event: str) -> int:
        fields = {"session_id": "s1", "cwd": str(project), "hook_event_name": event, "source": "startup"}
        return turngate("fire", event, "--project", str(project), "--input", json.dumps(fields))[0]

    codes = [fire("SessionStart"), fire("Stop")]
    write(project, {"a.txt": "of the agent"})
    assert [*codes, fire("Stop")] == [0, 0, 10]


def test_a_missing_git_is_not_taken_for_a_missing_repository(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "no programs"))
    why = "the state of the git repository cannot be read: git was not found"
    assert answer_with_shell(("clean",), claude_input(project), project) == could_not_run("clean", why)
