"""`turngate sessions`: list, show and prune."""

import json
import os
import re
import time
from pathlib import Path

import pytest

from tests.support.builders import stop_hooks, write_settings
from tests.support.scripted_run import turngate
from tests.support.sessions import block_first
from tests.support.terminal import Terminal
from turngate.cli.commands.sessions import format_sessions
from turngate.cli.main import main


def test_sessions_are_listed_newest_first(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for number, prompt in enumerate(("first thing", "second thing")):
        turngate(capfd, project, prompt, "--session", f"s-{number}")
        os.utime(state / "sessions" / f"s-{number}" / "chat.jsonl", (number * 86400, number * 86400))
    code = main(["sessions"])
    out, err = capfd.readouterr()
    shown = [re.sub(r"^\d{4}-\d\d-\d\d \d\d:\d\d", "DATE", line) for line in out.splitlines()]
    blanks = " " * (len(str(project)) - len("PROJECT"))
    assert (code, shown, err) == (
        0,
        [
            f"CHANGED           ID   HOST      PROJECT{blanks}  ABOUT",
            f"DATE  s-1  turngate  {project}  second thing",
            f"DATE  s-0  turngate  {project}  first thing",
        ],
        "",
    )


def test_the_sessions_of_one_project_are_listed(
    project: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "home" / "other"
    other.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(other.parent))
    for folder, name in ((project, "s-0"), (other, "s-1")):
        turngate(capfd, folder, "go", "--session", name)
    assert main(["sessions", "--project", str(other)]) == 0
    assert [line.split()[2:] for line in capfd.readouterr().out.splitlines()[1:]] == [
        ["s-1", "turngate", "~/other", "go"]
    ]
    assert main(["sessions", "--project", str(tmp_path)]) == 0
    said = f"there are no sessions of {tmp_path} yet; `turngate run` starts one\n"
    assert capfd.readouterr().out == said


def test_sessions_as_json(project: Path, state: Path, capfd: pytest.CaptureFixture[str]) -> None:
    turngate(capfd, project, "first thing", "--session", "s-1")
    main(["sessions", "list", "--json"])
    path = state / "sessions" / "s-1" / "chat.jsonl"
    assert json.loads(capfd.readouterr().out) == [
        {
            "session_id": "s-1",
            "changed": path.stat().st_mtime,
            "size": path.stat().st_size,
            "host": "turngate",
            "project": str(project),
            "gates": [],
            "result": "",
            "first": "first thing",
            "path": str(path),
        }
    ]


def test_without_sessions_it_says_how_to_start_one(capfd: pytest.CaptureFixture[str]) -> None:
    assert (main(["sessions"]), capfd.readouterr().out) == (
        0,
        "there are no sessions yet; `turngate run` starts one\n",
    )


def test_a_session_is_shown_as_a_conversation(project: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_settings(project, "turngate", stop_hooks(block_first(1)))
    tools = [{"name": "Bash", "input": {"command": command}} for command in ("echo hi", "exit 3")]
    replies = ({"text": "looking", "tools": tools}, "done", "done again")
    turngate(capfd, project, "go", "--session", "s-1", "--allow", "Bash", replies=replies)
    code = main(["sessions", "show", "s-1"])
    assert (code, capfd.readouterr().out.splitlines()) == (
        0,
        [
            "you: go",
            "agent: looking",
            '  Bash {"command": "echo hi"}',
            '  Bash {"command": "exit 3"}',
            "  ok: hi",
            "  failed: exit code 3 (no output)",
            "agent: done",
            "stop_hook: [Stop hook requested continuation]",
            "run the tests",
            "agent: done again",
        ],
    )


def save_old_and_new(capfd: pytest.CaptureFixture[str], project: Path, state: Path) -> None:
    """Save a session of 31 days ago and one of today."""
    for name in ("old", "new"):
        turngate(capfd, project, "go", "--session", name)
    then = time.time() - 31 * 86400
    for path in (state / "sessions" / "old").iterdir():
        os.utime(path, (then, then))


@pytest.mark.parametrize(
    ("words", "said", "left"),
    [
        ([], "removed 1 session older than 30 days\n", ["new"]),
        (["--days", "40"], "removed 0 sessions older than 40 days\n", ["new", "old"]),
        (["--days", "0"], "removed 2 sessions older than 0 days\n", []),
    ],
)
def test_old_sessions_are_pruned(
    project: Path,
    state: Path,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
    said: str,
    left: list[str],
) -> None:
    save_old_and_new(capfd, project, state)
    assert (main(["sessions", "prune", *words]), capfd.readouterr().out) == (0, said)
    assert sorted(path.name for path in (state / "sessions").iterdir()) == left


@pytest.mark.parametrize(
    ("of_user", "of_project", "left"),
    [(7, None, ["new"]), (60, None, ["new", "old"]), (7, 60, ["new", "old"]), (60, 0, ["new", "old"])],
)
def test_the_settings_say_how_long_sessions_are_kept_and_a_project_only_longer(
    project: Path,
    home: Path,
    state: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    of_user: int,
    of_project: int | None,
    left: list[str],
) -> None:
    save_old_and_new(capfd, project, state)
    for folder, days in ((home, of_user), (project, of_project)):
        write_settings(folder, "turngate", {"turngate": {"retentionDays": days}} if days is not None else {})
    monkeypatch.chdir(project)
    assert main(["sessions", "prune"]) == 0
    assert sorted(path.name for path in (state / "sessions").iterdir()) == left


def test_the_journal_of_fire_is_removed_but_is_not_a_session(
    project: Path, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_settings(project, "turngate", stop_hooks("true"))
    turngate(capfd, project, "go", "--session", "s-1")
    main(["fire", "Stop", "--project", str(project)])
    capfd.readouterr()
    assert (main(["sessions", "prune", "--days", "0"]), capfd.readouterr().out) == (
        0,
        "removed 1 session older than 0 days, and 1 journal of hooks that ran without a conversation\n",
    )
    assert list((state / "sessions").iterdir()) == []


IDS = ("3fa94f6e-0c5b-4b63-a8b2-5f7de6e6c0a1", "3fa94f6e-1c5b-4b63-a8b2-5f7de6e6c0a1")


@pytest.mark.parametrize("columns", [80, 60, 200])
def test_the_list_fits_the_terminal_and_its_ids_stay_unique(
    project: Path, capfd: pytest.CaptureFixture[str], columns: int
) -> None:
    for name in IDS:
        turngate(capfd, project, "Please rewrite the parser so that it reads dates.", "--session", name)
    with Terminal("sessions", cwd=project, env={"COLUMNS": str(columns)}) as terminal:
        terminal.process.wait()
        terminal.expect("parser" if columns == 200 else "…")
        terminal.close()
        rows = [line.rstrip() for line in terminal.raw.decode().splitlines()]
    ids = {row.split()[2] for row in rows[1:]}
    assert (len(rows), max(map(len, rows)) <= columns) == (3, True)
    assert ids == (set(IDS) if columns == 200 else {name[:10] for name in IDS})


@pytest.mark.parametrize("changed", [2.0**62, -(2.0**62)])
def test_a_time_out_of_range_is_shown_as_unknown(changed: float) -> None:
    about = {"host": "codex", "project": "/p", "gates": ("tests", "lint"), "result": "blocked"}
    session = {"session_id": "s-1", "changed": changed, "size": 10, **about, "first": "go", "path": ""}
    assert format_sessions([session]) == [
        "CHANGED  ID   HOST   RESULT   PROJECT  GATES        ABOUT",
        "?        s-1  codex  blocked  /p       tests, lint  go",
    ]


def test_the_column_of_the_projects_has_a_limit_and_json_has_the_whole_path(
    state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cwd = "/" + "x" * 100_000
    chat = state / "sessions" / "s-1" / "chat.jsonl"
    chat.parent.mkdir(parents=True)
    record = {"type": "user", "cwd": cwd, "message": {"role": "user", "content": "hi"}}
    chat.write_text(json.dumps(record) + "\n")
    assert main(["sessions"]) == 0
    heading, row = capfd.readouterr().out.splitlines()
    blanks = " " * (200 - len("PROJECT"))
    assert (heading, row[16:]) == (
        f"CHANGED           ID   HOST      PROJECT{blanks}  ABOUT",
        f"  s-1  turngate  …{'x' * 199}  hi",
    )
    assert main(["sessions", "--json"]) == 0
    assert [each["project"] for each in json.loads(capfd.readouterr().out)] == [cwd]
