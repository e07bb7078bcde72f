"""How many tests have run, as each tool prints it, and what is said if there are fewer."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import turngate
from turngate.gates.count_tests import Counted, count_tests, describe_fewer

OUTPUTS = {
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


def test_the_user_reads_that_fewer_tests_have_passed_than_in_an_earlier_session(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / "Makefile").write_text("test:\n\t@cat result; test ! -e fail\n")

    def stop(session: str, result: str) -> dict[str, Any]:
        (project / "result").write_text(result)
        event = {"session_id": session, "hook_event_name": "Stop", "cwd": str(project)}
        return dict(json.loads(turngate("gate", "tests", stdin=json.dumps(event))[1]))

    fewer = "2 tests passed, and 3 at the last pass"
    assert stop("one", "3 passed in 0.1s\n") == {}
    (project / "fail").touch()
    assert stop("two", "1 failed, 2 passed in 0.1s\n")["reason"].endswith(f"\n\nAlso: {fewer}.")
    (project / "fail").unlink()
    assert stop("two", "2 passed in 0.1s\n") == {"systemMessage": f'gate "tests": {fewer}'}
    assert stop("two", "2 passed in 0.2s\n") == {}
