"""The gates `tests`, `lint`, `types` and `build`, as a process on this machine, and over SSH."""

import json
from pathlib import Path

import pytest

from tests.gates.cases.project_checks import FAILING_TEST, PASSING_TEST
from tests.support.gates import (
    answer_of_process,
    claude_input,
)
from tests.support.git_projects import write


def test_a_failing_test_is_named(project: Path) -> None:
    write(project, {"test_shop.py": FAILING_TEST})
    code, answer, err = answer_of_process(("tests",), claude_input(project))
    reason = answer["reason"]
    assert (code, err, answer["decision"]) == (0, "", "block")
    assert reason.startswith("`python3 -m unittest`: exit code 1\n")
    assert "FAIL: test_price (test_shop.Test" in reason
    assert "AssertionError: 1 != 2" in reason


@pytest.mark.parametrize(
    ("npm", "answer"),
    [
        ("exit 0", {}),
        (
            "echo FAIL src/shop.test.js; exit 1",
            {"decision": "block", "reason": "`npm test`: exit code 1\nFAIL src/shop.test.js"},
        ),
    ],
)
def test_each_part_of_a_project_is_checked(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, npm: str, answer: dict[str, str]
) -> None:
    programs = tmp_path / "programs"
    write(tmp_path, {"programs/npm": f"#!/bin/sh\n{npm}\n"})
    (programs / "npm").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    package = json.dumps({"scripts": {"test": "jest"}})
    write(project, {"package.json": package, "test_shop.py": PASSING_TEST})
    assert answer_of_process(("tests",), claude_input(project)) == (0, answer, "")
