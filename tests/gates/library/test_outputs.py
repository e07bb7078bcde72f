"""The gate `outputs`, as a process on this machine, and over SSH."""

import os
import time
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tests.gates.cases.outputs import blocked
from tests.support.gates import (
    answer_with_shell,
    claude_input,
)
from tests.support.git_projects import write, write_transcript


def test_the_clock_of_the_machine_with_the_project_counts(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = time.time() - 30 * 86400  # its clock is slow by a month
    write(tmp_path, {"programs/date": f"#!/bin/sh\necho {there:.0f}\n"})
    (tmp_path / "programs/date").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/programs:{os.environ['PATH']}")
    write_transcript(project, datetime.fromtimestamp(time.time() - 1000, UTC).isoformat())
    write(project, {"new.txt": "x", "old.txt": "x"})
    os.utime(project / "new.txt", (there - 500, there - 500))
    os.utime(project / "old.txt", (there - 2000, there - 2000))
    answers = [
        answer_with_shell(("outputs", name), claude_input(project), project)
        for name in ("new.txt", "old.txt")
    ]
    assert answers == [{}, blocked("old.txt is older than this session")]
