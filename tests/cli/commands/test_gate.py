"""`turngate gate` as a process: what it answers, and with which exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import TURNGATE, turngate
from tests.support.gates import answer_of_process, claude_input
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.gates.runner import STILL


@pytest.mark.req("X-37")
def test_a_gate_answers_a_hook_with_json_and_exit_code_0(project: Path) -> None:
    fields = claude_input(project)
    missing = "exit code 127: could not be started: no-such-program: No such file or directory"
    assert answer_of_process(("--", "true"), fields) == (0, {}, "")
    assert answer_of_process(("--", "sh", "-c", "echo one; exit 3"), fields) == (
        0,
        {"decision": "block", "reason": "`sh -c 'echo one; exit 3'`: exit code 3\none"},
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
        ("echo one; exit 3", 2, "`sh -c 'echo one; exit 3'`: exit code 3\none\n"),
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
        (
            "echo one; exit 3",
            (1, "gate \"command\": failed\n`sh -c 'echo one; exit 3'`: exit code 3\none\n", ""),
        ),
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


@pytest.fixture
def repository(project: Path) -> Path:
    """A project with a commit."""
    (project / "code.py").write_text("x = 1\n")
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *words], cwd=project, check=True)
    return project


COUNT = ("--", "sh", "-c", "echo run >> ../runs")


def runs(project: Path) -> int:
    return len((project.parent / "runs").read_text().splitlines())


@pytest.mark.req("S3-48")
def test_a_command_that_has_passed_runs_again_only_after_a_change(repository: Path) -> None:
    fields = claude_input(repository)
    assert [answer_of_process(COUNT, fields) for _ in range(3)] == [(0, {}, "")] * 3
    assert runs(repository) == 1
    (repository / "code.py").write_text("x = 2\n")
    assert [answer_of_process(COUNT, fields) for _ in range(2)] == [(0, {}, "")] * 2
    assert runs(repository) == 2
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "commit", "-aqm", "x"],
        cwd=repository,
        check=True,
    )
    assert answer_of_process(COUNT, fields) == (0, {}, "")
    assert runs(repository) == 2


@pytest.mark.req("X-07")
def test_a_result_is_kept_for_its_session_agent_gate_and_project(repository: Path, tmp_path: Path) -> None:
    others = [
        {},
        {"session_id": "another"},
        {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "x"},
        {"hook_event_name": "SubagentStop", "agent_id": "a2", "agent_type": "x"},
    ]
    for fields in others * 2:
        assert answer_of_process(COUNT, claude_input(repository, **fields)) == (0, {}, "")
    assert runs(repository) == len(others)
    answer_of_process((*COUNT, "other"), claude_input(repository))
    assert runs(repository) == len(others) + 1
    copy = tmp_path / "copy"
    subprocess.run(["git", "clone", "-q", str(repository), str(copy)], check=True)
    answer_of_process(COUNT, claude_input(copy))
    assert runs(repository) == len(others) + 2


def test_a_stored_answer_loads_no_module_that_takes_long(repository: Path) -> None:
    fields = claude_input(repository)
    code = (
        "import sys; before = {*sys.modules}; from turngate.cli.main import main; main(['gate', '--', 'true']);"
        "print(sorted(m for m in {*sys.modules} - before if not m.startswith('turngate')))"
    )
    for expected in (False, True):
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=repository,
            input=json.dumps(fields),
            capture_output=True,
            text=True,
            check=True,
        )
        answer, modules = done.stdout.splitlines()
        is_light = modules == "['_blake2', '_json', 'atexit', 'select']"
        assert (answer, is_light) == ("{}", expected), modules


def test_a_stored_answer_does_not_outlive_a_block(repository: Path) -> None:
    words = ("--", "sh", "-c", "test ! -e ../fail")
    assert answer_of_process(words, claude_input(repository)) == (0, {}, "")
    (repository.parent / "fail").touch()
    (repository / "new").touch()
    blocked = {"decision": "block", "reason": "`sh -c 'test ! -e ../fail'`: exit code 1"}
    assert answer_of_process(words, claude_input(repository)) == (0, blocked, "")
    (repository / "new").unlink()
    blocked["reason"] += f"\n\n{STILL}"
    assert answer_of_process(words, claude_input(repository)) == (0, blocked, "")
