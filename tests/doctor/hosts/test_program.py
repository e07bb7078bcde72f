"""Which version of a host is installed, and whether Codex would trust a hook."""

import json
from pathlib import Path

import pytest

from turngate.doctor.environment import Fact
from turngate.doctor.hosts.files import HostFile, HostHook
from turngate.doctor.hosts.program import inspect_program
from turngate.doctor.hosts.trust import codex_hash, codex_key
from turngate.hosts.all_hosts import HOSTS
from turngate.hosts.codex import CODEX


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
                hint="update it: older versions may treat hooks in another way",
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
    text = f"{program}, its version cannot be found out"
    assert inspect_program(HOSTS["droid"], str(tmp_path)) == Fact("Factory droid", text)


def test_a_program_that_is_not_there_is_no_problem(tmp_path: Path) -> None:
    hint = "the rest holds once it is installed"
    assert inspect_program(CODEX, str(tmp_path)) == Fact("Codex", "`codex` is not on PATH", hint=hint)


@pytest.mark.parametrize(
    ("entry", "digest"),
    [
        ({}, "sha256:2ba34c7a02841fada06b868a093d041fd3d9de81883c789a321916b0aa118851"),
        ({"timeout": 5}, "sha256:99551a51b888f6dc725f1199663b7b1e1ef9bb9b9cab0612d84e5e9218aca6f5"),
    ],
)
def test_the_digest_of_a_hook_is_that_of_codex(entry: dict[str, int], digest: str) -> None:
    """As `hooks/list` of the app server of Codex 0.166.0 has reported it."""
    file = HostFile("/home/user/.codex/hooks.json", "~/.codex/hooks.json", CODEX, "user", {})
    hook = HostHook(file, "Stop", (0, 1), {"type": "command", "command": "true", **entry})
    assert codex_hash(hook) == digest
    assert codex_key(hook, file.path) == "/home/user/.codex/hooks.json:stop:0:1"
