"""`turngate run -p` with a model that replays a script."""

import json
import os
import select
import subprocess
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import start_in_project
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import Program
from turngate.cli.main import main


def scripted(project: Path, *replies: Any) -> str:
    """Write a script with these replies and return the name of its model."""
    path = project.parent / "script.json"
    path.write_text(json.dumps({"main": list(replies)}))
    return f"scripted:{path}"


def turngate(
    capfd: pytest.CaptureFixture[str], project: Path, *words: str, replies: tuple[Any, ...] = ("answer {n}",)
) -> tuple[int, str, str]:
    """Run the command in this process and return its exit code, stdout and stderr."""
    code = main(["run", "-p", "--project", str(project), "--model", scripted(project, *replies), *words])
    out, err = capfd.readouterr()
    return code, out, err


def as_json(
    capfd: pytest.CaptureFixture[str], project: Path, *words: str, replies: tuple[Any, ...] = ("answer {n}",)
) -> dict[str, Any]:
    """Run the command with JSON output and return its result."""
    _, out, _ = turngate(capfd, project, *words, "--output-format", "json", replies=replies)
    result = json.loads(out)
    assert isinstance(result, dict)
    return result


def running(project: Path, *words: str, replies: tuple[Any, ...]) -> AbstractContextManager[Program]:
    """Start the command as a process of its own."""
    return start_in_project(project, "run", "-p", "go", "--model", scripted(project, *replies), *words)


def next_line(process: "subprocess.Popen[bytes]") -> bytes:
    """Return the next line that it prints, or what came of it before the time is up."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        if not select.select([process.stdout], [], [], HANG_TIMEOUT_S)[0]:
            break
        line += os.read(process.stdout.fileno(), 1)
    return line
