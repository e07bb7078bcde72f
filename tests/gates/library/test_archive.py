"""The observer `archive`, as a process, and for a project on each machine."""

import stat
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import turngate
from tests.support.gates import answer_of_process, answer_with_shell, claude_input
from tests.support.machines import Machine
from tests.support.transcripts import talk

WORDS = ("archive", "--to", "copies")


def noted(text: str) -> dict[str, Any]:
    return {"systemMessage": f'gate "archive": the transcript was not archived: {text}'}


def copies(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


@pytest.mark.req("S0-105")
def test_a_private_copy_is_made_of_every_new_state_and_none_is_replaced(
    project: Path, machine: Machine
) -> None:
    path = project.parent / "transcript.jsonl"
    first = talk()
    first.write(path)
    fields = claude_input(project)
    assert answer_of_process(WORDS, fields) == (0, {}, "")
    assert answer_of_process(WORDS, fields) == (0, {}, "")  # nothing has changed since
    [copy] = copies(project / "copies")
    assert copy.read_bytes() == path.read_bytes()
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert stat.S_IMODE((project / "copies").stat().st_mode) == 0o700
    first.says("more").write(path)
    assert answer_with_shell(WORDS, fields, project, machine) == {}
    assert answer_of_process(WORDS, fields) == (0, {}, "")
    assert {stat.S_IMODE(each.stat().st_mode) for each in copies(project / "copies")} == {0o600}
    contents = [each.read_bytes() for each in copies(project / "copies")]
    assert len(contents) == 3  # the other shell has a project, and so a state, of its own
    assert contents.count(path.read_bytes()) == 2


@pytest.mark.req("S0-105")
def test_ids_cannot_leave_the_folder(project: Path, machine: Machine) -> None:
    talk().write(project.parent / "transcript.jsonl")
    fields = claude_input(project, session_id="../../x y\n'\"; rm -rf")
    assert answer_with_shell(("archive", "--to", "-a b/c\n"), fields, project, machine) == {}
    [copy] = copies(project / "-a b" / "c\n")
    assert copy.name.startswith("_x_y_rm_-rf-")


@pytest.mark.req("S0-105")
def test_the_transcript_of_a_subagent_is_its_own(project: Path, machine: Machine) -> None:
    own = project.parent / "sub.jsonl"
    talk().says("sub").write(own)
    fields = claude_input(
        project, hook_event_name="SubagentStop", agent_id="a/1", agent_transcript_path=str(own)
    )
    assert answer_with_shell(WORDS, fields, project, machine) == {}
    [copy] = copies(project / "copies")
    assert copy.read_bytes() == own.read_bytes()
    assert "-a_1-" in copy.name


@pytest.mark.req("S0-105")
def test_a_tilde_is_the_home_of_the_user_on_that_machine(project: Path, machine: Machine) -> None:
    talk().write(project.parent / "transcript.jsonl")
    words = ("archive", "--to", f"~/{project.parent.name}")  # the home of the server is shared
    assert answer_with_shell(words, claude_input(project), project, machine) == {}
    assert len(copies(Path(machine.environ["HOME"], project.parent.name))) == 1


@pytest.mark.req("S0-105")
def test_what_cannot_be_archived_never_blocks(project: Path, machine: Machine) -> None:
    fields = claude_input(project)
    assert answer_of_process(WORDS, fields) == (0, noted("No such file or directory"), "")
    talk().write(project.parent / "transcript.jsonl")
    (project / "copies").write_text("a file")
    answer = answer_with_shell(WORDS, fields, project, machine)
    assert answer["systemMessage"].startswith(noted("mkdir: ")["systemMessage"])
    late = answer_with_shell((*WORDS, "--timeout", "0.001"), fields, project, machine)
    assert late == noted("its time is up")


def test_a_link_of_the_project_is_not_followed(project: Path, machine: Machine) -> None:
    talk().write(project.parent / "transcript.jsonl")
    outside = project.parent / "outside"
    outside.mkdir()
    (project / "copies").symlink_to(outside)
    answer = answer_with_shell(("archive", "--to", "copies/of"), claude_input(project), project, machine)
    assert answer == noted("copies is a link, and links are not followed")
    assert copies(outside) == []


def test_a_large_transcript_is_copied(project: Path) -> None:
    path = project.parent / "transcript.jsonl"
    path.write_bytes(b'{"message":{}}\n' * 7_000_000)
    assert answer_with_shell(WORDS, claude_input(project), project) == {}
    [copy] = copies(project / "copies")
    assert copy.stat().st_size == path.stat().st_size


@pytest.mark.parametrize("words", [("archive",), ("archive", "--to", "x", "--strict")])
def test_wrong_usage_is_not_an_answer(words: tuple[str, ...]) -> None:
    code, out, err = turngate("gate", *words, stdin="")
    assert (code, out) == (1, "")
    assert err.startswith("turngate gate: the gate archive ")
