"""Two commands in two projects at the same time, with one state folder between them."""

import json
import signal
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.cli import start_in_project
from tests.support.sessions import block_first, hang, is_running, survives, wait_for_file_sync
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import Program


def held(project: Path, hook: str) -> AbstractContextManager[Program]:
    """`turngate run -p` under this stop hook."""
    project.mkdir()
    write_settings(project, "turngate", stop_hooks(hook))
    script = project / "script.json"
    script.write_text(json.dumps({"main": ["answer {n}"]}))
    return start_in_project(
        project, "run", "-p", "go", "--model", f"scripted:{script}", "--output-format", "json"
    )


@pytest.mark.req("S0-103")
def test_a_command_whose_hook_hangs_does_not_hold_up_another_command(tmp_path: Path) -> None:
    with held(tmp_path / "one", hang()) as stuck:
        pid = wait_for_file_sync(tmp_path / "one" / "pid")
        with held(tmp_path / "two", block_first(2)) as free:
            out, err = free.communicate(timeout=HANG_TIMEOUT_S)
        result = json.loads(out)
        assert (free.returncode, err, result["outcome"], result["result"], result["continuations"]) == (
            0,
            "",
            "completed",
            "answer 3",
            2,
        )
        assert (stuck.poll(), is_running(pid)) == (None, True)
        stuck.send_signal(signal.SIGTERM)
        out, err = stuck.communicate(timeout=HANG_TIMEOUT_S)
    assert (stuck.returncode, err, json.loads(out)["outcome"], survives(pid)) == (
        143,
        "",
        "interrupted",
        False,
    )
