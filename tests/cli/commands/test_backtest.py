"""`turngate backtest`: gates are asked about stops of the past."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from tests.history.test_past_stops import TRANSCRIPTS, reply, text, user
from tests.support.builders import write_settings
from tests.support.cli import turngate
from tests.support.git_projects import make_repository, write
from turngate.cli.main import main

EDIT = {"type": "tool_use", "id": "t1", "name": "Edit", "input": {"file_path": "/srv/app/a.py"}}
EDITED = user(
    "", message={"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}
)
TESTED = [
    reply("8", {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": "pytest -q"}}),
    user(
        "",
        message={
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "t2", "content": "3 passed"}],
        },
    ),
]
WHEN = {"timestamp": "2026-11-10T10:00:00Z"}
# Two stops: after an edit without a check, and after a check.
RECORDS = [
    user("Fix the parser."),
    reply("1", EDIT),
    EDITED,
    reply("2", text("Fixed. All tests pass."), **WHEN),
    user("They do not."),
    *TESTED,
    reply("3", text("Now they pass."), **WHEN),
]


@pytest.fixture
def transcript(tmp_path: Path) -> str:
    path = tmp_path / "t.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in RECORDS))
    return str(path)


def backtest(capfd: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert main(["backtest", *words]) == 0
    return capfd.readouterr().out.splitlines()


def decisions(capfd: pytest.CaptureFixture[str], *words: str) -> list[list[tuple[str, str]]]:
    """Return for each stop what each gate would have decided."""
    sessions = json.loads("\n".join(backtest(capfd, "--json", *words)))
    stops = [stop for session in sessions for stop in session["stops"]]
    return [[(each["gate"], each["outcome"]) for each in stop["decisions"]] for stop in stops]


def test_a_gate_is_asked_at_each_stop_with_what_the_transcript_had_then(
    transcript: str, capfd: pytest.CaptureFixture[str]
) -> None:
    gates = ("evidence", "todos", "tests", "judge", "notify", "clean")
    assert decisions(capfd, *gates, "--transcripts", transcript) == [
        [
            ("evidence", "would block"),
            ("todos", "would pass"),
            ("tests", "cannot say"),
            ("judge", "cannot say"),
            ("notify", "cannot say"),
            ("clean", "cannot say"),
        ],
        [
            ("evidence", "would pass"),
            ("todos", "would pass"),
            ("tests", "cannot say"),
            ("judge", "cannot say"),
            ("notify", "cannot say"),
            ("clean", "cannot say"),
        ],
    ]


def test_a_block_is_shown_with_the_words_around_it(
    transcript: str, capfd: pytest.CaptureFixture[str]
) -> None:
    shown = backtest(capfd, "evidence", "tests", "--transcripts", transcript)
    assert shown[0].endswith('claude  /srv/app: would block by "evidence"')
    reason = "You have edited a.py, and no command has checked it since. Run the project's tests, or another"
    assert shown[1:4] == [
        "  agent:      Fixed. All tests pass.",
        f"  reason:     {reason} check of what you have changed, and report what it prints. If th…",
        "  user, next: They do not.",
    ]
    assert shown[5:] == [
        "2 stops in 1 conversation",
        "GATE      WOULD BLOCK  WOULD PASS  CANNOT SAY",
        "evidence            1           1           0",
        "tests               0           0           2  it needs the files of that stop, which are not known",
    ]


def test_two_settings_are_compared(project: Path, transcript: str, capfd: pytest.CaptureFixture[str]) -> None:
    def settings(*gates: str) -> dict[str, Any]:
        return {"hooks": {"Stop": [{"hooks": [{"type": "gate", "gate": gate} for gate in gates]}]}}

    write_settings(project, "turngate", settings("evidence"))
    old = json.dumps(settings("todos"))
    words = ("--project", str(project), "--transcripts", transcript)
    headings = [
        [line.split(": ", 1)[1] for line in shown if "block" in line and ": " in line and "/srv/app" in line]
        for shown in (
            backtest(capfd, "--against", old, *words),
            backtest(capfd, "--settings", old, "--against", json.dumps(settings("evidence")), *words),
            backtest(capfd, "--against", json.dumps(settings("evidence")), *words),
        )
    ]
    assert headings == [['newly blocked by "evidence"'], ['no longer blocked by "evidence"'], []]


def test_only_the_conversations_of_the_project_are_read_unless_all_are_asked_for(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name, folder in (("a", f"{project}/src"), ("b", "/srv/other")):
        path = tmp_path / ".claude" / "projects" / name / "1.jsonl"
        path.parent.mkdir(parents=True)
        path.write_text("".join(f"{json.dumps({**record, 'cwd': folder, **WHEN})}\n" for record in RECORDS))
    words = ("evidence", "--project", str(project), "--since", "5000w")
    assert [len(decisions(capfd, *words)), len(decisions(capfd, *words, "--all"))] == [2, 4]
    assert len(decisions(capfd, *words, "--all", "--host", "codex")) == 0
    nothing = (
        "no stops were found; --all looks in all folders, --since further back, and --transcripts names files"
    )
    assert backtest(capfd, *words, "--host", "codex") == [nothing]


def test_many_transcripts_are_read_by_several_processes(
    transcript: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert decisions(capfd, "evidence", "--transcripts", *[transcript] * 21) == [
        *[[("evidence", "would block")], [("evidence", "would pass")]] * 21
    ]


def test_every_agent_program_can_be_asked(capfd: pytest.CaptureFixture[str]) -> None:
    files = [str(TRANSCRIPTS / f"{name}.jsonl") for name in ("codex", "copilot", "gemini", "qwen")]
    found = decisions(capfd, "todos", "evidence", "--transcripts", *files)
    assert found == [[("todos", "would pass"), ("evidence", "would pass")]] * 11


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["evidnce"], "there is no gate evidnce; did you mean evidence?"),
        ([], "no Stop hook is configured; name ready-made gates, such as `turngate backtest evidence`"),
        (
            ["--settings", "gone.json"],
            "--settings gone.json: there is no such file; give a file, or JSON in braces",
        ),
    ],
)
def test_what_cannot_be_asked_is_refused(
    project: Path, capfd: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    code = main(["backtest", "--project", str(project), *words])
    assert (code, capfd.readouterr().err) == (64, f"turngate: {message}\n")


def test_a_transcript_that_cannot_be_read_is_named(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    unknown = tmp_path / "x.jsonl"
    unknown.write_text("{}\n")
    shown = backtest(capfd, "todos", "--transcripts", str(unknown), str(tmp_path / "gone"), str(tmp_path))
    assert shown[:3] == [
        f"! {unknown}: the format is not known",
        f"! {tmp_path / 'gone'}: No such file or directory",
        f"! {tmp_path}: it is not a regular file",
    ]


GATES: dict[str, Any] = {
    "hooks": {
        "Stop": [
            {
                "hooks": [
                    {"type": "gate", "id": "notes", "command": "grep -q done notes.txt"},
                    {"type": "command", "id": "plain", "command": "test -e notes.txt"},
                    {"type": "prompt", "id": "asked", "prompt": "Is it done?"},
                    {"type": "agent", "id": "agent", "prompt": "Look."},
                ]
            }
        ]
    }
}


@pytest.fixture
def recorded_stops(project: Path, home: Path, transcript: str) -> Path:
    """A session with the two stops of the transcript, of which the files are known; notes.txt is written between them."""
    make_repository(project, {"a.txt": "a"})
    write_settings(home, "turngate", {"turngate": {"recordTrees": True}})
    path, records = Path(transcript), []
    only = {"hooks": {"Stop": [{"hooks": GATES["hooks"]["Stop"][0]["hooks"][:1]}]}}
    write_settings(project, "turngate", only)
    for record in RECORDS:
        if "timestamp" in record:
            records.append({**record, "timestamp": datetime.now(UTC).isoformat()})
        else:
            records.append(record)
        path.write_text("".join(f"{json.dumps(each)}\n" for each in records))
        if "timestamp" in record:
            fields = {
                "hook_event_name": "Stop",
                "session_id": "b1",
                "cwd": str(project),
                "transcript_path": str(path),
            }
            assert turngate("hook", "--host", "claude", stdin=json.dumps(fields))[0] == 0
            write(project, {"notes.txt": "done"})
    write_settings(project, "turngate", GATES)
    return project


def test_gates_that_need_files_are_asked_where_they_are_recorded(
    recorded_stops: Path, transcript: str, capfd: pytest.CaptureFixture[str]
) -> None:
    words = ("--project", str(recorded_stops), "--transcripts", transcript)
    assert decisions(capfd, *words) == [
        [("notes", "would block"), ("plain", "cannot say"), ("asked", "cannot say"), ("agent", "cannot say")],
        [("notes", "would pass"), ("plain", "would pass"), ("asked", "cannot say"), ("agent", "cannot say")],
    ]
    # What is not configured, and so not approved, does not run.
    assert decisions(capfd, "clean", *words) == [[("clean", "cannot say")]] * 2


def test_settings_are_compared_on_recorded_files(
    recorded_stops: Path, transcript: str, capfd: pytest.CaptureFixture[str]
) -> None:
    gate = {"type": "gate", "id": "notes", "command": "test ! -e notes.txt"}
    old = json.dumps({"hooks": {"Stop": [{"hooks": [gate]}]}})
    words = ("notes", "--against", old, "--project", str(recorded_stops), "--transcripts", transcript)
    shown = [line.split("/srv/app: ")[1] for line in backtest(capfd, *words) if "/srv/app: " in line]
    assert shown == ['newly blocked by "notes"', 'no longer blocked by "notes"']


def test_a_gate_that_is_not_approved_does_not_run_on_recorded_files(
    recorded_stops: Path, transcript: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TURNGATE_TRUST")
    assert (
        decisions(capfd, "notes", "--project", str(recorded_stops), "--transcripts", transcript)
        == [[("notes", "cannot say")]] * 2
    )


def test_judges_are_asked_once_the_price_is_known(
    recorded_stops: Path, transcript: str, home: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    script = tmp_path / "judge.json"
    script.write_text(
        json.dumps({"judge": ['{"ok": false, "reason": "the docs are missing"}', '{"ok": true}']})
    )
    write_settings(home, "turngate", {"turngate": {"judge": f"scripted:{script}"}})
    words = ("asked", "agent", "--judges", "--project", str(recorded_stops), "--transcripts", transcript)
    assert decisions(capfd, *words) == [[("asked", "cannot say"), ("agent", "cannot say")]] * 2
    assert main(["backtest", "--json", *words]) == 0
    told = capfd.readouterr().err.splitlines()
    assert re.fullmatch(
        rf"2 questions to scripted:{script}, about \d[\d,]* tokens, of unknown price", told[0]
    )
    assert told[1] == "no model was asked; --yes asks"
    assert decisions(capfd, *words, "--yes") == [
        [("asked", "would block"), ("agent", "cannot say")],
        [("asked", "would pass"), ("agent", "cannot say")],
    ]


def test_the_price_of_a_known_model_is_named(
    project: Path, transcript: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "unused")
    write_settings(project, "turngate", GATES)
    words = ("asked", "--judges", "--project", str(project), "--transcripts", transcript)
    assert main(["backtest", *words]) == 0
    told = capfd.readouterr().err.splitlines()
    assert re.fullmatch(
        r"2 questions to anthropic:claude-haiku-5-5, about \d[\d,]* tokens, about \$0\.\d{4}", told[0]
    )
