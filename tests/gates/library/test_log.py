"""The observer `log`, as a process, and for a project on each machine."""

import json
import os
import stat
from collections.abc import Callable
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


def links(project: Path) -> dict[str, tuple[Path, str]]:
    """Return what a repository may bring: where a link is, and what it leads to."""
    return {
        "the file": (project / "logs" / "stops.jsonl", str(project.parent / "outside" / "file")),
        "the file, which does not exist": (project / "logs" / "stops.jsonl", "../../outside/new"),
        "a file of the project": (project / "logs" / "stops.jsonl", "../build.sh"),
        "the folder": (project / "logs", "../outside"),
        "the folder, which does not exist": (project / "logs", str(project.parent / "new")),
    }


@pytest.mark.parametrize("name", links(Path("/p")))
@pytest.mark.parametrize("is_absolute", [False, True])
def test_a_link_of_the_project_is_not_followed(
    project: Path, name: str, is_absolute: bool, machine: Machine
) -> None:
    link, target = links(project)[name]
    outside = project.parent / "outside"
    outside.mkdir()
    (outside / "file").write_text("# mine\n")
    (project / "build.sh").write_text("make\n")
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(target)
    file = f"{project}/logs/stops.jsonl" if is_absolute else "logs/stops.jsonl"
    answer = answer_with_shell(("log", "--file", file), claude_input(project), project, machine)
    shown = f"{project}/{link.relative_to(project)}" if is_absolute else f"{link.relative_to(project)}"
    assert answer == {
        "systemMessage": f'gate "log": the stop was not logged: {shown} is a link, and links are not followed'
    }
    kept = {each.name: each.read_text() for each in outside.iterdir()}
    assert (kept, (project / "build.sh").read_text()) == ({"file": "# mine\n"}, "make\n")
    assert sorted(each.name for each in project.parent.iterdir() if each.name == "new") == []


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir])
def test_only_a_regular_file_is_written(project: Path, make: Callable[[Path], object]) -> None:
    (project / "logs").mkdir()
    make(project / "logs" / "stops.jsonl")
    note = {"systemMessage": 'gate "log": the stop was not logged: logs/stops.jsonl is not a regular file'}
    assert answer_of_process(WORDS, claude_input(project)) == (0, note, "")


def test_a_link_of_the_user_outside_of_the_project_is_followed(project: Path, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "link").symlink_to("logs")
    words = ("log", "--file", f"{tmp_path}/link/stops.jsonl")
    assert answer_of_process(words, claude_input(project)) == (0, {}, "")
    assert len((tmp_path / "logs" / "stops.jsonl").read_text().splitlines()) == 1
