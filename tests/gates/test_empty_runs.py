"""What tools print if they check nothing, as recorded from them, and what they print of other parts beside a real check."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from tests.support.gates import answer_of_process, blocked, claude_input, could_not_run
from turngate.gates.check_output import describe_empty_run

CARGO_NOTHING = "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
CARGO_ONE = "running 1 test\ntest tests::it_works ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n"
NODE = (
    "TAP version 13\n1..0\n# tests 0\n# suites 0\n# pass 0\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n"
)
VITEST = "\x1b[2m Test Files \x1b[22m \x1b[33m1 skipped\x1b[39m\x1b[90m (1)\x1b[39m\n\x1b[2m      Tests \x1b[22m \x1b[33m1 skipped\x1b[39m\x1b[90m (1)\x1b[39m\n"
MAVEN = (
    "[INFO] --- surefire:3.2.5:test (default-test) @ app ---\n[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n"
)

# Of the real tools, unless a comment says that it is from their documentation.
NOTHING = {
    "pytest -q": "\nno tests ran in 1.73s\n",
    "pytest": "collected 0 items\n\n============================ no tests ran in 2.17s =============================\n",
    "pytest, all are skipped": "s                             [100%]\n1 skipped in 1.86s\n",
    "pytest, all are skipped, with a bar": "======= 2 skipped, 1 warning in 0.02s =======\n",
    "pytest, all are deselected": "\n1 deselected in 2.26s\n",
    "unittest": "\n----------------------------------------------------------------------\nRan 0 tests in 0.000s\n\nOK\n",
    "unittest, all are skipped": "s\n-----\nRan 2 tests in 0.000s\n\nOK (skipped=2)\n",
    "node --test, the only test is to be done": "TAP version 13\nnot ok 1 - a # TODO\n1..1\n# tests 1\n# pass 0\n# fail 0\n# todo 1\n",
    "maven, tests are switched off": "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS\n",
    "maven, all are skipped": "[WARNING] Tests run: 3, Failures: 0, Errors: 0, Skipped: 3\n",
    "gradle, the task is switched off": "> Task :compileTestJava\n> Task :test SKIPPED\n\nBUILD SUCCESSFUL in 1s\n",
    "rspec, all are pending": "Finished in 0.02 seconds\n3 examples, 0 failures, 3 pending\n",
    "phpunit, all are skipped": "OK, but some tests were skipped!\nTests: 3, Assertions: 0, Skipped: 3.\n",
    "dotnet test, all are skipped": "Skipped! - Failed:     0, Passed:     0, Skipped:     3, Total:     3, Duration: 1 ms\n",
    "swift test, all are skipped": "\t Executed 3 tests, with 3 tests skipped and 0 failures (0 unexpected)\n",
    "bun test, all are skipped": "\n 0 pass\n 3 skip\n 0 fail\nRan 3 tests across 1 file.\n",
    "playwright, all are skipped": "Running 3 tests using 1 worker\n\n  3 skipped\n",
    "tox, the environment is skipped": "  py311: SKIP (0.00 seconds)\n  congratulations :) (0.05 seconds)\n",
    "turbo": "No tasks were executed as part of this run.\n\n Tasks:    0 successful, 0 total\n",
    "bats, all are skipped": "1..2\nok 1 a # skip\nok 2 b # skip\n",
    "unittest since Python 3.12": "\n-----\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n",
    "node --test": NODE,
    "node --test at a terminal": "ℹ tests 0\nℹ suites 0\nℹ pass 0\nℹ fail 0\n",
    "node --test, all are skipped": "ok 1 - a # SKIP\n1..1\n# tests 1\n# pass 0\n# fail 0\n# skipped 1\n",
    "mocha": "\n\n  0 passing (0ms)\n\n",
    "mocha, all are pending": "\n  - a\n  - pending\n\n  0 passing (1ms)\n  2 pending\n",
    "mocha -R tap": "# tests 0\n# pass 0\n# fail 0\n1..0\n",
    "jest --passWithNoTests": "No tests found, exiting with code 0\n",
    "jest, all are skipped": "Test Suites: 1 skipped, 0 of 1 total\nTests:       1 skipped, 1 total\nSnapshots:   0 total\n",
    "vitest --passWithNoTests": "\nNo test files found, exiting with code 0\n",
    "vitest, all are skipped": VITEST,
    "cargo test": f"     Running unittests src/lib.rs\n\n{CARGO_NOTHING}\n   Doc-tests c0\n\n{CARGO_NOTHING}",
    "cargo test, all are ignored": "running 1 test\ntest a ... ignored\n\ntest result: ok. 0 passed; 0 failed; 1 ignored\n",
    "ctest": "Test project /tmp/ct\nNo tests were found!!!\n",
    "prove": "Files=0, Tests=0,  0 wallclock secs ( 0.00 usr +  0.00 sys =  0.00 CPU)\nResult: NOTESTS\n",
    "make, a folder has the name of the target": "make: 'test' is up to date.\n",
    "make, the target has no recipe": "make: Nothing to be done for 'test'.\n",
    "make -C": "make: Entering directory '/p'\nmake: 'test' is up to date.\nmake: Leaving directory '/p'\n",
    "make in make": "make test\nmake[1]: Entering directory '/p'\nmake[1]: 'test' is up to date.\nmake[1]: Leaving directory '/p'\n",
    "make in npm": "\n> test\n> make test\n\nmake: 'test' is up to date.\n",
    # from the documentation or the source of the tool
    "go test": "?   \tx/a\t[no test files]\n?   \tx/b\t[no test files]\n",
    "go test -run nothing": "testing: warning: no tests to run\nPASS\nok  \tx/a\t0.002s [no tests to run]\n",
    "go test, in no package": 'go: warning: "./..." matched no packages\nno packages to test\n',
    "rspec": "No examples found.\n\nFinished in 0.00026 seconds\n0 examples, 0 failures\n",
    "minitest": "Run options: --seed 1\n\n0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n",
    "phpunit": "PHPUnit 11.0.0\n\nNo tests executed!\n",
    "dotnet test": "No test is available in /p/a.dll. Make sure that test discoverer & executors are registered\n",
    "maven": MAVEN,
    "gradle": "> Task :compileTestJava NO-SOURCE\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s\n",
    "swift test": "Test Suite 'All tests' passed\n\t Executed 0 tests, with 0 failures (0 unexpected) in 0.000 seconds\n",
    "bun test": "bun test v1.1\n\n 0 pass\n 0 fail\nRan 0 tests across 1 files.\n",
    "deno test": "\nok | 0 passed | 0 failed (1ms)\n",
    "bats": "1..0\n",
    "mix test": "There are no tests to run\n",
}
SOMETHING = {
    "pytest": ".s                          [100%]\n1 passed, 1 skipped in 1.84s\n",
    "pytest, the only test is expected to fail": "sx      [100%]\n1 skipped, 1 xfailed in 0.05s\n",
    "pytest about pytest": "FAILED: no tests ran in 0.1s\n3 passed in 1.84s\n",
    "unittest": "Ran 3 tests in 0.000s\n\nOK (skipped=1)\n",
    "two tools": f"Ran 0 tests in 0.000s\n\nOK\n{CARGO_ONE}",
    "node --test": "# Subtest: a\nok 1 - a\n1..1\n# tests 1\n# suites 0\n# pass 1\n# fail 0\n",
    "mocha": "\n\n  ✔ a\n\n  1 passing (1ms)\n\n",
    "jest": "Test Suites: 1 skipped, 1 passed, 1 of 2 total\nTests:       1 skipped, 1 passed, 2 total\nSnapshots:   0 total\n",
    "vitest": "\x1b[2m      Tests \x1b[22m \x1b[1m\x1b[32m1 passed\x1b[39m\x1b[22m\x1b[90m (1)\x1b[39m\n",
    "cargo test, no tests in the documentation": f"{CARGO_ONE}\n   Doc-tests c1\n\n{CARGO_NOTHING}",
    "ctest": "1/1 Test #1: a ....   Passed    0.01 sec\n\n100% tests passed, 0 tests failed out of 1\n",
    "go test, one package has no tests": "?   \tx/a\t[no test files]\nok  \tx/b\t0.1s\n",
    "go test, cached": "ok  \tx/b\t(cached)\n?   \tx/a\t[no test files]\n",
    "make, a part of it is up to date": "make[1]: Nothing to be done for 'all'.\n./run-all.sh\nall is well\n",
    "make, its recipe prints nothing that is known": "make: 'lib' is up to date.\nchecked 3 files\n",
    "rspec": "Finished in 0.02 seconds\n2 examples, 0 failures\n",
    "phpunit": "OK (2 tests, 2 assertions)\n",
    "dotnet test": "No test matches the given testcase filter in /p/b.dll\nPassed!  - Failed:     0, Passed:     3, Skipped:     0, Total:     3\n",
    "maven": f"{MAVEN}[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0\n",
    "gradle": "> Task :a:test NO-SOURCE\n> Task :b:test\n\nBUILD SUCCESSFUL in 1s\n",
    "gradle, up to date": "> Task :a:test UP-TO-DATE\n",
    "swift test": "Executed 0 tests, with 0 failures\n✔ Test run with 3 tests passed after 0.001 seconds.\n",
    "an own script": "0 errors, 0 failed\n",
    "no output": "",
}


@pytest.mark.parametrize("tool", NOTHING)
def test_a_tool_that_says_so_has_checked_nothing(tool: str) -> None:
    assert describe_empty_run(NOTHING[tool], "tests") is not None


@pytest.mark.parametrize("tool", SOMETHING)
def test_a_tool_that_says_so_of_a_part_only_has_checked_something(tool: str) -> None:
    assert describe_empty_run(SOMETHING[tool], "tests") is None


UP_TO_DATE = "make: 'prog' is up to date."
NO_FILES = "warning: No Python files found under the given path(s)\nAll checks passed!\n"


@pytest.mark.parametrize(
    ("output", "check", "words"),
    [
        (UP_TO_DATE, "build", None),
        (UP_TO_DATE, "lint", UP_TO_DATE),
        (UP_TO_DATE, "other", None),
        (CARGO_NOTHING, "build", None),
        (CARGO_NOTHING, "other", "0 passed; 0 failed"),
        (NO_FILES, "lint", "No Python files found"),
        (NO_FILES, "tests", None),
        ("mypy....(no files to check)Skipped\n", "lint", "(no files to check)Skipped"),
        ("mypy....(no files to check)Skipped\nruff....Passed\n", "lint", None),
    ],
)
def test_what_an_empty_run_is_depends_on_what_was_to_be_checked(
    output: str, check: str, words: str | None
) -> None:
    assert describe_empty_run(output, check) == words


def gate(project: Path, *words: str) -> object:
    return answer_of_process(words, claude_input(project))[1]


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make")
@pytest.mark.parametrize("words", [("tests",), ("--", "make", "test"), ("--", "cd . && make test")])
def test_a_target_that_make_takes_for_a_file_has_checked_nothing(
    project: Path, words: tuple[str, ...]
) -> None:
    (project / "Makefile").write_text("test:\n\tfalse\n")
    (project / "test").mkdir()
    why = "it checked nothing: its output says \"make: 'test' is up to date.\""
    name, shown = ("tests", "`make test`: ") if words == ("tests",) else ("command", "")
    assert gate(project, *words) == could_not_run(name, shown + why)
    (project / "test").rmdir()
    answer = gate(project, *words)
    assert isinstance(answer, dict)
    assert answer["decision"] == "block"


@pytest.mark.skipif(shutil.which("npm") is None, reason="there is no npm")
def test_an_agent_that_deletes_the_failing_test_does_not_pass(project: Path) -> None:
    (project / "package.json").write_text(json.dumps({"scripts": {"test": "node --test"}}))
    test = project / "sum.test.js"
    test.write_text('require("node:test")("sum", () => { throw new Error("no") })')
    answer = gate(project, "tests")
    assert isinstance(answer, dict)
    assert answer["decision"] == "block"
    test.unlink()
    answer = gate(project, "tests")
    assert isinstance(answer, dict)
    assert str(answer["systemMessage"]).startswith(
        'gate "tests" could not run: `npm test`: it checked nothing: '
    )


@pytest.mark.parametrize("words", [("-k", "nothing"), ("--ignore", "test_a.py")])
def test_pytest_that_runs_no_test_could_not_run(project: Path, words: tuple[str, ...]) -> None:
    (project / "test_a.py").write_text("def test_a(): pass\n")
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert gate(project, "--", *command) == {}
    (project / "test_b.py").write_text("")
    found = "1 deselected in" if words[0] == "-k" else "no tests ran"
    assert gate(project, "--", *command, *words) == could_not_run(
        "command", f'it checked nothing: its output says "{found}"'
    )


def test_a_build_that_is_up_to_date_has_passed(project: Path) -> None:
    (project / "Makefile").write_text("build: prog\nprog:\n\t@touch prog\n.PHONY: build\n")
    assert [gate(project, "build"), gate(project, "--", "make build")] == [{}, {}]
    (project / "notes.txt").write_text("")
    assert [gate(project, "build"), gate(project, "--", "make build")] == [{}, {}]


def test_a_strict_gate_blocks_if_nothing_was_checked(project: Path) -> None:
    command = "echo '0 passing'"
    assert gate(project, "--strict", "--", command) == blocked(
        'gate "command" could not run: it checked nothing: its output says "0 passing"'
    )
