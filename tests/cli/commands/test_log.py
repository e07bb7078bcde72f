"""`turngate log`: hook runs and verdicts of a session, also while they are written."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.cli import start_turngate
from tests.support.left_behind import until
from tests.support.scripted_run import next_line, scripted, turngate
from tests.support.sessions import BLOCK_COMMAND, block_first, hang, say, without_starts
from tests.support.subagents import Gate, Parent, parent
from tests.support.timeouts import HANG_TIMEOUT_S
from tests.support.warm_cli import Program
from turngate.cli.commands.log import JournalTail
from turngate.cli.main import main
from turngate.core.hooks.kinds import CommandHook
from turngate.plugins.handlers import PluginHook, Plugins
from turngate.state.journal import Journal
from turngate.state.paths import state_folder


def log(capfd: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return the lines without times and blanks of alignment."""
    assert main(["log", *words]) == 0
    shown = capfd.readouterr().out.splitlines()
    lines = [re.sub(r"^(\d\d:\d\d:\d\d|\d{4}-\d\d-\d\d)|\d+\.\d\d s", "#", line) for line in shown]
    return [re.sub(r" +#", " #", line) for line in lines]


def test_the_log_shows_every_run_and_every_verdict(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(block_first(1), id="tests"))
    turngate(capfd, project, "go", "--session", "s-1")
    assert log(capfd) == [
        f"#  {project}  session s-1",
        '#    blocked #  "tests"  run the tests',
        '#  Stop: blocked by "tests"',
        '#    passed #  "tests"',
        "#  Stop: allowed",
    ]
    assert log(capfd, "--session", "s-1") == log(capfd, "s-1") == log(capfd)


NUMBERS = "seq 12 >&2; exit 2"


@pytest.mark.parametrize(
    ("command", "words", "below"),
    [
        ("printf '=====\\nFAIL: a\\n-----\\nFAILED\\n' >&2; exit 2", (), ["FAILED"]),
        (NUMBERS, (), [*map(str, range(2, 11)), "… 2 more lines: turngate log -v"]),
        (NUMBERS, ("-v",), list(map(str, range(1, 13)))),
        ("echo one; exit 2", ("-v",), []),
    ],
    ids=["rulers", "bounded", "verbose", "one line"],
)
def test_the_log_shows_the_further_lines_of_a_reason(
    project: Path, capfd: pytest.CaptureFixture[str], command: str, words: tuple[str, ...], below: list[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(command, id="tests"))
    turngate(capfd, project, "go", "--session", "s-1", "--limit", "0")
    shown = log(capfd, *words)
    verdict = next(number for number, line in enumerate(shown) if line.startswith("#  Stop:"))
    assert shown[2:verdict] == [f"{'':14}{line}" for line in below]


def test_the_log_says_that_a_turn_was_ended_at_the_limit(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks(BLOCK_COMMAND, id="tests"))
    turngate(capfd, project, "go", "--session", "s-1", "--limit", "1")
    assert log(capfd)[-2:] == [
        '#  Stop: blocked by "tests"',
        '#  turn ended (capped) after 1 continuation (the limit). Still blocked by: "tests".',
    ]


def test_the_verdict_names_every_hook_that_blocked_and_a_row_shows_a_line_with_words(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ruler = "printf '=====\\nFAIL: test_total\\n-----\\nFAILED (failures=1)\\n' >&2; exit 2"
    tests, lint = (
        {"type": "command", "id": name, "command": command}
        for name, command in (("tests", ruler), ("lint", "echo '3 problems' >&2; exit 2"))
    )
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [tests, lint]}]}})
    turngate(capfd, project, "go", "--session", "s-1", "--limit", "0")
    shown = log(capfd)
    assert sorted(shown[1:4]) == [
        "              FAILED (failures=1)",
        '#    blocked #  "lint"  3 problems',
        '#    blocked #  "tests"  FAIL: test_total',
    ]
    assert shown[4] == '#  Stop: blocked by "tests", "lint"'


@pytest.mark.parametrize("word", ["ask", "defer"])
def test_the_log_shows_that_a_hook_leaves_a_tool_call_to_the_user(
    project: Path, capfd: pytest.CaptureFixture[str], word: str
) -> None:
    answer = {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": word}}
    hook = {"type": "command", "command": say(answer), "id": "release"}
    write_settings(project, "turngate", {"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [hook]}]}})
    call = {"tool": "Bash", "input": {"command": "true"}}
    turngate(capfd, project, "go", "--session", "s-1", "--allow", "Bash", replies=(call, "done"))
    assert log(capfd)[1:3] == [f'#    {word} #  "release"', f"#  PreToolUse: {word}"]


def test_a_stop_that_only_advice_continued_shows_the_advice(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    advice = {"hookSpecificOutput": {"hookEventName": "Stop", "additionalContext": "mind the docs"}}
    write_settings(project, "turngate", stop_hooks(say(advice), id="tip"))
    turngate(capfd, project, "go", "--session", "s-1")
    assert log(capfd)[2] == "#  Stop: blocked: mind the docs"


def test_the_log_says_that_the_newest_session_ran_no_hooks(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "turngate", stop_hooks("true", id="tests"))
    turngate(capfd, project, "go", "--session", "s-1")
    monkeypatch.chdir(project)
    assert (main(["log"]), capfd.readouterr().err) == (0, "")
    (project / ".turngate" / "settings.json").write_text("{")
    turngate(capfd, project, "go", "--session", "s-2")
    later = os.stat(state / "sessions" / "s-1" / "journal.jsonl").st_mtime + 5
    os.utime(state / "sessions" / "s-2" / "chat.jsonl", (later, later))
    assert main(["log"]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines()[0].endswith(f"  {project}  session s-1")
    assert err == (
        "no hook ran in the newest session, s-2; this is the session whose hooks ran last "
        "(`turngate check` reports what is configured)\n"
    )
    assert (main(["log", "--session", "s-1"]), capfd.readouterr().err) == (0, "")


def test_the_log_says_that_a_turn_was_halted(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(say({"continue": False, "stopReason": "enough"}), id="t"))
    turngate(capfd, project, "go", "--session", "s-1")
    assert log(capfd)[-2:] == ["#  Stop: halted by a hook: enough", "#  turn ended (halted): enough"]


def test_a_heading_names_each_project_and_one_of_them_can_be_selected(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for folder in (project, other, project):
        write_settings(folder, "turngate", stop_hooks("true", id=folder.name))
        main(["fire", "Stop", "--project", str(folder)])
    capfd.readouterr()
    here, there = (
        [f"#  {folder}  session fire", f'#    passed #  "{folder.name}"', "#  Stop: allowed"]
        for folder in (project, other)
    )
    monkeypatch.chdir(tmp_path)
    assert log(capfd) == [*here, *there, *here]
    assert log(capfd, "--project", str(other)) == there
    monkeypatch.chdir(project)
    assert log(capfd) == [*here, *here[1:]]


def test_a_project_in_which_no_hook_ran_has_no_log(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    main(["fire", "Stop", "--project", str(project)])
    capfd.readouterr()
    assert main(["log", "--project", str(tmp_path)]) == 64
    assert capfd.readouterr().err == (
        f"turngate: no hook has run in {tmp_path} yet; `turngate fire Stop --project {tmp_path}` runs them once\n"
    )


def test_the_log_as_json_has_one_object_per_line(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(block_first(1), id="tests"))
    turngate(capfd, project, "go", "--session", "s-1")
    assert main(["log", "--json"]) == 0
    records = without_starts(map(json.loads, capfd.readouterr().out.splitlines()))
    assert [(r["kind"], r["project"], r["session_id"]) for r in records] == [
        (kind, str(project), "s-1") for kind in ("hook", "verdict", "hook", "verdict", "turn_end")
    ]
    assert {k: records[-1][k] for k in ("ended_by", "continuations", "reason")} == {
        "ended_by": "allowed",
        "continuations": 1,
        "reason": None,
    }


# Runs without an end


def stop_of_a_host(project: Path) -> Program:
    """Start `turngate hook` with a gate that does not end, and wait until its start is recorded."""
    gate = {"type": "gate", "id": "tests", "command": hang()}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [gate]}]}})
    fields = {
        "hook_event_name": "Stop",
        "session_id": "s-1",
        "turn_id": "1",
        "model": "m",
        "cwd": str(project),
    }
    program = Program(["hook"], project, stdin=json.dumps(fields))
    until(
        lambda: any(
            "start" in path.read_text() for path in Path(state_folder()).glob("sessions/*/journal.jsonl")
        )
    )
    return program


def test_the_log_shows_a_gate_that_runs_was_interrupted_or_did_not_end(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = []
    for number in (signal.SIGTERM, signal.SIGKILL):
        program = stop_of_a_host(project)
        shown.append(log(capfd)[-1])
        program.send_signal(number)
        program.communicate()
        shown.append(log(capfd)[-1])
        (Path(state_folder()) / "sessions/s-1/journal.jsonl").unlink()
    running = f'#    {"running":<35}"tests"'
    assert shown == [
        running,
        '#    interrupted #  "tests"',
        running,
        f'#    {"did not end":<35}"tests"',
    ]


def test_a_follower_sees_once_that_a_gate_did_not_end(project: Path) -> None:
    program = stop_of_a_host(project)
    with start_turngate("log", "--follow", "--session", "s-1") as follower:
        program.kill()
        program.communicate()
        shown = [follower.stdout.readline(), follower.stdout.readline()]
        journal = Journal(state_folder(), str(project))
        journal.record("s-1", {"kind": "verdict", "event": "Stop", "verdict": "stop"})
        journal.close()
        shown.append(follower.stdout.readline())
    assert [line.split(maxsplit=1)[1].strip() for line in shown] == [
        f"{project}  session s-1",
        f'{"did not end":<35}"tests"',
        "Stop: allowed",
    ]


# Ids


@pytest.fixture
def three_sessions(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks("true", id="tests"))
    for name in ("3fa9-1", "3fa9-2", "b0"):
        turngate(capfd, project, f"say {name}", "--session", name, replies=(f"this is {name}",))


@pytest.mark.usefixtures("three_sessions")
@pytest.mark.parametrize(("given", "found"), [("b", "b0"), ("3fa9-1", "3fa9-1"), ("3fa9-2", "3fa9-2")])
def test_the_beginning_of_an_id_is_enough(
    project: Path, capfd: pytest.CaptureFixture[str], given: str, found: str
) -> None:
    assert log(capfd, given)[0] == log(capfd, "--session", given)[0] == f"#  {project}  session {found}"
    assert main(["sessions", "show", given]) == 0
    assert capfd.readouterr().out == f"you: say {found}\nagent: this is {found}\n"
    code, out, _ = turngate(capfd, project, "and?", "--resume", "--session", given, replies=("more",))
    assert (code, out) == (0, "more\n")
    assert main(["sessions", "show", found]) == 0
    assert capfd.readouterr().out.endswith("you: and?\nagent: more\n")


@pytest.mark.usefixtures("three_sessions")
@pytest.mark.parametrize(
    "words",
    [
        ["log", "3f"],
        ["log", "--session", "3f"],
        ["sessions", "show", "3f"],
        ["run", "-p", "x", "--resume", "--session", "3f"],
    ],
)
def test_an_ambiguous_beginning_lists_the_sessions(
    project: Path, capfd: pytest.CaptureFixture[str], words: list[str]
) -> None:
    more = ["--model", scripted(project, "no"), "--project", str(project)] if words[0] == "run" else []
    assert main([*words, *more]) == 64
    said = "turngate: 3f matches 2 sessions; there are\n  3fa9-1\n  3fa9-2\n"
    assert capfd.readouterr() == ("", said)


@pytest.mark.usefixtures("three_sessions")
@pytest.mark.parametrize("words", [["log", "x"], ["log", "--session", "x"], ["sessions", "show", "x"]])
def test_an_id_that_nothing_has_is_an_error(capfd: pytest.CaptureFixture[str], words: list[str]) -> None:
    assert main(words) == 64
    assert capfd.readouterr().err == "turngate: there is no session x; `turngate sessions` lists them\n"


def test_the_log_shows_a_question_and_what_its_answer_took(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hook = {"type": "prompt", "prompt": "Was it\ntested?"}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [hook]}]}})
    script = {"main": ["done"], "judge": ['{"ok": true, "reason": "yes"}']}
    (project / "s.json").write_text(json.dumps(script))
    assert (
        main(
            ["run", "-p", "go", "--project", str(project), "--trust", "--model", f"scripted:{project}/s.json"]
        )
        == 0
    )
    capfd.readouterr()
    _, first, _ = log(capfd)
    assert re.sub(r"[\d,]+ tokens", "N tokens", first) == '#    passed #  "Was it tested?"  yes  (N tokens)'


def test_the_log_is_of_the_newest_session_unless_one_is_named(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number, hook in enumerate(("true", "false")):
        write_settings(project, "turngate", stop_hooks(hook))
        turngate(capfd, project, "go", "--session", f"s-{number}")
        os.utime(state / "sessions" / f"s-{number}" / "journal.jsonl", (number, number))
    assert "failed" in log(capfd)[1]
    assert "passed" in log(capfd, "--session", "s-0")[1]


def test_the_log_follows_what_is_written(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    turngate(capfd, project, "go", "--session", "s-1")
    following = subprocess.Popen(
        [sys.executable, "-m", "turngate", "log", "--follow", "--session", "s-1"], stdout=subprocess.PIPE
    )
    try:
        assert b"session s-1" in next_line(following)
        assert b"passed" in next_line(following)
        assert b"Stop: allowed" in next_line(following)
        write_settings(project, "turngate", stop_hooks(BLOCK_COMMAND))
        turngate(capfd, project, "go", "--session", "s-1", "--limit", "0")
        assert b"blocked" in next_line(following)
        assert b"Stop: blocked by " in next_line(following)
    finally:
        following.kill()
        following.communicate()


def test_the_log_misses_nothing_when_the_journal_is_put_aside_and_keeps_half_lines(tmp_path: Path) -> None:
    newest, older = tmp_path / "journal.jsonl", tmp_path / "journal.1.jsonl"
    tail = JournalTail(str(tmp_path))

    def write(*texts: str) -> None:
        with newest.open("a") as file:
            file.write("".join(texts))

    def put_aside() -> None:
        newest.replace(older)

    def news() -> list[Any]:
        return [line["n"] for line in tail.new_records()]

    found = [news()]
    write('{"n":1}\n{"n"')
    found.append(news())
    write(":2}\n", '{"n":"é')
    found.append(news())
    write('"}\n{"n":3}\n')
    put_aside()
    write('{"n":4}\n')
    found.append(news())
    write('{"n":5}\n', "no JSON\n[]\n")
    put_aside()
    write('{"n":6}\n')
    found.append(news())
    assert found == [[], [1], [2], ["é", 3, 4], [5, 6]]


def test_the_log_ends_when_its_reader_is_gone(state: Path) -> None:
    journal = Journal(str(state))
    journal.record("s", {"kind": "verdict", "event": "Stop", "verdict": "stop"})
    journal.close()
    words = [sys.executable, "-m", "turngate", "log", "--follow", "--session", "s"]
    following = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
        assert next_line(following).endswith(b"  session s\n")
        assert next_line(following).endswith(b"  Stop: allowed\n")
        assert following.stdout is not None
        following.stdout.close()
        journal.record("s", {"kind": "verdict", "event": "Stop", "verdict": "stop"})
        journal.close()
        assert following.wait(timeout=HANG_TIMEOUT_S) == 141
    finally:
        following.kill()
        following.wait()


def test_the_verdict_names_the_hooks_that_were_not_enforced(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hooks = [
        {"type": "command", "id": "lint", "command": "exit 1"},
        {"type": "command", "id": "must", "command": "exit 1", "blocking": True},
    ]
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": hooks}]}})
    main(["fire", "Stop", "--project", str(project)])
    capfd.readouterr()
    _, *runs, verdict = log(capfd)
    assert sorted(runs) == [
        f'#    failed #  "{name}"  exit code 1, nothing on stderr' for name in ("lint", "must")
    ]
    assert verdict.startswith('#  Stop: blocked by "must" (not enforced: "lint")')


# Warnings about plugins and subagents


def warnings(capfd: pytest.CaptureFixture[str], scene: Parent) -> list[str]:
    capfd.readouterr()
    shown = log(capfd, "--session", scene.session.id)
    return [line.removeprefix("#  ! ") for line in shown if line.startswith("#  ! ")]


@pytest.mark.req("S4-22", "S4-31")
def test_the_log_has_a_handler_that_failed_at_a_stop(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scene = parent(project, "one", gate=Gate(RuntimeError("broken")))
    scene.play()
    assert (
        warnings(capfd, scene)
        == scene.notices
        == ["plugin gate failed at subagent_stopping: RuntimeError: broken"]
    )


@pytest.mark.req("S4-25", "C-18")
def test_the_log_has_an_override_at_the_limit_and_names_the_run(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = rule(CommandHook("echo no >&2; exit 2", id="gate"), "SubagentStop")
    scene = parent(project, "answer", gate=Gate(), rules=[asked], said={"child_limit": 1})
    scene.play()
    last = scene.runs()[-1]
    names = f"runId={last.id} childKey={last.agent_id}"
    assert (
        warnings(capfd, scene)
        == scene.notices
        == [
            'subagent general-purpose: Turn ended after 1 continuation (the limit). Still blocked by: "gate".',
            f"subagent_stopping hook skipped: steerCount=1 >= maxSteers=1 {names}",
        ]
    )


@pytest.mark.parametrize("name", ["stop", "subagent_stop", "subagent_ended"])
def test_the_log_has_an_observer_that_failed(
    project: Path, capfd: pytest.CaptureFixture[str], name: PluginHook
) -> None:
    plugins = Plugins()

    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    plugins.on(name, fail, plugin="metrics")
    scene = parent(project, "one", plugins=plugins)
    scene.play()
    assert warnings(capfd, scene) == [f"plugin metrics failed at {name}: RuntimeError: broken"]


def test_the_id_of_a_subagent_finds_its_session_and_its_transcript(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scene = parent(project, "counted", rules=[rule("true", "SubagentStop")])
    scene.play()
    run = scene.runs()[-1]
    assert (
        log(capfd, run.id[:8])[0]
        == log(capfd, "--session", run.chain[:8])[0]
        == f"#  {project}  session {scene.session.id}"
    )
    capfd.readouterr()
    assert main(["sessions", "show", run.chain[:8]]) == 0
    assert capfd.readouterr().out.splitlines()[-1] == "agent: counted"


@pytest.mark.parametrize("given", ["", " "])
def test_an_empty_session_id_is_a_usage_error(capfd: pytest.CaptureFixture[str], given: str) -> None:
    said = "turngate: the id is empty; give the beginning of an id: `turngate sessions` lists them\n"
    assert (main(["log", "--session", given]), capfd.readouterr().err) == (64, said)
    assert (main(["log", given]), capfd.readouterr().err) == (64, said)


def test_two_ids_for_one_log_are_a_usage_error(capfd: pytest.CaptureFixture[str]) -> None:
    said = "turngate: two sessions are given, a and --session b; give one of them\n"
    assert (main(["log", "a", "--session", "b"]), capfd.readouterr().err) == (64, said)


GOOD = {"kind": "verdict", "event": "Stop", "verdict": "stop", "time": 1.0, "session_id": "s-1"}
BAD_LINES = [
    "no JSON",
    "[]",
    "[" * 100_000,
    *(
        json.dumps({**GOOD, **fields})
        for fields in (
            {"time": "noon"},
            {"time": 1e300},
            {"time": float("nan")},
            {"time": float("-inf")},
            {"unenforced": 5},
            {"blocked_by": [[]], "unenforced": ["x"]},
            {"kind": "run", "hook": "x"},
            {"kind": "run", "hook": {"id": 5}},
            {"kind": "run", "hook": {}, "outcome": []},
            {"kind": "run", "hook": {}, "outcome": "allow", "seconds": "x"},
            {"kind": "run", "hook": {}, "outcome": "allow", "evaluation": {"input_tokens": "x"}},
            {"kind": "notice", "text": 5},
            {"kind": "turn_end", "reason": 5},
            {"kind": "start"},
            {"kind": "start", "run": [], "process": [1, "x"]},
            {"kind": "start", "run": "x", "process": ["../x", "x"]},
            {"project": 5},
        )
    ),
]


def test_lines_that_cannot_be_read_are_counted_and_skipped(
    state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    journal = state / "sessions/s-1/journal.jsonl"
    journal.parent.mkdir(parents=True)
    lines = [json.dumps(GOOD), *BAD_LINES, "", json.dumps({**GOOD, "time": 2.0})]
    journal.write_text("\n".join(lines) + "\n")
    assert main(["log", "--session", "s-1"]) == 0
    out, err = capfd.readouterr()
    assert [line.partition("  ")[2] for line in out.splitlines()] == ["session s-1", *["Stop: allowed"] * 2]
    assert err == f"! {len(BAD_LINES)} lines of the journal could not be read: {journal}\n"


def test_a_line_without_an_end_takes_bounded_memory(
    state: Path, project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    journal = state / "sessions/s-1/journal.jsonl"
    journal.parent.mkdir(parents=True)
    with journal.open("wb") as file:
        file.truncate(1200 * 1024 * 1024)  # more than the process may have; zeros take no room on the disk
        file.seek(0, os.SEEK_END)
        record = json.dumps({**GOOD, "project": str(project)}, separators=(",", ":"))
        file.write(f"\n{record}\n".encode())
    command = [sys.executable, "-m", "turngate", "log", "--project", str(project)]
    limited = f"ulimit -v {1024 * 1024}; exec {shlex.join(command)}"
    done = subprocess.run(["/bin/sh", "-c", limited], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.splitlines()[1:], done.stderr) == (
        0,
        [f"{done.stdout.splitlines()[1][:8]}  Stop: allowed"],
        f"! 1 line of the journal could not be read: {journal}\n",
    )


def test_the_log_of_a_journal_that_is_being_rotated_is_found(
    state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    older = state / "sessions/s-1/journal.1.jsonl"  # the next line creates the newest one again
    older.parent.mkdir(parents=True)
    older.write_text(json.dumps(GOOD) + "\n")
    (older.parent / "chat.jsonl").write_text("{}\n")
    later = older.stat().st_mtime + 5
    os.utime(older.parent / "chat.jsonl", (later, later))
    assert main(["log"]) == 0
    out, err = capfd.readouterr()
    shown = [line.partition("  ")[2] for line in out.splitlines()]
    assert (shown, err) == (["session s-1", "Stop: allowed"], "")


def test_the_log_has_the_records_of_a_journal_that_was_put_aside_before_the_next_one_exists(
    tmp_path: Path,
) -> None:
    older = tmp_path / "journal.1.jsonl"
    tail = JournalTail(str(tmp_path))
    found = []
    for number in (1, 2):
        (tmp_path / "new").write_text(f'{{"n":{number}}}\n')
        (tmp_path / "new").replace(older)
        found.append([record["n"] for record in tail.new_records()])
    assert found == [[1], [2]]


# --follow


def follow(*words: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "turngate", "log", "--follow", *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def write_verdict(state: Path, session: str, project: Path) -> None:
    journal = Journal(str(state), str(project))
    journal.record(session, {"kind": "verdict", "event": "Stop", "verdict": "stop"})
    journal.close()


def read_lines(following: "subprocess.Popen[bytes]", count: int) -> list[str]:
    """Return the next lines: of a heading the session, of another line what follows the time."""
    lines = [next_line(following).decode().rstrip("\n").split("  ") for _ in range(count)]
    return [line[-1] for line in lines]


def test_ctrl_c_ends_the_log_without_a_traceback(project: Path, state: Path) -> None:
    write_verdict(state, "s-1", project)
    following = follow("--session", "s-1")
    assert read_lines(following, 2) == ["session s-1", "Stop: allowed"]
    following.send_signal(signal.SIGINT)
    _, err = following.communicate(timeout=HANG_TIMEOUT_S)
    assert (following.returncode, err) == (130, b"")


def test_a_log_of_no_session_waits_for_the_first_one(project: Path, state: Path) -> None:
    following = follow("--project", str(project))
    try:
        assert following.stderr is not None
        assert following.stderr.readline().decode() == "no hook has run yet; waiting for the first …\n"
        write_verdict(state, "s-1", project)
        assert read_lines(following, 2) == ["session s-1", "Stop: allowed"]
    finally:
        following.kill()
        following.communicate()


def test_the_log_follows_also_sessions_that_begin_later_or_go_on(project: Path, state: Path) -> None:
    other = project.parent / "other"
    other.mkdir()
    for session in ("old", "newest"):
        write_verdict(state, session, project)
    os.utime(state / "sessions" / "old" / "journal.jsonl", (1000, 1000))
    following = follow("--project", str(project))
    try:
        shown = [read_lines(following, 2)]
        write_verdict(state, "of-another-project", other)
        write_verdict(state, "later", project)
        shown.append(read_lines(following, 2))
        write_verdict(state, "old", project)  # only the new line is shown
        shown.append(read_lines(following, 2))
        write_verdict(state, "newest", project)
        shown.append(read_lines(following, 2))
    finally:
        following.kill()
        following.communicate()
    sessions = ("newest", "later", "old", "newest")
    assert shown == [[f"session {session}", "Stop: allowed"] for session in sessions]


def test_the_log_of_one_session_shows_no_other(project: Path, state: Path) -> None:
    write_verdict(state, "s-1", project)
    following = follow("--session", "s-1")
    try:
        shown = read_lines(following, 2)
        write_verdict(state, "s-2", project)
        write_verdict(state, "s-1", project)
        shown += read_lines(following, 1)
    finally:
        following.kill()
        following.communicate()
    assert shown == ["session s-1", "Stop: allowed", "Stop: allowed"]


def test_the_log_goes_on_after_the_journal_was_removed(project: Path, state: Path) -> None:
    write_verdict(state, "s-1", project)
    following = follow("--session", "s-1")
    try:
        shown = read_lines(following, 2)
        (state / "sessions" / "s-1" / "journal.jsonl").unlink()
        write_verdict(state, "s-1", project)
        shown += read_lines(following, 1)
    finally:
        following.kill()
        following.communicate()
    assert shown == ["session s-1", "Stop: allowed", "Stop: allowed"]
