import os
import platform
from importlib.metadata import version
from pathlib import Path

import pytest

from turngate.doctor.diagnosis import Fact, inspect_turngate
from turngate.state.paths import REGISTRY_FILE
from turngate.subagents.registry import Registry

NO_KEY = "none is set; `turngate run` and hooks that ask a model need one, or ollama"


def test_before_the_first_run_there_is_no_state(state: Path) -> None:
    assert inspect_turngate(str(state), {}) == (
        Fact("turngate", f"{version('turngate')}, Python {platform.python_version()}"),
        Fact("state folder", f"{state}, not there yet"),
        Fact("registry", "not there yet: no subagent has been started"),
        Fact("model key", NO_KEY),
    )
    assert not state.exists()


def test_the_state_folder_and_the_registry_are_tried(state: Path) -> None:
    Registry(str(state)).close()
    _, folder, registry, _ = inspect_turngate(str(state), {})
    assert (folder, registry) == (
        Fact("state folder", f"{state}, writable"),
        Fact("registry", "readable, 0 runs of subagents"),
    )
    assert [name for name in os.listdir(state) if name.startswith(".turngate")] == []


def test_a_state_folder_that_cannot_be_written_is_a_problem(state: Path) -> None:
    state.write_text("a file")
    assert inspect_turngate(str(state), {})[1] == Fact(
        "state folder",
        f"{state} cannot be written (Not a directory): there is no journal, and nothing can be approved",
        is_problem=True,
        hint="repair it, or set TURNGATE_STATE to another folder",
    )


@pytest.mark.parametrize(
    ("content", "why"),
    [(b"not a database at all" * 100, "file is not a database"), (b"", "no such table: runs")],
)
def test_a_registry_that_cannot_be_read_is_a_problem_and_stays_as_it_is(
    content: bytes, why: str, state: Path
) -> None:
    state.mkdir()
    path = state / REGISTRY_FILE
    path.write_bytes(content)
    assert inspect_turngate(str(state), {})[2] == Fact(
        "registry",
        f"{path} cannot be used ({why}): no subagent can be started",
        is_problem=True,
        hint="move it away, or set TURNGATE_STATE to another folder",
    )
    assert path.read_bytes() == content


def test_a_folder_in_place_of_the_registry_is_a_problem(state: Path) -> None:
    (state / REGISTRY_FILE).mkdir(parents=True)
    assert inspect_turngate(str(state), {})[2].text == (
        f"{state / REGISTRY_FILE} cannot be used (Is a directory): no subagent can be started"
    )


def test_keys_of_models_are_named_and_never_shown(state: Path) -> None:
    keys = {"OPENAI_API_KEY": "sk-secret", "ANTHROPIC_API_KEY": "sk-ant-secret", "GROQ_API_KEY": ""}
    assert inspect_turngate(str(state), keys)[3] == Fact(
        "model key", "ANTHROPIC_API_KEY, OPENAI_API_KEY are set"
    )
