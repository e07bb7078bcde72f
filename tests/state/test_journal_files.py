"""The journal on disk: several writers, a full disk, files that are not regular files."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.scripted_run import running
from tests.support.sessions import hang, lines
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.state import journal as journal_module
from turngate.state.journal import Journal

SLOW_END: dict[str, Any] = stop_hooks(hang(), event="SessionEnd")


def numbers(*paths: Path) -> list[int]:
    return [json.loads(line)["number"] for path in paths for line in lines(path)]


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo, lambda path: path.symlink_to("/dev/full")])
def test_a_journal_that_is_no_plain_file_is_a_fault_and_stops_nothing(
    project: Path, state: Path, make: Callable[[Path], Any]
) -> None:
    folder = state / "sessions" / "s"
    folder.mkdir(parents=True)
    make(folder / "journal.jsonl")
    write_settings(project, "turngate", stop_hooks("true"))
    with running(project, "--session", "s", replies=("done",)) as process:
        out, err = process.communicate(timeout=HANG_TIMEOUT_S)
    said = f"! the journal could not be written ({folder}/journal.jsonl: "
    assert (process.returncode, out, err[: len(said)], err.count("\n")) == (0, "done\n", said, 1)


WRITE_MUCH = """
import sys
from turngate.state import journal
journal.MAX_JOURNAL_BYTES = 40_000
kept = journal.Journal(sys.argv[1])
for number in range(300):
    kept.record("s", {"number": int(sys.argv[2]) + number})
kept.close()
assert kept.fault is None, kept.fault
"""


def test_processes_that_fill_one_journal_together_put_it_aside_once(state: Path) -> None:
    words = [sys.executable, "-c", WRITE_MUCH, str(state)]
    writers = [subprocess.Popen([*words, str(start)]) for start in (0, 1000, 2000)]
    assert [writer.wait(timeout=HANG_TIMEOUT_S) for writer in writers] == [0, 0, 0]
    folder = state / "sessions" / "s"
    found = numbers(folder / "journal.1.jsonl", folder / "journal.jsonl")
    expected = [start + number for start in (0, 1000, 2000) for number in range(300)]
    assert (sorted(found), len(list(folder.iterdir()))) == (expected, 2)


def test_a_process_that_is_stopped_while_it_writes_blocks_no_other(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "LOCK_TIMEOUT_S", 0.1)
    folder = state / "sessions" / "s"
    folder.mkdir(parents=True)
    with (folder / "journal.jsonl").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        journal = Journal(str(state))
        journal.record("s", {"number": 1})
        journal.close()
    assert (numbers(folder / "journal.jsonl"), journal.fault) == ([1], None)


FILL = """
import resource, sys
from turngate.state.journal import Journal
kept = Journal(sys.argv[1])
kept.record("s", {"number": 1})
kept.close()
resource.setrlimit(resource.RLIMIT_FSIZE, (150, resource.RLIM_INFINITY))
kept.record("s", {"number": 2, "long": "x" * 200})
kept.close()
print(kept.fault)
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
kept.record("s", {"number": 3})
kept.close()
"""


def test_a_full_disk_is_a_fault_and_the_next_line_stands_alone(state: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILL, str(state)], capture_output=True, text=True, check=True
    )
    first, half, third = lines(state / "sessions" / "s" / "journal.jsonl")
    assert [json.loads(line)["number"] for line in (first, third)] == [1, 3]
    assert (len(first) + 1 + len(half), "File too large" in done.stdout) == (150, True)


@pytest.mark.parametrize("session", [5, None, b"x", ("a",)])
def test_an_id_that_is_no_text_does_not_end_the_writer(state: Path, session: Any) -> None:
    journal = Journal(str(state))
    journal.record(session, {"number": 1})
    journal.record("s", {("a", "b"): "no key of JSON's"})  # type: ignore[dict-item]
    journal.record("s", {"number": 2})
    journal.close()
    found = numbers(*sorted((state / "sessions").glob("*/journal.jsonl")))
    assert (sorted(found), "keys must be str" in str(journal.fault)) == ([1, 2], True)
