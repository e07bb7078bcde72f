"""What is counted over journals: gates, stops, blocks and their marks."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from turngate.history.journals import (
    JournalFile,
    Record,
    RecordedStop,
    block_id,
    journal_folders,
    read_journal,
    read_stops,
)
from turngate.history.stats import NUMBERS, PLOTTED, Row, count_days, merge_days
from turngate.state.journal import MAX_JOURNAL_BYTES

WEEK, DAY = (time.strftime(form, time.localtime(0)) for form in ("%G-W%V", "%Y-%m-%d"))
TESTS = {"type": "gate", "gate": "tests", "id": "tests"}


def run(outcome: str, when: float = 0, hook: dict[str, Any] | None = None, **more: Any) -> Record:
    entry = {"kind": "hook", "event": "Stop", "time": when, "session_id": "s", "project": "/p"}
    return {**entry, "hook": hook or TESTS, "outcome": outcome, "seconds": 1.0, **more}


def verdict(*blocked_by: str, **more: Any) -> Record:
    kind = "continue" if blocked_by else "stop"
    return {
        "kind": "verdict",
        "event": "Stop",
        "time": 0,
        "verdict": kind,
        "blocked_by": list(blocked_by),
        **more,
    }


def end(ended_by: str) -> Record:
    return {"kind": "turn_end", "event": "Stop", "time": 0, "ended_by": ended_by}


def gate(**counts: Any) -> Row:
    """Return the row of the gate `tests`; what is not given is 0."""
    seconds = {"median_seconds": 1.0, "p95_seconds": 1.0} if counts.get("runs") else {}
    nothing = {"median_seconds": None, "p95_seconds": None, "cost_usd": None}
    row = {"gate": "tests", **dict.fromkeys(NUMBERS, 0), **nothing, **seconds, **counts}
    plotted = {name: row[name] for name in PLOTTED}
    return {**row, "weeks": {WEEK: plotted}, "days": {DAY: plotted}}


def count(*sessions: list[Record], damaged: int = 0) -> Row:
    return merge_days([count_days(read_stops(session)) for session in sessions], damaged)


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([run("allow"), verdict()], gate(runs=1, passed=1)),
        ([run("block"), verdict("tests")], gate(runs=1, blocked=1)),
        ([run("would_block"), verdict()], gate(runs=1, would_block=1)),
        (
            [run("allow", notice='gate "todos": the agent keeps this: later'), verdict()],
            gate(runs=1, passed=1, kept=1),
        ),
        ([run("failed"), run("timeout"), verdict()], gate(runs=2, not_enforced=2)),
        ([verdict(unenforced=[{"hook": "tests", "outcome": "skipped"}])], gate(not_enforced=1)),
        (
            [run("block"), verdict("tests"), end("capped")],
            gate(runs=1, blocked=1, overridden=1),
        ),
        ([run("block"), verdict("tests"), end("interrupt")], gate(runs=1, blocked=1)),
        (
            [*(run("allow", seconds=float(number)) for number in range(1, 21)), verdict()],
            gate(runs=20, passed=20, median_seconds=10.5, p95_seconds=19.0),
        ),
        (
            [
                *[run("allow", evaluation={"input_tokens": 7, "output_tokens": 2, "cost_usd": 0.5})] * 2,
                verdict(),
            ],
            gate(runs=2, passed=2, tokens=18, cost_usd=1.0),
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
def test_what_a_gate_did_is_counted(records: list[Record], expected: Row) -> None:
    assert count(records)["gates"] == [expected]


def test_stops_are_counted_over_all_sessions_with_those_from_the_cache() -> None:
    cached = {"kind": "cached", "event": "Stop", "time": 86_400 * 3}
    stats = count([run("block"), verdict("tests"), end("stalled")], [verdict(), cached], [], damaged=3)
    days = [time.strftime("%Y-%m-%d", time.localtime(when)) for when in (0, 86_400 * 3)]
    numbers = {"sessions": 2, "stops": 3, "blocked": 1, "cached": 1, "overridden": 1}
    assert stats == {**numbers, "first": days[0], "last": days[1], "damaged": 3, "gates": stats["gates"]}


def test_a_stop_that_only_advice_continued_was_not_blocked() -> None:
    stats = count([run("advise"), {**verdict(), "verdict": "continue"}])
    assert (stats["stops"], stats["blocked"]) == (1, 0)


def test_hooks_of_other_events_are_not_counted() -> None:
    nothing = dict.fromkeys(("sessions", "stops", "blocked", "cached", "overridden", "damaged"), 0)
    records = [{**run("block"), "event": "PreToolUse"}]
    assert count(records) == {**nothing, "first": None, "last": None, "gates": []}


@pytest.mark.parametrize("is_wrong", [True, False])
def test_the_last_mark_of_a_block_counts(is_wrong: bool) -> None:
    blocks = [run("block", 1, reason="red"), run("block", 2, reason="red"), run("allow", 3), verdict("tests")]
    mark = {"kind": "mark", "time": 4, "block": block_id(blocks[0])}
    marks = [{**mark, "wrong": wrong} for wrong in (not is_wrong, is_wrong)]
    assert count([*blocks, *marks])["gates"][0]["wrong"] == int(is_wrong)


KEYS = (
    "outcome",
    "notice",
    "evaluation",
    "blocked_by",
    "unenforced",
    "ended_by",
    "kind",
    "block",
    "gate",
    "blocked_at",
    "wrong",
    "runs",
    "reason",
)


@pytest.mark.parametrize("value", [None, [], {}, "x", -1, 1e300, True], ids=str)
@pytest.mark.parametrize("key", KEYS)
def test_a_value_of_another_type_ends_no_count(key: str, value: Any) -> None:
    mark = {"kind": "mark", "time": 4, "block": "1", "gate": "tests", "blocked_at": 1, "wrong": True}
    accepted = {"kind": "accepted", "time": 4, "why": "ok"}
    records = [
        {**each, key: value} for each in (run("block"), verdict("tests"), end("capped"), mark, accepted)
    ]
    assert count(records)["sessions"] in (0, 1)
    assert all(isinstance(stop, RecordedStop) for stop in read_stops(records))


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


def test_of_a_line_that_is_too_long_only_pieces_are_read(tmp_path: Path) -> None:
    good = run("allow", 1.0)
    with (tmp_path / "journal.jsonl").open("w") as file:
        file.write(f'"{"x" * (2 * MAX_JOURNAL_BYTES)}"\n{json.dumps(good)}\n')
    assert read_journal(str(tmp_path)) == JournalFile((good,), 3)


def test_runs_by_a_person_are_no_stops_of_an_agent(tmp_path: Path) -> None:
    for name in ("fire", "gates-run-1", "s-1"):
        (tmp_path / "sessions" / name).mkdir(parents=True)
    assert journal_folders(str(tmp_path)) == [str(tmp_path / "sessions" / "s-1")]
    assert journal_folders(str(tmp_path / "missing")) == []
