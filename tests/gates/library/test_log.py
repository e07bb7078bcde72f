"""The observer `log`, as a process, and for a project on each machine."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.gates import answer_of_process, answer_with_shell, claude_input
from tests.support.machines import Machine

WORDS = ("log", "--file", "logs/stops.jsonl")


def logged(project: Path) -> list[dict[str, Any]]:
    lines = (project / "logs" / "stops.jsonl").read_text().splitlines()
    return [{key: value for key, value in json.loads(line).items() if key != "time"} for line in lines]


@pytest.mark.req("S0-105")
def test_a_line_that_was_not_written_to_its_end_does_not_spoil_the_next(
    project: Path, machine: Machine
) -> None:
    file = project / "logs" / "stops.jsonl"
    file.parent.mkdir()
    file.write_text('{"event": "St')
    assert answer_with_shell(WORDS, claude_input(project), project, machine) == {}
    torn, *others = file.read_text().splitlines()
    assert (torn, [json.loads(line)["event"] for line in others]) == ('{"event": "St', ["Stop"])


@pytest.mark.req("S0-105")
def test_every_stop_is_one_line(project: Path, machine: Machine) -> None:
    fields = claude_input(project, last_assistant_message="Done.\nüß" + "x" * 600)
    assert answer_of_process(WORDS, fields) == (0, {}, "")
    subagent = {"hook_event_name": "SubagentStop", "agent_id": "a1", "agent_type": "explorer"}
    other = {**fields, **subagent, "last_assistant_message": None, "stop_hook_active": True}
    assert answer_with_shell(WORDS, other, project, machine) == {}
    common = {"session_id": fields["session_id"], "cwd": str(project), "continuation_count": 0}
    assert logged(project) == [
        {
            **common,
            "event": "Stop",
            "stop_hook_active": False,
            "last_assistant_message": "Done.\nüß" + "x" * 491 + "…",
        },
        {
            **common,
            "event": "SubagentStop",
            "agent_id": "a1",
            "agent_type": "explorer",
            "stop_hook_active": True,
            "last_assistant_message": "",
        },
    ]
    assert stat.S_IMODE((project / "logs" / "stops.jsonl").stat().st_mode) == 0o600


def test_lines_of_parallel_processes_do_not_mix(project: Path) -> None:
    fields = claude_input(project, last_assistant_message="x" * 600)
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: answer_of_process(WORDS, fields), range(16)))
    assert answers == [(0, {}, "")] * 16
    assert len(logged(project)) == 16


@pytest.mark.req("S0-105")
def test_a_stop_that_cannot_be_logged_never_blocks(project: Path, machine: Machine) -> None:
    (project / "logs").write_text("a file")
    fields = claude_input(project)
    code, of_process, err = answer_of_process(WORDS, fields)
    assert (code, err) == (0, "")
    for answer in (of_process, answer_with_shell(WORDS, fields, project, machine)):
        assert answer["systemMessage"].startswith('gate "log": the stop was not logged: mkdir: ')
