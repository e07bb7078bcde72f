"""`turngate stats`, and the marks of `turngate log`."""

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.scripted_run import turngate
from tests.support.sessions import BLOCK_COMMAND, block_first
from turngate.cli.main import main


def stats(capfd: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """Return the lines without dates, times and alignment."""
    assert main(["stats", *words]) == 0
    shown = re.sub(r"\d{4}-\d\d-\d\d", "DATE", capfd.readouterr().out)
    return [re.sub(r" +", " ", re.sub(r"\d+\.\d\d s", "S", line)) for line in shown.splitlines()]


def test_the_stops_of_a_project_are_counted(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(block_first(1), id="tests"))
    for session in ("s-1", "s-2"):
        turngate(capfd, project, "go", "--session", session)
    assert stats(capfd, "--project", str(project)) == [
        f"3 stops in {project} in 2 sessions, DATE to DATE: 1 blocked",
        "",
        "GATE RUNS PASSED BLOCKED MEDIAN 95 % BLOCKED PER WEEK",
        "tests 3 2 1 S S █",
    ]


def test_columns_appear_with_the_first_number_and_gates_can_be_chosen(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    settings: dict[str, Any] = stop_hooks(BLOCK_COMMAND, id="tests")
    settings["hooks"]["Stop"].append({"hooks": [{"type": "command", "id": "lint", "command": "exit 1"}]})
    write_settings(project, "turngate", settings)
    turngate(capfd, project, "go", "--session", "s-1", "--limit", "0")
    assert stats(capfd, "--all", "lint")[2:] == [
        "GATE RUNS PASSED BLOCKED NOT ENFORCED MEDIAN 95 %",
        "lint 1 0 0 1 S S",
    ]
    assert stats(capfd, "--all")[0].endswith("1 blocked, 1 turn ended although a gate blocked")
    code = main(["stats", "--all", "lnt"])
    assert (code, capfd.readouterr().err) == (
        64,
        "turngate: no gate lnt ran in this time; those that did: tests, lint\n",
    )


def test_a_project_without_stops_says_so(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    line = f"no agent has stopped in {project} in the last 12h; `turngate doctor` says whether one would be checked"
    assert stats(capfd, "--project", str(project), "--since", "12h") == [line]


@pytest.mark.parametrize("since", ["", "30", "1y", "-1d", "1d2h"])
def test_a_time_that_cannot_be_read_is_refused(capfd: pytest.CaptureFixture[str], since: str) -> None:
    code = main(["stats", f"--since={since}"])
    expected = "expected a number of hours, days or weeks, such as 12h, 30d or 4w"
    assert (code, capfd.readouterr().err) == (64, f"turngate: --since {since}: {expected}\n")


def test_a_block_that_is_marked_as_wrong_is_counted_until_it_is_marked_as_right(
    project: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_settings(project, "turngate", stop_hooks(block_first(1), id="tests"))
    turngate(capfd, project, "go", "--session", "s-1")
    monkeypatch.chdir(project)
    main(["log", "--blocks", "--json"])
    (block,) = json.loads(capfd.readouterr().out)
    assert (block["gate"], block["reason"], block["wrong"]) == ("tests", "run the tests", None)
    day = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(block["time"]))
    row = f'{block["id"]}  {day}  "tests"  run the tests\n'
    marked = row.replace('"tests"', 'wrong  "tests"')
    seen = []
    for words in (["--wrong", block["id"][:4], "--why", "flaky"], ["--blocks"], ["--right", block["id"]]):
        main(["log", *words])
        seen.append(capfd.readouterr().out)
        main(["stats", "--json"])
        seen.append(json.loads(capfd.readouterr().out)["gates"][0]["wrong"])
    assert seen == [f"marked as wrong: {row}", 1, marked, 1, f"marked as right: {marked}", 0]
    main(["log", "s-1"])
    marks = [line[10:] for line in capfd.readouterr().out.splitlines() if " marked as " in line]
    assert marks == [f"block {block['id']} marked as wrong: flaky", f"block {block['id']} marked as right"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--wrong", "zz"], "'zz' is no id of a block; `turngate log --blocks` lists them"),
        (["--wrong", ""], "'' is no id of a block; `turngate log --blocks` lists them"),
        (["--why", "x"], "--why needs --wrong or --right"),
    ],
)
def test_a_mark_that_cannot_be_made_is_refused(
    capfd: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert (main(["log", *words]), capfd.readouterr().err) == (64, f"turngate: {message}\n")


def test_a_stop_that_the_cache_answers_is_counted(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    fields = {"hook_event_name": "Stop", "session_id": "s-1", "prompt_id": "1", "cwd": str(project)}
    session = state / "sessions" / "s-1"
    session.mkdir(parents=True)
    (session / "journal.jsonl").touch()
    monkeypatch.setenv("TURNGATE_STATE", str(state))
    from turngate.cli.stop_cache import record_cached_stop  # noqa: PLC0415

    record_cached_stop(str(project), dict(fields))
    record_cached_stop(str(project), {**fields, "session_id": "unknown"})
    line = f"1 stop in {project} in 1 session, DATE to DATE: 0 blocked, 100% answered from the cache"
    assert stats(capfd, "--project", str(project))[0] == line
    assert sorted(path.name for path in (state / "sessions").iterdir()) == ["s-1"]
