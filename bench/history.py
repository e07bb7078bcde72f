"""Past stops: how fast `turngate backtest` judges a transcript."""

import json
import os
import tempfile
from typing import Any

from bench.measure import Row, interleaved
from turngate.core.hooks.kinds import GateHook
from turngate.doctor.past_stops import judge_transcript

MEGABYTE = 1_000_000
STOPS = 8
CALLS = 40  # for each stop
GATES = (GateHook("evidence"), GateHook("todos"))


def past_stops() -> Row:
    """Judge a transcript of 1 MB with 8 stops, and compare with parsing its lines."""
    output = "a line of output\n" * (MEGABYTE // STOPS // CALLS // 17 - 24)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "t.jsonl")
        with open(path, "w", encoding="utf-8") as written:
            for stop in range(STOPS):
                written.writelines(f"{json.dumps(record)}\n" for record in _turn(stop, output))
        with open(path, "rb") as file:
            lines = file.readlines()
        size = sum(map(len, lines)) / MEGABYTE

        def judge() -> None:
            assert len(judge_transcript(path, "", GATES, None, 0).stops) == STOPS

        def floor() -> None:
            for line in lines:
                json.loads(line)

        a, b = interleaved(judge, floor, rounds=11)
    return Row(
        "backtest of 1 MB with 8 stops, MB/s / json.loads of its lines",
        size / a,
        size / b,
        min_ratio=0.02,
        unit=" MB/s",
    )


def _turn(stop: int, output: str) -> list[dict[str, Any]]:
    records = [_record("user", "Fix the parser.")]
    for call in range(CALLS):
        identity, edits = f"{stop}-{call}", call % 4 == 1
        name, given = (
            ("Edit", {"file_path": "/srv/app/a.py"}) if edits else ("Bash", {"command": "pytest -q"})
        )
        records.append(
            _record("assistant", [{"type": "tool_use", "id": identity, "name": name, "input": given}])
        )
        records.append(_record("user", [{"type": "tool_result", "tool_use_id": identity, "content": output}]))
    return [*records, _record("assistant", [{"type": "text", "text": "Done: all tests pass."}])]


def _record(role: str, content: Any) -> dict[str, Any]:
    return {"type": role, "cwd": "/srv/app", "message": {"role": role, "content": content}}
