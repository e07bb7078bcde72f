"""The stops that a journal records, and the sessions of all journals."""

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.support.journals import append_records, append_stop, hook_record, verdict_record
from turngate.history.journals import Record, RecordedRun, RecordedStop, block_id, read_stops
from turngate.history.sessions import History
from turngate.state.process_stat import read_stat, this_process

SUBAGENT = {"agent_id": "a-1", "agent_type": "explore"}
PASSED = RecordedRun("tests", "allow", 0.0, 1.0)


def blocked_run(record: Record, **more: Any) -> RecordedRun:
    return RecordedRun("tests", "block", 0.0, 1.0, record.get("reason") or "", block=block_id(record), **more)


BLOCK = hook_record("block", 1, reason="red")
BLOCKED = verdict_record("tests", when=1, prompt="red", answer="Done.")
FIRST = RecordedStop(1, "blocked", (blocked_run(BLOCK),), answer="Done.", prompt="red")


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([hook_record("allow", 1), verdict_record(when=1)], [RecordedStop(1, "allowed", (PASSED,))]),
        ([BLOCK, BLOCKED], [FIRST]),
        (
            [BLOCK, BLOCKED, {"kind": "turn_end", "time": 1, "ended_by": "capped", "reason": "the limit"}],
            [
                RecordedStop(
                    1,
                    "overridden",
                    FIRST.runs,
                    answer="Done.",
                    prompt="red",
                    ended_by="capped",
                    end="the limit",
                )
            ],
        ),
        (
            [
                BLOCK,
                BLOCKED,
                {"kind": "mark", "time": 2, "block": block_id(BLOCK), "wrong": True, "why": "flaky"},
            ],
            [
                RecordedStop(
                    1, "blocked", (blocked_run(BLOCK, wrong=True, why="flaky"),), answer="Done.", prompt="red"
                )
            ],
        ),
        (
            [hook_record("timeout", 1), verdict_record(when=1)],
            [RecordedStop(1, "not enforced", (RecordedRun("tests", "timeout", 0.0, 1.0),))],
        ),
        (
            [
                verdict_record(
                    when=1, unenforced=[{"hook": "lint", "outcome": "skipped", "why": "not approved"}]
                )
            ],
            [RecordedStop(1, "not enforced", (), skipped=(("lint", "not approved"),))],
        ),
        ([{"kind": "cached", "event": "Stop", "time": 1}], [RecordedStop(1, "cached", ())]),
        (
            [verdict_record(when=1, ended_by="halted", stop_reason="enough")],
            [RecordedStop(1, "halted", (), ended_by="halted", end="enough")],
        ),
        (  # two agents stop at the same time
            [
                hook_record("allow", 1),
                {**BLOCK, **SUBAGENT, "event": "SubagentStop"},
                {**BLOCKED, **SUBAGENT, "event": "SubagentStop"},
                verdict_record(when=1),
            ],
            [
                RecordedStop(
                    1, "blocked", FIRST.runs, "a-1", "explore", "Done.", "red", event="SubagentStop"
                ),
                RecordedStop(1, "allowed", (PASSED,)),
            ],
        ),
        (  # the process was killed before its verdict
            [hook_record("allow", 0.5), hook_record("allow", 1), verdict_record(when=1, runs=1)],
            [RecordedStop(1, "allowed", (PASSED,))],
        ),
        ([{**BLOCK, "event": "PreToolUse"}, {**BLOCKED, "event": "PreToolUse"}], []),
    ],
    ids=[
        "passed",
        "blocked",
        "limit",
        "marked",
        "timeout",
        "skipped",
        "cached",
        "halted",
        "agents",
        "killed",
        "tool",
    ],
)
def test_a_journal_is_cut_into_stops(records: list[Record], expected: list[RecordedStop]) -> None:
    assert read_stops(records) == expected


def test_a_hook_runs_as_long_as_its_process_lives_and_its_end_is_not_recorded() -> None:
    hook = {"type": "gate", "gate": "tests", "timeout": 60}
    start = {"kind": "start", "event": "Stop", "time": 5.0, "run": "1", "hook": hook}
    living, dead = ({**start, "process": each} for each in (list(this_process()), [this_process().pid, "0"]))
    running = RecordedRun("tests", "running", 5.0, 0.0, limit=60)
    assert read_stops([living]) == [RecordedStop(5.0, "running", (running,))]
    assert read_stops([dead]) == []
    ended = [hook_record("allow", 1, run="1"), verdict_record(when=1)]
    assert [stop.result for stop in read_stops([living, *ended])] == ["allowed"]


def test_sessions_are_read_again_only_when_their_journals_change(state: Path) -> None:
    history = History(str(state))
    append_stop(state, "s-1", "block", answer="Done.")
    append_stop(state, "s-2")
    assert sorted(history.refresh()) == ["s-1", "s-2"]
    assert list(history.refresh()) == []
    append_stop(state, "s-1")
    assert list(history.refresh()) == ["s-1"]
    (session,) = (each for each in history.newest_first() if each.id == "s-1")
    assert (session.stops, session.results, session.title) == (2, ("blocked", "allowed"), "Done.")


def test_a_hook_that_is_killed_does_not_run_for_ever(state: Path) -> None:
    history, process = History(str(state)), subprocess.Popen(["sleep", "600"])
    stat = read_stat(process.pid)
    assert stat is not None
    start = {"kind": "start", "event": "Stop", "time": time.time(), "run": "1", "hook": {"type": "gate"}}
    append_records(state, "s-1", {**start, "process": [process.pid, stat.started]})
    list(history.refresh())
    assert [len(each.running) for each in history.newest_first()] == [1]
    process.kill()
    process.wait()
    list(history.refresh())
    assert history.newest_first() == []


def test_the_history_of_a_project_has_no_stops_of_others(state: Path) -> None:
    for project in ("/p", "/q"):
        append_records(state, "s-1", hook_record("allow", 1), verdict_record(when=1), project=project)
    history = History(str(state), "/q")
    list(history.refresh())
    assert [(each.project, each.stops) for each in history.newest_first()] == [("/q", 1)]
