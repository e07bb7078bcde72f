"""`turngate run -p` and hooks in the background: those with `asyncRewake` are waited for and continue the turn."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.scripted_run import as_json, running, turngate
from tests.support.sessions import hang, survives, wait_for_file_sync
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.main import main

WAKING: dict[str, Any] = {"async": True, "asyncRewake": True}
BLOCK_ONCE = "mkdir once || exit 0; sleep 0.7; echo two tests fail >&2; exit 2"
BLOCK = "echo no >&2; exit 2"
BASH = {"tool": "Bash", "input": {"command": "true"}}


@pytest.mark.parametrize("event", ["Stop", "PostToolUse"])
def test_a_hook_in_the_background_that_blocks_while_the_turn_ends_continues_it(
    project: Path, capfd: pytest.CaptureFixture[str], event: str
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCK_ONCE, event=event, id="tests", **WAKING))
    result = as_json(capfd, project, "go", "--allow", "Bash", replies=(BASH, "done", "fixed"))
    assert (result["outcome"], result["result"], result["continuations"], result["notices"]) == (
        "completed",
        "fixed",
        1,
        ['hook "tests" in the background wakes the agent'],
    )


def test_the_log_has_the_time_and_the_block_of_a_hook_in_the_background(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCK_ONCE, id="tests", **WAKING))
    turngate(capfd, project, "go")
    assert main(["log", "--json"]) == 0
    records = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    first, later = (next(each for each in records if each["kind"] == kind) for kind in ("hook", "background"))
    assert (first["reason"], later["outcome"], later["reason"], later["seconds"] >= 0.7) == (
        "started in the background: exit code 2 wakes the agent",
        "block",
        "two tests fail",
        True,
    )


def test_a_hook_in_the_background_that_always_blocks_caps_the_turn(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCK, id="tests", **WAKING))
    code, out, err = turngate(capfd, project, "go", "--limit", "2")
    wakes = '! hook "tests" in the background wakes the agent\n'
    assert (code, out, err) == (
        10,
        "answer 3\n",
        (
            f'{wakes}{wakes}! hook "tests" in the background does not wake the agent: 2 continuations are the limit\n'
            '! Turn ended after 2 continuations (the limit). Still blocked by: "tests".\n'
            "  → the last reason: no\n"
        ),
    )


@pytest.mark.parametrize(("words", "code"), [((), 0), (("--strict",), 13)])
def test_a_hook_in_the_background_that_times_out_is_named_and_not_enforced(
    project: Path, capfd: pytest.CaptureFixture[str], words: tuple[str, ...], code: int
) -> None:
    write_settings(project, "turngate", stop_hooks(hang(), id="tests", timeout=1, **WAKING))
    ended, out, _ = turngate(capfd, project, "go", "--output-format", "json", *words)
    result = json.loads(out)
    assert (ended, result["notices"], [each["hook"] for each in result["unenforced"]]) == (
        code,
        ['hook "tests" timed out after 1 s and was NOT enforced'],
        ["tests"],
    )


def test_an_interrupt_ends_the_wait_for_a_hook_in_the_background(project: Path) -> None:
    write_settings(project, "turngate", stop_hooks(f"trap '' TERM; {hang()}", id="tests", **WAKING))
    with running(project, "--output-format", "json", replies=("done",)) as process:
        pid = wait_for_file_sync(project / "pid")
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=HANG_TIMEOUT_S)
    result = json.loads(out)
    assert (process.returncode, result["outcome"], result["notices"], survives(pid)) == (
        130,
        "interrupted",
        ['background hooks killed because they were still running: "tests"'],
        False,
    )


def test_in_the_claude_dialect_a_block_after_the_turn_is_named_and_wakes_no_agent(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "claude", stop_hooks(BLOCK_ONCE, id="tests", **WAKING))
    assert turngate(capfd, project, "go", "--dialect", "claude") == (
        0,
        "answer 1\n",
        '! hook "tests" in the background blocked after the last turn, and wakes no agent: two tests fail\n',
    )
