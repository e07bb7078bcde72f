import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import rule, stop_hooks, write_settings
from tests.support.cli import turngate
from turngate.cli.review import entries as history
from turngate.cli.review.entries import Histories, PastRun
from turngate.core.hooks.kinds import CommandHook, PromptHook
from turngate.trust.load import load_settings


def journal(state: Path, *records: dict[str, Any], session: str = "s-1", name: str = "journal.jsonl") -> Path:
    file = state / "sessions" / session / name
    file.parent.mkdir(parents=True, exist_ok=True)
    compact = [json.dumps(record, separators=(",", ":")) for record in records]
    file.write_text("".join(f"{line}\n" for line in compact))
    return file


def record(
    project: Path, time: float | str, hook: dict[str, Any] | None = None, **fields: Any
) -> dict[str, Any]:
    return {
        "time": time,
        "session_id": "s-1",
        "project": str(project),
        "kind": "hook",
        "event": "Stop",
        "hook": {"type": "command", "command": "check", **(hook or {})},
        "file": "f",
        "outcome": "allow",
        "reason": None,
        "seconds": 1.0,
        **fields,
    }


def past_run(time: float, **fields: Any) -> PastRun:
    values = {"session_id": "s-1", "outcome": "allow", "reason": None, "seconds": 1.0, **fields}
    return PastRun(time, **values)


@pytest.mark.req("X-35")
def test_real_runs_of_several_sessions_are_found(project: Path, state: Path) -> None:
    write_settings(project, "turngate", stop_hooks("echo no >&2; exit 2"))
    for session in ("one", "two"):
        turngate("fire", "Stop", "--project", str(project), "--input", json.dumps({"session_id": session}))
    [hook] = load_settings(str(project)).rules
    found = Histories(str(project), str(state)).of(hook)
    assert (found.count, [(run.session_id, run.outcome, run.reason) for run in found.last]) == (
        2,
        [("two", "block", "no"), ("one", "block", "no")],
    )


@pytest.mark.parametrize("outcome", ["skipped", "interrupted"])
def test_the_mean_counts_every_run_that_ended_by_itself_and_the_last_runs_are_the_newest(
    project: Path, state: Path, outcome: str
) -> None:
    journal(state, *(record(project, number, seconds=number) for number in range(1, 10)))
    journal(state, record(project, 20.0, outcome=outcome, seconds=0, reason="why"), session="s-2")
    found = Histories(str(project), str(state)).of(rule(file="f"))
    assert (found.count, found.mean, found.last) == (
        9,
        5.0,
        [
            past_run(20.0, outcome=outcome, seconds=0.0, reason="why"),
            *(past_run(number, seconds=number) for number in (9.0, 8.0, 7.0, 6.0)),
        ],
    )


@pytest.mark.parametrize(
    ("written", "hook"),
    [
        ({}, CommandHook("check")),
        ({"id": "x"}, CommandHook("other now", id="x")),
        ({"args": ["a", "b"]}, CommandHook("check", args=("a", "b"))),
        ({"type": "prompt", "prompt": "Done?", "command": None}, PromptHook("Done?")),
    ],
)
def test_a_hook_is_found_by_its_id_or_by_its_text(
    project: Path, state: Path, written: dict[str, Any], hook: Any
) -> None:
    journal(state, record(project, 1.0, written))
    assert Histories(str(project), str(state)).of(rule(hook, file="f")).last == [past_run(1.0)]


def test_a_hook_in_the_background_has_the_ends_of_its_runs(project: Path, state: Path) -> None:
    journal(state, record(project, 1.0, seconds=0.0), record(project, 2.0, kind="background"))
    found = Histories(str(project), str(state))
    assert [
        found.of(rule(CommandHook("check", detached=is_detached), file="f")).last
        for is_detached in (True, False)
    ] == [
        [past_run(2.0)],
        [past_run(1.0, seconds=0.0)],
    ]


def test_other_projects_events_and_damaged_lines_do_not_count(project: Path, state: Path) -> None:
    file = journal(
        state,
        record(project / "other", 1.0),
        record(project, 2.0, event="SubagentStop"),
        record(project, 3.0, file="another"),
        record(project, 4.0, kind="notice"),
        record(project, "yesterday"),
        record(project, 6.0) | {"hook": "check"},
    )
    file.write_text(file.read_text() + f'"project":"{project}" half a line\n')
    (state / "sessions" / "file").write_text("")
    assert Histories(str(project), str(state)).of(rule(file="f")).last == []


def test_without_a_session_there_is_no_history(project: Path, state: Path) -> None:
    found = Histories(str(project), str(state)).of(rule())
    assert (found.last, found.count, found.mean) == ([], 0, None)


def test_of_large_journals_only_the_newest_are_read(
    project: Path, state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = len(json.dumps(record(project, 1.0), separators=(",", ":"))) + 1
    monkeypatch.setattr(history, "MAX_READ_BYTES", 2 * line + line // 2)
    for number in range(5):
        file = journal(state, record(project, float(number)), session=f"s-{number}")
        os.utime(file, (number, number))
    found = Histories(str(project), str(state)).of(rule(file="f")).last
    assert [run.time for run in found] == [4.0, 3.0, 2.0]
