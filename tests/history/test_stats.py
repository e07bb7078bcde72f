"""What is counted over journals: gates, stops, blocks and their marks."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from turngate.history.journals import JournalFile, Record, block_id, journal_folders, read_journal
from turngate.history.stats import Block, GateStats, Stats, Week, collect_blocks, collect_stats

WEEK = time.strftime("%G-W%V", time.localtime(0))
TESTS = {"type": "gate", "gate": "tests", "id": "tests"}


def run(outcome: str, when: float = 0, hook: dict[str, Any] | None = None, **more: Any) -> Record:
    entry = {"kind": "hook", "event": "Stop", "time": when, "session_id": "s", "project": "/p"}
    return {**entry, "hook": hook or TESTS, "outcome": outcome, "seconds": 1.0, **more}


def verdict(*blocked_by: str, **more: Any) -> Record:
    return {"kind": "verdict", "event": "Stop", "time": 0, "blocked_by": list(blocked_by), **more}


def end(ended_by: str) -> Record:
    return {"kind": "turn_end", "event": "Stop", "time": 0, "ended_by": ended_by}


def gate(**counts: Any) -> GateStats:
    """Return the statistics of the gate `tests`; what is not given is 0."""
    zero = dict.fromkeys(
        ("runs", "passed", "blocked", "would_block", "kept", "not_enforced", "overridden", "wrong"), 0
    )
    seconds = {"median_seconds": 1.0, "p95_seconds": 1.0} if counts.get("runs") else {}
    no_runs: dict[str, Any] = {
        "median_seconds": None,
        "p95_seconds": None,
        "tokens": 0,
        "cost_usd": None,
        "weeks": {},
    }
    return GateStats(**{"gate": "tests", **zero, **no_runs, **seconds, **counts})


def week(runs: int, blocked: int = 0) -> dict[str, Week]:
    return {WEEK: Week(runs, blocked)}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([run("allow"), verdict()], gate(runs=1, passed=1, weeks=week(1))),
        ([run("block"), verdict("tests")], gate(runs=1, blocked=1, weeks=week(1, 1))),
        ([run("would_block"), verdict()], gate(runs=1, would_block=1, weeks=week(1))),
        (
            [run("allow", notice='gate "todos": the agent keeps this: later'), verdict()],
            gate(runs=1, passed=1, kept=1, weeks=week(1)),
        ),
        ([run("failed"), run("timeout"), verdict()], gate(runs=2, not_enforced=2, weeks=week(2))),
        ([verdict(unenforced=[{"hook": "tests", "outcome": "skipped"}])], gate(not_enforced=1)),
        (
            [run("block"), verdict("tests"), end("capped")],
            gate(runs=1, blocked=1, overridden=1, weeks=week(1, 1)),
        ),
        ([run("block"), verdict("tests"), end("interrupt")], gate(runs=1, blocked=1, weeks=week(1, 1))),
        (
            [run("allow", seconds=float(number)) for number in range(1, 21)],
            gate(runs=20, passed=20, median_seconds=10.5, p95_seconds=19.0, weeks=week(20)),
        ),
        (
            [
                run("allow", evaluation={"input_tokens": 7, "output_tokens": 2, "cost_usd": 0.5})
                for _ in range(2)
            ],
            gate(runs=2, passed=2, tokens=18, cost_usd=1.0, weeks=week(2)),
        ),
    ],
    ids=[
        "passed",
        "blocked",
        "observed",
        "kept",
        "failed",
        "skipped",
        "at the limit",
        "interrupted",
        "times",
        "cost",
    ],
)
def test_what_a_gate_did_is_counted(records: list[Record], expected: GateStats) -> None:
    assert collect_stats([(records, 0)]).gates == (expected,)


def test_stops_are_counted_over_all_sessions_with_those_from_the_cache() -> None:
    cached = {"kind": "cached", "event": "Stop", "time": 30}
    sessions = [([run("block"), verdict("tests"), end("stalled")], 2), ([verdict(), cached], 1), ([], 0)]
    stats = collect_stats(sessions)
    assert stats == Stats(2, 3, 1, 1, 1, first=0, last=30, damaged=3, gates=stats.gates)


def test_hooks_of_other_events_are_not_counted() -> None:
    assert collect_stats([([{**run("block"), "event": "PreToolUse"}], 0)]) == Stats(
        0, 0, 0, 0, 0, None, None, 0, ()
    )


def test_the_last_mark_of_a_block_counts() -> None:
    blocks = [run("block", 1, reason="red"), run("block", 2, reason="red"), run("allow", 3)]
    ids = [block_id(record) for record in blocks]
    marks = [
        {"kind": "mark", "time": 4, "block": ids[0], "wrong": wrong, "why": "flaky"}
        for wrong in (False, True)
    ]
    records = [*blocks, *marks]
    expected = [
        Block(ids[0], 1, "s", "/p", "tests", "red", wrong=True, why="flaky"),
        Block(ids[1], 2, "s", "/p", "tests", "red"),
    ]
    assert (collect_blocks(records), collect_stats([(records, 0)]).gates[0].wrong) == (expected, 1)


def test_a_journal_is_read_with_its_older_file_and_without_damaged_lines(tmp_path: Path) -> None:
    good = [run("allow", when) for when in (1.0, 2.0, 3.0)]
    (tmp_path / "journal.1.jsonl").write_text(json.dumps(good[0]) + "\n")
    bad = [
        "{",
        "[]",
        '{"time": NaN}',
        '{"time": 1e300}',
        '{"time": 1, "hook": 5}',
        '{"time": 1, "hook": {"id": 5}}',
    ]
    start = json.dumps({"time": 1.5, "kind": "start"}, separators=(",", ":"))
    lines = [json.dumps(good[1]), *bad, "", start, json.dumps(good[2])]
    (tmp_path / "journal.jsonl").write_text("\n".join(lines))
    assert read_journal(str(tmp_path)) == JournalFile(tuple(good), len(bad))
    assert read_journal(str(tmp_path), since=2.0) == JournalFile(tuple(good[1:]), len(bad))


def test_runs_by_a_person_are_no_stops_of_an_agent(tmp_path: Path) -> None:
    for name in ("fire", "gates-run-1", "s-1"):
        (tmp_path / "sessions" / name).mkdir(parents=True)
    assert journal_folders(str(tmp_path)) == [str(tmp_path / "sessions" / "s-1")]
    assert journal_folders(str(tmp_path / "missing")) == []
