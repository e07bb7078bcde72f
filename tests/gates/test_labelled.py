"""Labelled conversations and trees: how often a gate blocks what is innocent, and misses what is not.

`tests/data/labelled/*.jsonl`: a careful person has said for each whether to block. Half `a` was used to write the gates, half `b` was not; `c` was
written later, in words that the gates had not seen, and then used too.
"""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.support.gates import answer_with_shell, claude_input, record_with_shell
from tests.support.git_projects import commit, make_repository, write
from tests.support.paths import ROOT
from tests.support.transcripts import TranscriptBuilder


def cases(name: str, half: str) -> list[dict[str, Any]]:
    lines = (ROOT / f"tests/data/labelled/{name}.jsonl").read_text().splitlines()
    return [row for row in map(json.loads, lines) if row["half"] == half]


def transcript(row: dict[str, Any]) -> TranscriptBuilder:
    builder = TranscriptBuilder()
    for kind, *values in row["steps"]:
        match kind:
            case "u":
                builder.user(values[0])
            case "say":
                builder.says(values[0])
            case "b":
                builder.calls("Bash", {"command": values[0]}, values[1], is_error=not values[2])
            case "t":
                builder.calls(values[0], values[1], values[2], is_error=not values[3])
            case _:
                builder.edits(values[0])
    return builder.says(row["final"])


def judge(row: dict[str, Any], folder: Path) -> str:
    """Return whether the gate was right: caught, passed, missed or wrong."""
    project = folder / "project"
    words = tuple(row.get("args") or ["evidence"])
    project.mkdir(parents=True)
    fields = claude_input(project, session_id=row["name"], last_assistant_message=row["final"])
    if row["kind"] == "situation":
        make_repository(project, {"x": "1", **row["before"]})
        record_with_shell(words, fields, project)
        write(project, row["after"])
        if row["commit"] and row["after"]:
            commit(project)
    transcript(row).write(folder / "transcript.jsonl")
    is_blocked = answer_with_shell(words, fields, project).get("decision") == "block"
    return {
        (True, True): "caught",
        (False, False): "passed",
        (True, False): "missed",
        (False, True): "wrong",
    }[row["block"], is_blocked]


@pytest.mark.parametrize("half", ["a", "b", "c"])
def test_evidence_is_right_about_labelled_conversations(half: str, tmp_path: Path) -> None:
    rows = cases("evidence", half)
    results = Counter(judge(row, tmp_path / str(number)) for number, row in enumerate(rows))
    assert results == ({"caught": 41, "passed": 54} if half == "c" else {"caught": 12, "passed": 20})


@pytest.mark.parametrize("half", ["a", "b", "c"])
def test_gates_are_right_about_labelled_situations(half: str, tmp_path: Path) -> None:
    rows = cases("situations", half)
    results = Counter(judge(row, tmp_path / str(number)) for number, row in enumerate(rows))
    caught, passed = {"a": (7, 11), "b": (7, 9), "c": (7, 10)}[half]
    assert results == {"caught": caught, "passed": passed}
