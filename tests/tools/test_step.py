"""`tools/step.sh`: what `make test` prints while it works."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.paths import ROOT
from tests.support.timeouts import HANG_TIMEOUT_S

STEP = ["/bin/sh", str(ROOT / "tools" / "step.sh")]


def test_a_step_says_what_it_does_before_it_is_done(tmp_path: Path) -> None:
    wait = 'while ! test -e "$0"; do sleep 0.05; done; echo 12 passed'
    command = [*STEP, "mypy", "types", "/bin/sh", "-c", wait, str(tmp_path / "go on")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.read(19) == b"mypy     types ... "
        (tmp_path / "go on").touch()
        rest, _ = process.communicate(timeout=HANG_TIMEOUT_S)
    assert re.fullmatch(rb"12 passed \(\d+ s\)\n", rest)


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("true", (0, "x        y ... ok (0 s)\n")),
        ("echo a; echo b", (0, "x        y ... b (0 s)\n")),
        ("echo SKIPPED no jq; echo b", (0, "x        y ... b (0 s)\n         skipped no jq\n")),
        ("echo a; echo b >&2; exit 3", (3, "x        y ... failed (0 s)\na\nb\n")),
    ],
)
def test_only_the_output_of_a_step_that_fails_is_shown(script: str, expected: tuple[int, str]) -> None:
    done = subprocess.run(
        [*STEP, "x", "y", "/bin/sh", "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, re.sub(r"\(\d+ s\)", "(0 s)", done.stdout)) == expected


def test_every_step_of_the_tests_says_what_it_does() -> None:
    done = subprocess.run(
        ["make", "-n", "test-all"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_TIMEOUT_S,
    )
    steps = re.findall(r"tools/step\.sh (\w+) '([^']+)'", done.stdout)
    assert [name for name, _ in steps] == ["ruff", "mypy", "imports", "tests", "slow"]
