"""The state folder."""

from pathlib import Path

import pytest

from turngate.cli.main import main


@pytest.mark.parametrize("command", ["log", "sessions", "runs"])
def test_a_relative_state_folder_below_a_removed_folder_is_a_usage_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], command: str
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    monkeypatch.setenv("TURNGATE_STATE", "rel")
    said = (
        "turngate: TURNGATE_STATE is the relative path rel, but the current folder no longer exists; "
        "change to another folder, or set TURNGATE_STATE to an absolute path\n"
    )
    assert (main([command]), capfd.readouterr()) == (64, ("", said))
