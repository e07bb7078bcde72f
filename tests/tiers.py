"""Which tests are slow: `make test` leaves them out, `make test-all` runs them too.

The rules look at files, names, parameters and fixtures, so that a new test needs no mark. Whatever they say, each
requirement keeps one test in `make test`.
"""

import zlib
from collections.abc import Sequence
from fnmatch import fnmatchcase

import pytest

from tests.trace import marked

# Processes that are killed, terminals, whole workflows, large input, and libraries that take long to load.
SLOW = (
    "tests/agent/test_remote_*",
    "tests/cli/commands/run/*",
    "tests/cli/commands/test_run_usage.py*",
    "tests/cli/console/test_progress.py*",
    "tests/gates/test_hidden_changes.py*",
    "tests/scenarios/test_feature_workflow.py*",
    "tests/scenarios/test_hostile_*",
    "tests/scenarios/test_remote_*",
    "tests/scenarios/test_resume_after_kill.py*",
    "tests/scenarios/test_scarce_resources.py*",
    "tests/scenarios/test_ssh_faults.py*",
    "tests/scenarios/test_subagent_crash.py*",
    "tests/scenarios/test_two_processes.py*",
    "tests/shells/test_lost_connection.py*",
    "tests/shells/test_remote_*",
    "tests/test_docs.py::test_what_a_page_shows_is_what_happens[[]*",
    "tests/tools/test_bench.py*",
    "tests/tools/test_fuzz.py*",
    "tests/tools/test_hosts.py*",
    "tests/tools/test_mutants.py::test_the_runner*",
    "*bounded_*",
    "*megabytes*",
    "*[0-9] MB *",
    "*pydantic[-_]ai*",
)
OWN_SERVERS = {"own_server", "full_disk", "other_machine"}  # started or filled by one test
# Many cases of one mechanism. One in five stays, always the same one.
SAMPLED = ("tests/doctor/proof/*", "*_on_another_machine*")
SAMPLE = 5


def mark_slow(items: Sequence[pytest.Item]) -> None:
    slow = {item for item in items if is_slow(item)}
    shown = set[str]().union(*(marked(item) for item in items if item not in slow))
    for item in sorted(slow, key=lambda item: (_runs_over_ssh(item), item.nodeid)):
        if marked(item) <= shown:
            item.add_marker("slow")
        shown |= marked(item)


def is_slow(item: pytest.Item) -> bool:
    if item.nodeid.endswith("[README.md]"):
        return False
    if _is_one_of(item, SLOW) or not OWN_SERVERS.isdisjoint(getattr(item, "fixturenames", ())):
        return True
    is_sampled = _runs_over_ssh(item) or _is_one_of(item, SAMPLED)
    return is_sampled and zlib.crc32(item.nodeid.encode()) % SAMPLE != 0


def _is_one_of(item: pytest.Item, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(item.nodeid, pattern) for pattern in patterns)


def _runs_over_ssh(item: pytest.Item) -> bool:
    """Return whether the test runs on this machine as well, and this is the case over SSH."""
    case = getattr(item, "callspec", None)
    return case is not None and "ssh" in case.params.values()
