"""`turngate log`: hook runs and verdicts of a session, also while they are written."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.scripted_run import next_line, turngate
from tests.support.sessions import BLOCK_COMMAND, block_first
from tests.support.timeouts import HANG_TIMEOUT_S
from turngate.cli.commands.log import JournalTail
from turngate.cli.main import main
from turngate.state.journal import Journal


def log(capfd: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["log", *words]) == 0
    shown = capfd.readouterr().out.splitlines()
    return [re.sub(r"^\d\d:\d\d:\d\d|\d+\.\d\d s", "#", line) for line in shown]


def test_the_log_shows_every_run_and_every_verdict(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(block_first(1), id="tests"))
    turngate(capfd, project, "go", "--session", "s-1")
    expected = [
        "#    blocked #  tests  run the tests",
        "#  Stop: blocked: run the tests",
        "#    passed #  tests",
        "#  Stop: allowed",
    ]
    squeezed = [re.sub(r" +#", " #", line) for line in log(capfd)]
    assert squeezed == [re.sub(r" +#", " #", line) for line in expected]
    assert log(capfd, "--session", "s-1") == log(capfd)


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
    first, _ = log(capfd)
    assert re.sub(r"[\d,]+ tokens", "N tokens", re.sub(r" +#", " #", first)) == (
        "#    passed #  Was it tested?  yes  (N tokens)"
    )


def test_the_log_is_of_the_newest_session_unless_one_is_named(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number, hook in enumerate(("true", "false")):
        write_settings(project, "turngate", stop_hooks(hook))
        turngate(capfd, project, "go", "--session", f"s-{number}")
        os.utime(state / "sessions" / f"s-{number}" / "journal.jsonl", (number, number))
    assert "failed" in log(capfd)[0]
    assert "passed" in log(capfd, "--session", "s-0")[0]


def test_the_log_follows_what_is_written(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    turngate(capfd, project, "go", "--session", "s-1")
    following = subprocess.Popen(
        [sys.executable, "-m", "turngate", "log", "--follow", "--session", "s-1"], stdout=subprocess.PIPE
    )
    try:
        assert b"passed" in next_line(following)
        assert b"Stop: allowed" in next_line(following)
        write_settings(project, "turngate", stop_hooks(BLOCK_COMMAND))
        turngate(capfd, project, "go", "--session", "s-1", "--limit", "0")
        assert b"blocked" in next_line(following)
        assert b"Stop: blocked: " in next_line(following)
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
    for number in (5, 6, 7):  # twice between two looks
        write(f'{{"n":{number}}}\n', "no JSON\n[]\n")
        if number < 7:
            put_aside()
    found.append(news())
    tail.close()
    assert found == [[], [1], [2], ["é", 3, 4], [5, 6, 7]]


def test_the_log_ends_when_its_reader_is_gone(state: Path) -> None:
    journal = Journal(str(state))
    journal.record("s", {"kind": "verdict", "event": "Stop", "verdict": "stop"})
    journal.close()
    words = [sys.executable, "-m", "turngate", "log", "--follow", "--session", "s"]
    following = subprocess.Popen(words, stdout=subprocess.PIPE)
    try:
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
    *runs, verdict = (re.sub(r" +#", " #", line) for line in log(capfd))
    assert sorted(runs) == [
        f"#    failed #  {name}  exit code 1, nothing on stderr" for name in ("lint", "must")
    ]
    assert verdict.startswith("#  Stop: blocked (not enforced: lint): ")
