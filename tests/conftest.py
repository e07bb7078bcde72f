"""What every test may use. No test reads the settings or writes to the state of whoever runs it."""

import os
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("TURNGATE_STATE", str(home / "state"))
    monkeypatch.delenv("CLAUDE_CODE_STOP_HOOK_BLOCK_CAP", raising=False)
    monkeypatch.delenv("TURNGATE_IN_HOOK", raising=False)  # `make test` is a stop hook of ours


@pytest.fixture
def home() -> Path:
    return Path(os.environ["HOME"])


@pytest.fixture
def state() -> Path:
    return Path(os.environ["TURNGATE_STATE"])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder
