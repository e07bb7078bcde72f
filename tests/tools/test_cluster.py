"""`make cluster` and `make chaos STORE=postgres`, small."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.servers.postgres import find_postgres
from tests.support.timeouts import HANG_TIMEOUT_S

pytestmark = pytest.mark.skipif(
    find_postgres() is None, reason="PostgreSQL is not installed: `apt-get install postgresql`"
)
ROOT = Path(__file__).parent.parent.parent


def test_the_cluster_ends_by_itself() -> None:
    command = [sys.executable, "-m", "tools.cluster"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=HANG_TIMEOUT_S, check=False
    )
    last = done.stdout.splitlines()[-1]
    assert (done.returncode, last) == (0, "the parent ended with 0, the workers with [0, 0, 0]"), done.stderr


def test_no_result_is_lost_or_announced_twice_while_workers_and_their_server_are_killed() -> None:
    command = [sys.executable, "-m", "bench.chaos", "--store", "postgres", "--runs", "40", "--batch", "40"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=2 * HANG_TIMEOUT_S, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
