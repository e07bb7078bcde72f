"""`turngate gate` as a process: what it answers, and with which exit code."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.hosts.recordings import recorded
from tests.support.cli import TURNGATE, turngate
from tests.support.gates import answer_of_process, claude_input, could_not_run
from tests.support.git_projects import write
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.commands import gate as gate_command
from turngate.cli.hook_input import NOT_JSON, TOO_LONG
from turngate.gates.run_gate import STILL


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


@pytest.mark.parametrize(
    ("gate", "purpose"),
    [
        ("clean", "Blocks the stop until: the git tree is committed, or stashed."),
        ("notify", "An observer: tells you that the agent is done, or has given up. It never blocks."),
        (
            "budget",
            "A limit: ends the turn when tokens, minutes or turns are used up. It never blocks.",
        ),
    ],
)
def test_the_help_of_what_never_blocks_says_so_and_lists_no_strict(gate: str, purpose: str) -> None:
    code, out, err = turngate("gate", gate, "--help")
    assert (code, out.split("\n\n")[1], "--strict" in out, err) == (0, purpose, gate == "clean", "")


@pytest.mark.parametrize("is_hook", [True, False])
def test_a_call_without_a_name_is_wrong_usage_and_never_looks_passed(project: Path, is_hook: bool) -> None:
    code, out, err = turngate("gate", stdin=json.dumps(claude_input(project)) if is_hook else "")
    first, *rest = err.splitlines()
    assert (code, out, first) == (
        1,
        "",
        "turngate gate: neither a gate nor a command is given; see `turngate gate --help`",
    )
    assert rest[:2] == [
        "usage: turngate gate NAME [options] [operands] [-- COMMAND…]",
        "       turngate gate -- COMMAND…",
    ]


def test_lone_surrogates_in_a_hooks_input_are_not_an_error(project: Path) -> None:
    text = json.dumps({**claude_input(project, session_id="\ud800", agent_id="\udfff"), "x\udc80": "\ud800"})
    answer = turngate("gate", "--", "echo no; exit 1", stdin=text)
    assert (answer[0], json.loads(answer[1]), answer[2]) == (
        0,
        {"decision": "block", "reason": "`echo no; exit 1`: exit code 1\nno"},
        "",
    )


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
    text = "it answers at Stop, SubagentStop, TaskCompleted, TeammateIdle, not at PostToolUse; it was NOT enforced"
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
    assert [answer_of_process(COUNT, fields) for _ in range(2)] == [(0, {}, "")] * 2
    assert runs(repository) == 3  # the command may ask git


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
        "import sys; from turngate.cli.main import main; main(['gate', '--', 'true']);"
        "print([m for m in ('asyncio', 'subprocess', 'typing', 'turngate.gates.library') if m in sys.modules])"
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
        assert (answer, modules == "[]") == ("{}", expected), modules


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


@pytest.mark.parametrize(
    ("stdin", "note"),
    [
        ("", ""),
        ("  \n", ""),
        ("{}", NOT_JSON),
        ("[1]", NOT_JSON),
        ("hello", NOT_JSON),
        ('{"session_id": "s"', NOT_JSON),
        ("{broken", NOT_JSON),
        ("{\n{\n", NOT_JSON),
        ('{"session_id": "s",}', NOT_JSON),
        ('{"session_id": "s" "cwd"}', NOT_JSON),
        ('{"session_id": "\\ud8zz"}', NOT_JSON),
        ('{"session_id": NaN}', NOT_JSON),
        ('{"session_id": "s"} {}', NOT_JSON),
        ('{"session_id":' * 200_000, NOT_JSON),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_what_is_not_a_hooks_input_is_answered_in_words(project: Path, stdin: str, note: str) -> None:
    err = f"turngate gate: {note}\n" if note else ""
    answer = (0, 'gate "command": passed\n', err)
    assert turngate("gate", "--project", str(project), "--", "true", stdin=stdin) == answer


@pytest.mark.parametrize(
    "stdin", ["{broken", '{"session_id": "s",', '{"session_id": "s",}', '{"session_id": NaN}', "{" * 100_000]
)
@pytest.mark.parametrize("command", ["true", "false"])
def test_a_new_process_answers_damaged_json_in_words(project: Path, stdin: str, command: str) -> None:
    """It has not loaded `json`, whose scanner then has no exception to raise."""
    done = subprocess.run(
        [*TURNGATE, "gate", "--", command],
        cwd=project,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    answer = {"true": (0, "passed"), "false": (1, "failed\n`false`: exit code 1")}[command]
    assert (done.returncode, done.stdout, done.stderr) == (
        answer[0],
        f'gate "command": {answer[1]}\n',
        f"turngate gate: {NOT_JSON}\n",
    )


def test_a_hook_input_of_70_megabytes_is_not_read(project: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.json"
    long.write_text('{"session_id": "' + "x" * 70_000_000 + '"}')
    with long.open() as stdin:
        done = subprocess.run(
            [*TURNGATE, "gate", "--", "true"],
            cwd=project,
            stdin=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
    answer = (0, 'gate "command": passed\n', f"turngate gate: {TOO_LONG}\n")
    assert (done.returncode, done.stdout, done.stderr) == answer


@pytest.mark.parametrize("stdin", ["closed", "never ends"])
def test_no_stdin_makes_it_wait_forever(project: Path, stdin: str) -> None:
    redirect = {"closed": "<&-", "never ends": "< /dev/zero"}[stdin]
    command = f"exec {' '.join(TURNGATE)} gate -- true {redirect}"
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=project,
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_TIMEOUT_S,
    )
    assert (done.returncode, done.stdout) == (0, 'gate "command": passed\n')


def test_a_hook_input_is_read_from_a_pipe_that_stays_open(project: Path) -> None:
    process = subprocess.Popen(
        [*TURNGATE, "gate", "--", "true"],
        cwd=project,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(claude_input(project)))
    process.stdin.flush()
    assert process.wait(HANG_TIMEOUT_S) == 0
    assert process.communicate()[0] == "{}\n"


def test_an_answer_that_cannot_be_written_is_1(project: Path) -> None:
    command = f"exec {' '.join(TURNGATE)} gate -- true > /dev/full"
    done = subprocess.run(
        ["sh", "-c", command],
        input=json.dumps(claude_input(project)),
        capture_output=True,
        text=True,
        check=False,
    )
    why = "turngate gate: the answer could not be written to stdout (No space left on device)\n"
    assert (done.returncode, done.stderr) == (1, why)


def break_folder(state: Path) -> None:
    state.write_text("not a folder")


def break_files(state: Path) -> None:
    for path in [path for path in state.joinpath("gates").rglob("*") if path.is_file()]:
        path.write_bytes(b"\xff{\0")


def make_states_folders(state: Path) -> None:
    for path in [path for path in state.joinpath("gates").rglob("*") if path.is_file()]:
        path.unlink()
        path.mkdir()


@pytest.mark.parametrize("breaks", [break_folder, break_files, make_states_folders])
def test_a_broken_state_folder_only_means_that_nothing_is_cached(
    repository: Path, state: Path, breaks: Callable[[Path], None]
) -> None:
    if breaks is not break_folder:
        assert answer_of_process(COUNT, claude_input(repository)) == (0, {}, "")
    before = runs(repository) if breaks is not break_folder else 0
    breaks(state)
    assert answer_of_process(COUNT, claude_input(repository)) == (0, {}, "")
    assert runs(repository) == before + 1


def test_the_state_of_old_sessions_is_removed(repository: Path, state: Path) -> None:
    answer_of_process(COUNT, claude_input(repository, session_id="old"))
    [old] = {path.parent for path in state.glob("gates/*/*.stamp")}
    month_ago = time.time() - 31 * 24 * 3600
    os.utime(old, (month_ago, month_ago))
    answer_of_process(COUNT, claude_input(repository, session_id="new"))
    assert len({path.parent for path in state.glob("gates/*/*.stamp")}) == 1
    assert not old.exists()


def test_the_own_limit_is_below_that_of_the_hook(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TURNGATE_HOOK_TIMEOUT", "1")
    answer = could_not_run("command", "it did not end within 1 s")
    assert answer_of_process(("--", "sleep", "600"), claude_input(project)) == (0, answer, "")


@pytest.mark.parametrize(
    ("fields", "environ", "seconds"),
    [
        ({}, {}, 54),
        ({"prompt_id": "p"}, {}, 540),
        ({"turn_id": "t", "model": "m"}, {}, 540),
        ({"hook_event_name": "AfterAgent"}, {"CLAUDE_PROJECT_DIR": "/p"}, 54),
        ({"timestamp": "t", "stop_reason": "end_turn"}, {}, 27),
        ({"conversation_id": "c"}, {}, 54),
        ({"prompt_id": "p"}, {"TURNGATE_HOOK_TIMEOUT": "100"}, 90),
        ({}, {"TURNGATE_HOOK_TIMEOUT": "soon"}, 54),
    ],
)
def test_the_own_limit_is_below_that_of_the_host(
    fields: dict[str, object], environ: dict[str, str], seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert gate_command._time_limit(fields) == seconds


BLOCK = {"decision": "block", "reason": "`false`: exit code 1"}


@pytest.mark.parametrize(
    ("host", "event", "answer"),
    [
        ("claude", "Stop", BLOCK),
        ("codex", "Stop", BLOCK),
        ("gemini", "AfterAgent", BLOCK),
        ("qwen", "SubagentStop", BLOCK),
        ("copilot", "camelcase-agentStop", BLOCK),
    ],
)
def test_a_gate_blocks_on_every_host(project: Path, host: str, event: str, answer: dict[str, str]) -> None:
    fields = {**recorded(host, event), "cwd": str(project)}
    code, out, err = turngate("gate", "--", "false", stdin=json.dumps(fields))
    assert (code, json.loads(out), err) == (0, answer, "")


def test_a_gate_blocks_cursor_and_droid_as_documented(project: Path) -> None:
    cursor = {"conversation_id": "c", "hook_event_name": "stop", "workspace_roots": [str(project)]}
    droid = {"sessionId": "s", "hookEventName": "Stop", "stopHookActive": False, "cwd": str(project)}
    assert [turngate("gate", "--", "false", stdin=json.dumps(each))[:2] for each in (cursor, droid)] == [
        (0, '{"followup_message":"`false`: exit code 1"}\n'),
        (0, '{"decision":"block","reason":"`false`: exit code 1"}\n'),
    ]


@pytest.mark.parametrize(
    ("host", "stdout"),
    [
        ("codex", '{"continue":false,"stopReason":"used up"}'),
        ("qwen", '{"systemMessage":"halted by a hook: used up"}'),
        ("copilot", '{"type":"progress","message":"halted by a hook: used up"}'),
        ("cursor", ""),
    ],
)
def test_a_limit_ends_the_turn_only_where_the_host_has_such_an_answer(host: str, stdout: str) -> None:
    assert gate_command._answer_host(host, {"continue": False, "stopReason": "used up"}) == stdout


@pytest.mark.req("X-37")
def test_the_engine_tells_a_gate_how_much_time_it_has(project: Path) -> None:
    hooks = [{"type": "command", "command": "echo $TURNGATE_HOOK_TIMEOUT >&2; exit 2", "timeout": 500}]
    write(project, {".turngate/settings.json": json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}})})
    [run] = json.loads(turngate("fire", "Stop", "--project", str(project), "--json")[1])["runs"]
    assert 0 < float(run["reason"]) <= 500


@pytest.mark.req("T-3")
def test_the_output_of_both_streams_is_sent_whatever_a_command_redirects(project: Path) -> None:
    write(project, {"npm": "#!/bin/sh\necho 'FAIL shop.test.js'; echo '1 failed' >&2; exit 1\n"})
    (project / "npm").chmod(0o755)
    answer = {
        "decision": "block",
        "reason": "`./npm test 2>&1 >&2`: exit code 1\nFAIL shop.test.js\n1 failed",
    }
    code, got, err = answer_of_process(("--", "./npm test 2>&1 >&2"), claude_input(project))
    lines = sorted(got["reason"].splitlines()[1:])
    assert (code, {**got, "reason": "\n".join([got["reason"].splitlines()[0], *lines[::-1]])}, err) == (
        0,
        answer,
        "",
    )


@pytest.mark.req("T-1", "S3-39")
def test_a_chain_that_fails_blocks_only_as_a_gate(project: Path) -> None:
    write(
        project, {"npm": '#!/bin/sh\necho "npm $2"; test "$2" != test || { echo "1 failed" >&2; exit 1; }\n'}
    )
    (project / "npm").chmod(0o755)
    chain = "./npm run lint && ./npm run typecheck && ./npm run test"
    gate = " ".join([*TURNGATE, "gate", "--", f"'{chain}'"])
    outcomes = []
    for command in (chain, gate):
        hooks = [{"type": "command", "command": command, "timeout": 120}]
        write(project, {".turngate/settings.json": json.dumps({"hooks": {"Stop": [{"hooks": hooks}]}})})
        [run] = json.loads(turngate("fire", "Stop", "--project", str(project), "--json")[1])["runs"]
        outcomes.append((run["outcome"], run["reason"]))
    assert outcomes[0][0] == "failed"
    assert outcomes[1] == ("block", f"`{chain}`: exit code 1\nnpm lint\nnpm typecheck\nnpm test\n1 failed")


def test_a_gate_runs_in_its_project_also_if_the_current_folder_was_deleted(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone} && rmdir {gone} && exec {sys.executable} -m turngate gate -- false"
    done = subprocess.run(
        ["sh", "-c", script],
        input=json.dumps(claude_input(project)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)) == (
        0,
        {"decision": "block", "reason": "`false`: exit code 1"},
    )
