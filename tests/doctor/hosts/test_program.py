"""Which version of a host is installed."""

import json
from pathlib import Path

import pytest

from turngate.doctor.diagnosis import Fact
from turngate.doctor.hosts.diagnosis import inspect_program
from turngate.hosts.all_hosts import CODEX, HOSTS


def add_npm_program(folder: Path, name: str, version: str) -> str:
    """Install a program as npm does, and return PATH. It must not be started."""
    package = folder / "node_modules" / name
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"version": version, "bin": {name: "bin/run.js"}}))
    program = package / "bin" / "run.js"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    (folder / "bin").mkdir()
    (folder / "bin" / name).symlink_to(program)
    return str(folder / "bin")


@pytest.mark.parametrize(
    ("version", "fact"),
    [
        ("0.166.0", Fact("Codex", "0.166.0, the version that Turngate was run with")),
        ("0.170.1", Fact("Codex", "0.170.1; Turngate was run with 0.166.0")),
        (
            "0.99.0",
            Fact(
                "Codex",
                "0.99.0 is older than 0.166.0, which Turngate was run with",
                hint="update it: older versions may treat hooks differently",
            ),
        ),
    ],
)
def test_the_version_of_a_host_is_compared(version: str, fact: Fact, tmp_path: Path) -> None:
    assert inspect_program(CODEX, add_npm_program(tmp_path, "codex", version)) == fact


def test_a_program_that_is_not_from_npm_is_asked(tmp_path: Path) -> None:
    program = tmp_path / "droid"
    program.write_text("#!/bin/sh\necho droid 1.2.3\n")
    program.chmod(0o755)
    text = "1.2.3; Turngate knows it from its documentation only"
    assert inspect_program(HOSTS["droid"], str(tmp_path)) == Fact("Factory droid", text)
    program.write_text("#!/bin/sh\nexit 1\n")
    text = f"{program}, its version could not be determined"
    assert inspect_program(HOSTS["droid"], str(tmp_path)) == Fact("Factory droid", text)


def test_a_program_that_is_not_there_is_no_problem(tmp_path: Path) -> None:
    hint = "the rest applies once it is installed"
    assert inspect_program(CODEX, str(tmp_path)) == Fact("Codex", "`codex` is not on PATH", hint=hint)
