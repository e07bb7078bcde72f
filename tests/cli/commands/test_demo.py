"""`turngate demo` from a fresh clone: it works, shows one blocked stop, and leaves nothing behind."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import start_turngate, turngate
from tests.support.paths import ROOT
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.commands import demo

PROGRAM = ROOT / ".venv" / "bin" / "turngate"


STORY = [
    "The user asks: Write prices.py with total(prices, discount).",
    "I will write the function.",
    "tool Write prices.py ok",
    "Done: prices.py has total(prices, discount).",
    'the agent wants to stop; Stop hook "tests" … blocked (N s)',
    "Sent to the agent:",
    "[Stop hook requested continuation]",
    "AssertionError: 160 != 140",
    "The test is right: a discount is taken off, not added.",
    "tool Edit prices.py ok",
    "Done: the discount is subtracted now, and the test passes.",
    'the agent wants to stop; Stop hook "tests" … passed (N s)',
    "Turn completed: 4 model requests, 2 tool calls, 1 continuation, N s.",
    "The model was scripted; the tools, the test and the hook were real.",
]


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder in which the demo makes its temporary folder."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    return folder


def story(printed: str) -> list[str]:
    """Return the lines of the story in order, without durations."""
    steady = [re.sub(r"\d+\.\d s\b", "N s", line.strip()) for line in printed.splitlines()]
    return [line for line in steady if line in STORY]


def left(*folders: Path) -> list[str]:
    return sorted(str(path) for folder in folders for path in folder.rglob("*"))


def test_the_demo_is_blocked_once_fixes_its_work_and_completes(scratch: Path) -> None:
    code, out, err = turngate("demo")
    assert (code, err, story(out)) == (0, "", STORY)


def test_the_demo_completes_where_python_keeps_bytecode(
    scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE")
    code, out, err = turngate("demo")
    assert (code, err, story(out)) == (0, "", STORY)
    # With the same size, the result would depend on the second in which each file is written.
    assert len(demo.ADDED) != len(demo.SUBTRACTED)


def test_the_demo_leaves_neither_its_folder_nor_a_session_behind(scratch: Path, home: Path) -> None:
    _, out, _ = turngate("demo")
    [project] = re.findall(r"^A project in (\S+) has", out, re.MULTILINE)
    assert (Path(project).is_relative_to(scratch), left(scratch, home)) == (True, [])


def test_the_demo_runs_no_hooks_of_the_user(scratch: Path, home: Path) -> None:
    for family in ("turngate", "claude", "mux"):
        (home / f".{family}").mkdir()
        (home / f".{family}" / "settings.json").write_text(
            '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch ~/asked; exit 2"}]}]}}'
        )
    code, out, _ = turngate("demo")
    assert (code, story(out), (home / "asked").exists()) == (0, STORY, False)


@pytest.mark.skipif(
    not PROGRAM.exists(), reason="make demo runs what is installed in .venv, and there is none"
)
def test_make_demo_runs_turngate_demo(scratch: Path) -> None:
    # -o: what is installed stays as it is, also when pyproject.toml is newer.
    make = ["make", "-C", str(ROOT), "--no-print-directory", "-o", ".venv/installed", "demo"]
    says = subprocess.run([*make, "-n"], capture_output=True, text=True, check=False)
    done = subprocess.run(make, capture_output=True, text=True, check=False)
    assert (says.returncode, says.stdout) == (0, ".venv/bin/turngate demo\n")
    assert (done.returncode, done.stderr, story(done.stdout), left(scratch)) == (0, "", STORY, [])


def ended_at(moment: str, number: int) -> tuple[int, bool, bool]:
    """Send a signal when this is printed; return the exit code, whether there is a traceback, and whether it completed."""
    with start_turngate("demo", own_session=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if moment in line:
                break
        os.kill(process.pid, number)
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    return process.wait(), "Traceback" in err, "Turn completed" in out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize("moment", ["The user asks", "tool Write", "Sent to the agent:"])
def test_a_demo_that_is_ended_by_a_signal_leaves_nothing_behind(
    scratch: Path, moment: str, number: int, code: int
) -> None:
    assert (*ended_at(moment, number), left(scratch)) == (code, False, False, [])
