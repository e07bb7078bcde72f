"""`turngate fire` in unusual surroundings: ignored signals, no stdin, no folder, no JSON."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.timeouts import HANG_TIMEOUT_S

FIRE = f"{sys.executable} -m turngate fire Stop --trust"


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + HANG_TIMEOUT_S
    while not (path.exists() and path.read_text().strip()):
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.02)


def signalled(project: Path, number: signal.Signals, before: str = "") -> int:
    with subprocess.Popen(
        ["/bin/sh", "-c", f"{before} exec {FIRE}"],
        cwd=project,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        wait_for(project / "pid")
        process.send_signal(number)
        return process.wait(timeout=HANG_TIMEOUT_S)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGQUIT])
def test_a_signal_that_our_caller_ignores_is_ignored(project: Path, number: signal.Signals) -> None:
    write_settings(project, "turngate", stop_hooks("echo $$ > pid; sleep 0.5; echo no >&2; exit 2"))
    assert signalled(project, number, f"trap '' {number.name[3:]};") == 10


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_that_asks_us_to_go_ends_the_hook_first(project: Path, number: signal.Signals) -> None:
    write_settings(project, "turngate", stop_hooks("echo $$ > pid; exec sleep 60"))
    assert signalled(project, number) == 128 + number
    assert not os.path.exists(f"/proc/{(project / 'pid').read_text().strip()}")


@pytest.mark.parametrize(
    "line",
    [
        f"{FIRE} --input - <&-",
        f"mkdir gone; cd gone; rmdir ../gone; {FIRE}",
        f"""echo '{{"duration_ms": NaN}}' | {FIRE} --input -""",
        f"""echo '{{"usage": {{"n": -Infinity}}}}' | {FIRE} --input -""",
    ],
)
def test_what_the_caller_got_wrong_is_a_matter_of_usage(project: Path, line: str) -> None:
    done = subprocess.run(["/bin/sh", "-c", line], cwd=project, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (64, "", 1)
