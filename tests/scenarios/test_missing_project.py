"""A project folder that does not exist is named; it is not a project without hooks."""

from collections.abc import Callable
from pathlib import Path

import pytest

from turngate import ScriptedModel, Session, load_settings
from turngate.errors import UsageError

START: dict[str, Callable[[str], object]] = {
    "load_settings": load_settings,
    "Session": lambda folder: Session(folder, ScriptedModel({"main": ["done"]})),
    "Session with settings": lambda folder: Session(
        folder, ScriptedModel({"main": ["done"]}), load_settings("/")
    ),
}


@pytest.mark.parametrize("start", START.values(), ids=START)
def test_a_folder_that_does_not_exist_is_an_error(tmp_path: Path, start: Callable[[str], object]) -> None:
    folder = tmp_path / "nonexist"
    with pytest.raises(UsageError) as raised:
        start(str(folder))
    assert str(raised.value) == (
        f"there is no folder {folder}; expected the project's folder, which holds .turngate, .mux or .claude"
    )


@pytest.mark.parametrize("start", START.values(), ids=START)
def test_a_file_in_place_of_the_folder_is_an_error(tmp_path: Path, start: Callable[[str], object]) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")
    with pytest.raises(UsageError) as raised:
        start(str(file))
    assert str(raised.value) == (
        f"{file} is not a folder; expected the project's folder, which holds .turngate, .mux or .claude"
    )


def test_a_relative_folder_is_named_as_it_was_given() -> None:
    with pytest.raises(UsageError, match=r"^there is no folder no/such; expected"):
        load_settings("no/such")
