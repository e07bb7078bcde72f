"""The gate `checks` with gh, which a script plays: its output and exit codes are those of gh 2.60."""

from pathlib import Path

import pytest

from tests.support.gates import answer_of_process, blocked, claude_input, could_not_run
from tests.support.git_projects import write

ADVICE = "Correct what fails and push it. `gh run view --log-failed` prints the log."
PASSED = "lint\tpass\t10s\thttps://x/1\t\n"
FAILED = "tests\tfail\t1m2s\thttps://x/2\t\n"
RUNS = "docs\tpending\t0\thttps://x/3\t\n"
WAITS = 'gate "checks" waits: checks of the pull request still run: docs; it was NOT enforced'


def gate_with_gh(project: Path, monkeypatch: pytest.MonkeyPatch, script: str, *words: str) -> object:
    programs = project.parent / "programs"
    write(programs, {"gh": f'#!/bin/sh\ntest "$1 $2" = "pr checks" || exit 9\n{script}\n'})
    (programs / "gh").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    return answer_of_process(("checks", *words), claude_input(project))


@pytest.mark.parametrize(
    ("output", "code", "answer"),
    [
        (PASSED, 0, {}),
        (
            PASSED + FAILED,
            1,
            blocked(f"checks of the pull request fail:\n- tests: fail https://x/2\n{ADVICE}"),
        ),
        (PASSED + RUNS, 8, {"systemMessage": WAITS}),
    ],
)
def test_the_checks_of_the_pull_request_decide(
    output: str, code: int, answer: dict[str, str], project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = f"printf '%s' '{output}'; exit {code}"
    assert gate_with_gh(project, monkeypatch, script) == (0, answer, "")


def test_it_waits_on_request(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"test \"$3\" = --watch && printf '%s' '{PASSED}'"
    assert gate_with_gh(project, monkeypatch, script, "--wait") == (0, {}, "")


def test_without_a_pull_request_it_could_not_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = gate_with_gh(project, monkeypatch, "echo 'no pull requests found for branch \"x\"' >&2; exit 1")
    assert answer == (0, could_not_run("checks", 'no pull requests found for branch "x"'), "")


def test_without_gh_it_could_not_run(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project.parent / "programs").mkdir()
    monkeypatch.setenv("PATH", str(project.parent / "programs"))
    answer = answer_of_process(("checks",), claude_input(project))
    assert answer == (0, could_not_run("checks", "gh, the command line of GitHub, is not installed"), "")
