"""`turngate gate` as a process: what it answers, and with which exit code."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.cli import TURNGATE, turngate
from tests.support.gates import answer_of_process, claude_input
from tests.support.timeouts import HANG_TIMEOUT_S


@pytest.mark.req("X-37")
def test_a_gate_answers_a_hook_with_json_and_exit_code_0(project: Path) -> None:
    fields = claude_input(project)
    missing = "exit code 127: could not be started: no-such-program: No such file or directory"
    assert answer_of_process(("--", "true"), fields) == (0, {}, "")
    assert answer_of_process(("--", "sh", "-c", "echo one; exit 3"), fields) == (
        0,
        {"decision": "block", "reason": "exit code 3\none"},
        "",
    )
    assert answer_of_process(("--", "no-such-program"), fields) == (
        0,
        {"systemMessage": f'gate "command" could not run: {missing}; it was NOT enforced'},
        "",
    )


@pytest.mark.parametrize(
    ("command", "code", "err"),
    [
        ("true", 0, ""),
        ("echo one; exit 3", 2, "exit code 3\none\n"),
        ("exit 127", 1, 'gate "command" could not run: exit code 127'),
    ],
)
def test_with_exit_code_a_block_is_2_and_what_could_not_run_is_1(
    project: Path, command: str, code: int, err: str
) -> None:
    fields = json.dumps(claude_input(project))
    got, out, error = turngate("gate", "--exit-code", "--", "sh", "-c", command, stdin=fields)
    assert (got, out, error.startswith(err) if err else error == "") == (code, "", True)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("true", (0, 'gate "command": passed\n', "")),
        ("echo one; exit 3", (1, 'gate "command": failed\nexit code 3\none\n', "")),
    ],
)
def test_without_a_hooks_input_it_answers_in_words(
    project: Path, command: str, answer: tuple[int, str, str]
) -> None:
    assert turngate("gate", "--project", str(project), "--", "sh", "-c", command) == answer


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nonsense"], "'nonsense' is not a gate; expected one of"),
        (["--"], "there is no command after --"),
        (["command"], "the gate command needs a command"),
        (["--odd", "--", "true"], "the gate command has no option --odd"),
        (["--project", "/no/such/folder", "--", "true"], "there is no folder /no/such/folder"),
    ],
)
def test_wrong_usage_is_1_with_an_empty_stdout(project: Path, words: list[str], message: str) -> None:
    code, out, err = turngate("gate", *words, stdin=json.dumps(claude_input(project)))
    assert (code, out, err.startswith(f"turngate gate: {message}"), err.count("\n")) == (1, "", True, 1)


def test_a_pipe_that_stays_open_and_silent_is_not_waited_for(project: Path) -> None:
    process = subprocess.Popen(
        [*TURNGATE, "gate", "--", "true"],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.wait(HANG_TIMEOUT_S) == 0
    assert process.communicate() == (
        'gate "command": passed\n',
        "turngate gate: stdin stayed open without a complete hook input for 3 s, so it was not waited for\n",
    )


def test_at_another_event_it_says_that_it_could_not_run(project: Path) -> None:
    fields = claude_input(project, hook_event_name="PostToolUse")
    text = "it answers at Stop and SubagentStop, not at PostToolUse; it was NOT enforced"
    answer = {"systemMessage": f'gate "command" could not run: {text}'}
    assert answer_of_process(("--strict", "--", "true"), fields) == (0, answer, "")


def test_a_start_of_a_session_is_never_blocked(project: Path) -> None:
    fields = claude_input(project, hook_event_name="SessionStart", source="startup")
    assert answer_of_process(("--", "false"), fields) == (0, {}, "")
