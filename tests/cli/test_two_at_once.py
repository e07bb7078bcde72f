"""Two commands in two projects at the same time, with one state folder between them."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.agent.make import awaited, end_leftovers, hang, lives, refuse
from tests.make import stop_hooks, write_settings

PATIENCE = 40.0  # seconds; only against a test that hangs


@contextmanager
def working(project: Path, hook: str) -> Iterator[subprocess.Popen[str]]:
    """`turngate run -p` under this stop hook."""
    project.mkdir()
    write_settings(project, "turngate", stop_hooks(hook))
    script = project / "script.json"
    script.write_text(json.dumps({"main": ["answer {n}"]}))
    process = subprocess.Popen(
        [sys.executable, "-m", "turngate", "run", "-p", "go", "--model", f"scripted:{script}",
         "--project", str(project), "--output-format", "json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()
        end_leftovers(project)


@pytest.mark.req("S0-103")
def test_a_command_whose_hook_hangs_does_not_hold_up_another_command(tmp_path: Path) -> None:
    with working(tmp_path / "one", hang()) as stuck:
        pid = awaited(tmp_path / "one" / "pid")
        with working(tmp_path / "two", refuse(2)) as free:
            out, err = free.communicate(timeout=PATIENCE)
        result = json.loads(out)
        assert (free.returncode, err, result["outcome"], result["result"], result["continuations"]) == (
            0, "", "completed", "answer 3", 2,
        )  # fmt: skip
        assert (stuck.poll(), lives(pid)) == (None, True)
        stuck.terminate()
        out, err = stuck.communicate(timeout=PATIENCE)
    assert (stuck.returncode, err, json.loads(out)["outcome"], lives(pid)) == (143, "", "interrupted", False)
