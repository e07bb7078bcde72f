"""How many tests have run, as each tool prints it, and what is said if there are fewer."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import turngate
from tests.support.gates import could_not_run
from tests.support.git_projects import make_repository, write
from turngate.core.answers.report_types import Exited
from turngate.core.events.events import StopEvent
from turngate.gates.check_output import Counted, count_tests, describe_fewer, describe_missing_count
from turngate.gates.library.project_checks import TESTS
from turngate.gates.run_gate import make_context
from turngate.shells.local import LocalShell

OUTPUTS = {
    "Ran 4 tests in 0.1s\n\nFAILED (failures=1, errors=2)": Counted(1, 0),
    "5 examples, 2 failures, 1 pending": Counted(3, 1),
    "Tests: 5, Assertions: 9, Errors: 1, Failures: 2, Skipped: 1.": Counted(2, 1),
    "..s [100%]\n2 passed, 1 skipped in 0.01s": Counted(2, 1),
    "=== short test summary info ===\nSKIPPED [1] test_a.py:3: later\n=== 5 passed, 1 skipped, 2 deselected in 1.2s ===": Counted(
        5, 3, ("test_a.py:3: later",)
    ),
    "FAILED test_a.py::test_x\n1 failed, 3 passed in 0.1s": Counted(3, 0),
    "Ran 4 tests in 0.000s\n\nOK (skipped=1)": Counted(4, 1),
    "Test Suites: 1 passed, 1 total\nTests:       1 skipped, 5 passed, 6 total\n": Counted(5, 1),
    " Test Files  1 passed (1)\n      Tests  5 passed | 2 skipped (7)\n": Counted(5, 2),
    "\n  3 passing (5ms)\n  1 pending\n": Counted(3, 1),
    "# tests 4\n# pass 3\n# fail 0\n# skipped 1\n": Counted(3, 1),
    "ℹ tests 4\nℹ pass 4\nℹ skipped 0\n": Counted(4, 0),
    "test a::b ... ignored\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured\n"
    "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured\n": Counted(5, 1, ("a::b",)),
    "5 examples, 0 failures, 2 pending": Counted(5, 2),
    "OK (5 tests, 7 assertions)": Counted(5, 0),
    "4 runs, 3 assertions, 1 failures, 1 errors, 1 skips": Counted(2, 1),
    "4 tests, 2 assertions, 1 failures, 1 errors, 0 pendings, 1 omissions, 0 notifications": Counted(2, 1),
    "2 doctests, 4 tests, 1 failure, 1 skipped": Counted(3, 1),
    "50% tests passed, 1 tests failed out of 2\n": Counted(1, 0),
    "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.1 s -- in AppTest\n"
    "[ERROR] Tests run: 7, Failures: 1, Errors: 1, Skipped: 2\n": Counted(5, 2),
    "Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6, Duration: 3 ms\n": Counted(5, 1),
    "All tests successful.\nFiles=2, Tests=7,  0 wallclock secs\n": Counted(7, 0),
    "  1 skipped\n  5 passed (1.2s)\n": Counted(5, 1),
    "ok | 5 passed (2 steps) | 0 failed | 1 ignored (12ms)\n": Counted(5, 1),
    "[==========] 3 tests ran.\n[  PASSED  ] 2 tests.\n[  SKIPPED ] 1 test, listed below:\n": Counted(2, 1),
    "  5 tests passed\n  1 test skipped\n": Counted(5, 1),
    "     Summary [   0.01s] 5 tests run: 4 passed, 1 failed, 2 skipped\n": Counted(4, 2),
    "2 passed in 0.01s\nTests:       1 skipped, 5 passed, 6 total\n": Counted(7, 1),
    "ok   shop 0.1s": None,
    "all good": None,
}


@pytest.mark.parametrize(("output", "counted"), OUTPUTS.items())
def test_tests_are_counted_as_each_tool_prints_them(output: str, counted: Counted | None) -> None:
    assert count_tests(output) == counted


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (Counted(5, 0), Counted(5, 0), None),
        (Counted(5, 1), Counted(7, 0), None),
        (Counted(5, 0), Counted(3, 0), "3 tests passed, and 5 at the last pass"),
        (
            Counted(5, 1, ("old",)),
            Counted(4, 2, ("old", "new")),
            "4 tests passed, and 5 at the last pass; 2 were skipped (new), and 1 at the last pass",
        ),
    ],
)
def test_fewer_tests_and_more_that_are_skipped_are_said(before: Counted, now: Counted, said: str) -> None:
    assert describe_fewer(before, now) == said


def gate_of_printed_results(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[str, str], dict[str, Any]]:
    """Return a function that stops in a session of a project whose tests print a text."""
    monkeypatch.chdir(project)
    (project / "Makefile").write_text("test:\n\t@cat result; test ! -e fail\n")

    def stop(session: str, result: str) -> dict[str, Any]:
        (project / "result").write_text(result)
        event = {"session_id": session, "hook_event_name": "Stop", "cwd": str(project)}
        return dict(json.loads(turngate("gate", "tests", stdin=json.dumps(event))[1]))

    return stop


def test_the_user_reads_that_fewer_tests_have_passed_than_in_an_earlier_session(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = gate_of_printed_results(project, monkeypatch)
    fewer = "2 tests passed, and 3 at the last pass"
    assert stop("one", "3 passed in 0.1s\n") == {}
    (project / "fail").touch()
    assert stop("two", "1 failed, 2 passed in 0.1s\n")["decision"] == "block"
    (project / "fail").unlink()
    assert stop("two", "2 passed in 0.1s\n") == {"systemMessage": f'gate "tests": {fewer}'}
    assert stop("two", "2 passed in 0.2s\n") == {}


def test_the_number_at_the_start_of_a_session_counts_although_a_later_one_is_lower(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_repository(project, {"other": ""})
    stop = gate_of_printed_results(project, monkeypatch)
    fewer = {"systemMessage": 'gate "tests": 1 test passed, and 3 at the last pass'}
    assert stop("one", "3 passed in 0.1s\n") == {}
    start = {"session_id": "two", "hook_event_name": "SessionStart", "cwd": str(project)}
    assert turngate("gate", "tests", stdin=json.dumps(start))[0] == 0
    assert stop("nested", "1 passed in 0.1s\n") == fewer
    assert stop("two", "1 passed in 0.2s\n") == fewer


def test_a_test_that_fails_is_not_reported_as_one_that_is_gone(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = gate_of_printed_results(project, monkeypatch)
    assert stop("one", "3 passed in 0.1s\n") == {}
    (project / "fail").touch()
    reasons = [stop("two", f"1 failed, {passed} passed in 0.1s\n")["reason"] for passed in (2, 1)]
    also = [reason.partition("\n\nAlso: ")[2] for reason in reasons]
    assert also == ["", "1 test passed, and 3 at the last pass."]


def test_the_user_reads_that_a_test_that_failed_in_the_session_runs_no_longer(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = gate_of_printed_results(project, monkeypatch)
    (project / "fail").touch()
    assert (
        stop("one", "FAILED test_a.py::test_b - assert 0\n1 failed, 2 passed in 0.1s\n")["decision"]
        == "block"
    )
    (project / "fail").unlink()
    gone = "2 tests passed, and 3 have run in this session"
    assert stop("one", "2 passed in 0.1s\n") == {"systemMessage": f'gate "tests": {gone}'}
    assert stop("one", "2 passed in 0.2s\n") == {}


def test_tests_that_were_counted_and_are_no_longer_have_not_passed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = gate_of_printed_results(project, monkeypatch)
    assert stop("one", "3 passed in 0.1s\n") == {}
    why = "it printed no number of tests, and 3 tests passed at the last pass"
    assert stop("two", "done\n") == could_not_run("tests", f"`make test`: {why}")
    assert stop("two", "done again\n") == {}


def test_two_commands_that_run_tests_are_counted_apart_and_the_notes_of_both_are_read(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    monkeypatch.setenv("PATH", f"{project}/.venv/bin{os.pathsep}{os.environ['PATH']}")
    (project / "package.json").write_text('{"scripts": {"test": "cat of_npm"}}')
    write(
        project,
        {"pyproject.toml": "[tool.pytest.ini_options]\n", ".venv/bin/pytest": "#!/bin/sh\ncat of_pytest\n"},
    )
    (project / ".venv/bin/pytest").chmod(0o755)

    def stop(session: str, of_npm: int, of_pytest: int) -> dict[str, Any]:
        write(
            project,
            {"of_npm": f"# tests {of_npm}\n# pass {of_npm}\n", "of_pytest": f"{of_pytest} passed in 0.1s\n"},
        )
        event = {"session_id": session, "hook_event_name": "Stop", "cwd": str(project)}
        return dict(json.loads(turngate("gate", "tests", stdin=json.dumps(event))[1]))

    assert (stop("one", 2, 5), stop("one", 3, 6)) == ({}, {})
    fewer = "1 test passed, and 3 at the last pass; 4 tests passed, and 6 at the last pass"
    assert stop("two", 1, 4) == {"systemMessage": f'gate "tests": {fewer}'}


def missing_count_of_nothing(command: str) -> str | None:
    event = StopEvent(session_id="s", transcript_path="", cwd="/")
    context = make_context(TESTS, event, LocalShell(), "/", options={})
    return describe_missing_count(context, command, command, Exited(0, stdout="\n"))


@pytest.mark.parametrize(
    "command", ["pytest -q", "python3 -m unittest", "uv run pytest", ".venv/bin/pytest", "npx jest"]
)
def test_a_test_runner_that_prints_nothing_has_not_run(command: str) -> None:
    assert missing_count_of_nothing(command) == "it checked nothing: it printed nothing"


@pytest.mark.parametrize("command", ["pytest -q > log", "make test", "sh tests.sh"])
def test_another_command_may_print_nothing(command: str) -> None:
    assert missing_count_of_nothing(command) is None


@pytest.mark.parametrize(
    "text",
    ["=", " ", "\n", "1", "1 passed ", "1 skipped ", "Tests: 1", "1 a, ", "ok 1 - ", "SKIPPED [1] ", "\t\n"],
)
def test_a_mebibyte_of_output_is_read_in_time(text: str) -> None:
    begun = time.process_time()
    count_tests(text * (1024 * 1024 // len(text)))
    assert time.process_time() - begun < 20  # a quadratic pattern would need minutes
