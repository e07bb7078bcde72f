"""Which tests are slow: `make test` leaves them out, `make test-all` runs them too.

The rules look at files, names, parameters and fixtures, so that a new test needs no mark. Whatever they say, each
requirement keeps one test in `make test`.
"""

import re
import zlib
from collections.abc import Sequence
from fnmatch import translate

import pytest

from tests.trace import marked

# Processes that are killed, terminals, whole workflows, large input, and libraries that take long to load.
SLOW = (
    "tests/acp/test_typescript_sdk.py*",
    "tests/adapters/test_stop_gates.py*",
    "tests/agent/test_remote_*",
    "tests/cli/commands/hooks/test_ssh_connection.py*",
    "tests/cli/commands/run/*",
    "tests/cli/commands/test_install.py::test_a_process_that_is_killed_*",
    "tests/cli/commands/test_run_usage.py*",
    "tests/cli/commands/test_runs.py*",
    "tests/cli/commands/test_worker.py::test_a_killed_*",
    "tests/cli/commands/test_worker.py::test_a_worker_brings_*",
    "tests/cli/commands/test_worker.py::test_a_worker_drains_*",
    "tests/cli/commands/test_worker.py::test_workers_of_a_project_over_ssh_*",
    "tests/cli/console/test_progress.py*",
    "tests/cli/test_hostile_project.py*",
    "tests/gates/test_hidden_changes.py*",
    "tests/scenarios/test_feature_workflow.py*",
    "tests/scenarios/test_hostile_*",
    "tests/scenarios/test_remote_*",
    "tests/scenarios/test_resume*",
    "tests/scenarios/test_scarce_resources.py*",
    "tests/scenarios/test_ssh_faults.py*",
    "tests/scenarios/test_subagent_crash.py*",
    "tests/scenarios/test_two_processes.py*",
    "tests/serve/test_page.py*",
    "tests/shells/test_lost_connection.py*",
    "tests/shells/test_remote_*",
    "tests/test_docs.py::test_what_a_page_shows_is_what_happens[[]*",
    "tests/test_environment.py*",
    "tests/tools/test_bench.py*",
    "tests/tools/test_cluster.py*",
    "tests/tools/test_fuzz.py*",
    "tests/tools/test_hosts.py*",
    "tests/tools/test_mutants.py::test_the_runner*",
    "tests/tools/test_site.py::test_a_link*",
    "tests/tools/test_site.py::test_the_site*",
    "*_bounded*",
    "*_little_*",
    "*_large_*",
    "*huge*",
    "*[mg][ei]gabytes*",
    "*thousand*",
    "*[0-9][ _][Mm][Bb]*",
    "*pydantic[-_]ai*",
)
OWN_SERVERS = {"own_server", "full_disk", "other_machine"}  # started or filled by one test
# Many cases of one mechanism. One in five stays, always the same one.
SAMPLED = (
    "tests/acp/*",
    "tests/adapters/*",
    "tests/cli/commands/test_check_corpus.py*",
    "tests/cli/commands/test_demo.py*",
    "tests/cli/commands/test_install.py*",
    "tests/cli/console/test_streams.py*",
    "tests/conformance/*",
    "tests/doctor/proof/*",
    "tests/gates/library/test_cases.py*",
    "tests/gates/test_conversions.py*",
    "tests/gates/test_related_tests.py*",
    "tests/gates/test_run_gate.py::test_a_first_pass_*",
    "tests/gates/test_session_changes.py*",
    "tests/hosts/test_hook_of_each_host.py*",
    "tests/hosts/test_install_round_trip.py*",
    "tests/scenarios/test_adoption.py*",
    "tests/scenarios/test_holding.py*",
    "tests/scenarios/test_interrupts.py*",
    "tests/scenarios/test_one_budget.py*",
    "tests/scenarios/test_time_limits.py*",
    "tests/subagents/test_registry_database.py*",
    "tests/test_example_scripts.py*",
    "tests/trust/test_hidden_scripts.py*",
    "*another[ _]machine*",
)
SAMPLE = 5

# The suite of `StopGates` with the framework that is installed for every test.
_ONE_FRAMEWORK = re.compile(r"tests/adapters/test_stop_gates\.py::.*(?:\[pydantic_ai|with_turngate$)")
_SLOW = re.compile("|".join(translate(pattern) for pattern in SLOW))
_SAMPLED = re.compile("|".join(translate(pattern) for pattern in SAMPLED))


def mark_slow(items: Sequence[pytest.Item]) -> None:
    shown = set[str]()
    for item in sorted(items, key=lambda item: (is_slow(item), _runs_over_ssh(item))):
        if is_slow(item) and marked(item) <= shown:
            item.add_marker("slow")
        shown |= marked(item)


def is_slow(item: pytest.Item) -> bool:
    if item.nodeid.endswith("[README.md]") or _ONE_FRAMEWORK.match(item.nodeid):
        return False
    if (
        _SLOW.match(item.nodeid)
        or _runs_on_postgres(item)
        or not OWN_SERVERS.isdisjoint(getattr(item, "fixturenames", ()))
    ):
        return True
    is_sampled = _runs_over_ssh(item) or _SAMPLED.match(item.nodeid)
    return bool(is_sampled) and zlib.crc32(item.nodeid.encode()) % SAMPLE != 0


def _runs_on_postgres(item: pytest.Item) -> bool:
    return "postgres" in getattr(item, "fixturenames", ()) or "postgresql" in _parameters(item)


def _runs_over_ssh(item: pytest.Item) -> bool:
    """Return whether the test runs on this machine as well, and this is the case over SSH."""
    return "ssh" in _parameters(item)


def _parameters(item: pytest.Item) -> Sequence[object]:
    case = getattr(item, "callspec", None)
    return [*case.params.values()] if case is not None else []
