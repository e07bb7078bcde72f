"""What all gates have in common."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.gates import answer_of_process, answer_with_shell, claude_input
from tests.support.git_projects import commit, make_repository, write
from tests.support.sessions import lines
from turngate.core.events.events import StopEvent
from turngate.core.verdict.decisions import UNCHANGED_RESULT, Allow, Block, Decision
from turngate.gates.arguments import parse_gate_words
from turngate.gates.local_tree_state import _Look
from turngate.gates.run_gate import make_context, record_start, run_gate
from turngate.shells.local import LocalShell


def test_a_failing_command_blocks_with_its_output_and_says_when_nothing_has_changed(
    project: Path,
) -> None:
    words = ("--", "echo one; echo two >&2; exit 7")
    fields = claude_input(project)
    reason = "`echo one; echo two >&2; exit 7`: exit code 7\none\ntwo"
    assert answer_with_shell(words, fields, project) == {"decision": "block", "reason": reason}
    again = {"decision": "block", "reason": f"{reason}\n\n{UNCHANGED_RESULT}"}
    assert answer_with_shell(words, fields, project) == again


@pytest.mark.req("S3-48")
def test_a_failure_is_checked_again_after_a_tool_call_and_after_a_prompt(project: Path) -> None:
    words = ("--", "echo run >> ../runs; echo no; exit 1")
    prompt, feedback = said_by_user("go on"), said_by_user("Stop hook feedback:\nno", isMeta=True)
    tool = run_of_tool("Write")
    counts = []
    for records in (
        prompt,
        prompt + feedback,
        prompt + feedback + tool,
        prompt + feedback + tool,
        tool + prompt,
    ):
        (project.parent / "transcript.jsonl").write_text(records)
        answer_with_shell(words, claude_input(project), project)
        counts.append(len((project.parent / "runs").read_text().splitlines()))
    assert counts == [1, 1, 2, 2, 3]


@pytest.mark.req("S3-48")
def test_a_pass_is_reused_after_a_tool_call_and_after_a_prompt(project: Path) -> None:
    prompt, tool = said_by_user("go on"), run_of_tool("Read")
    for records in (prompt, prompt + tool, tool + prompt):
        (project.parent / "transcript.jsonl").write_text(records)
        answer_with_shell(("--", "echo run >> ../runs"), claude_input(project), project)
    assert lines(project.parent / "runs") == ["run"]


def test_a_failure_is_checked_again_if_it_is_not_known_what_was_done(project: Path) -> None:
    words = ("--", "test -f ../installed")
    fields = claude_input(project, transcript_path="")
    assert answer_with_shell(words, fields, project)["decision"] == "block"
    (project.parent / "installed").touch()
    assert answer_with_shell(words, fields, project) == {}


def test_a_gate_that_blocks_because_it_could_not_run_says_when_that_is_repeated(project: Path) -> None:
    words = ("todos", "--strict")
    fields = claude_input(project, transcript_path=str(project / "none.jsonl"))
    first, second = (answer_with_shell(words, fields, project)["reason"] for _ in range(2))
    assert second == f"{first}\n\n{UNCHANGED_RESULT}"


@pytest.mark.parametrize(
    ("file", "count"), [("ignored.xml", 1), ("report.xml", 2), ("a.py", 2)], ids=["ignored", "new", "tracked"]
)
@pytest.mark.parametrize("is_local", [True, False])
def test_a_pass_is_kept_only_if_the_tree_is_the_same_before_and_after(
    project: Path, file: str, count: int, is_local: bool
) -> None:
    make_repository(project, {"a.py": "1\n", ".gitignore": "ignored.xml\n"})
    words = ("--", f"echo run >> ../runs; date +%N > {file}")
    notice = {"systemMessage": 'gate "command": the check itself changed a.py'} if file == "a.py" else {}
    for _ in range(2):
        if is_local:
            assert answer_of_process(words, claude_input(project)) == (0, notice, "")
        else:
            assert answer_with_shell(words, claude_input(project), project) == {}
    assert (project.parent / "runs").read_text() == "run\n" * count


def test_a_change_while_the_command_runs_is_checked_and_going_back_too(project: Path, state: Path) -> None:
    """The command that passes has seen `good`; neither the tree before nor the one after it has passed."""
    make_repository(project, {"data": "bad\n"})
    words = ("--", "echo run >> ../runs; test -e ../late || echo good > data; grep -q good data")
    notice = {"systemMessage": 'gate "command": the check itself changed data'}
    assert answer_of_process(words, claude_input(project)) == (0, notice, "")
    [lock] = (state / "locks").iterdir()
    assert json.loads(lock.read_text())["tree"] is None  # nor does it pass for another agent that waited
    (project.parent / "late").touch()
    (project / "data").write_text("bad\n")
    assert answer_of_process(words, claude_input(project))[1]["decision"] == "block"
    assert (project.parent / "runs").read_text() == "run\nrun\n"


def test_a_pass_of_a_file_that_is_changed_back_does_not_count(project: Path) -> None:
    make_repository(project, {"data": "bad\n"})
    words = ("--", "echo good > data; grep -q good data; echo bad > data; test ! -e ../late")
    assert answer_of_process(words, claude_input(project)) == (0, {}, "")
    (project.parent / "late").touch()
    assert answer_of_process(words, claude_input(project))[1]["decision"] == "block"


@pytest.fixture
def decide(project: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Decision | None]:
    """Return a function that asks a gate of this machine, where files that were changed just now count as old."""
    monkeypatch.setattr("turngate.gates.stored_state.CLOCK_TICK_NS", 0)

    def decide(*words: str, session: str = "s", is_start: bool = False) -> Decision | None:
        arguments, event = parse_gate_words(words), StopEvent(session_id=session, transcript_path="")

        async def answer() -> Decision | None:
            state, options = os.environ["TURNGATE_STATE"], arguments.options
            context = make_context(
                arguments.gate,
                event,
                LocalShell(),
                str(project),
                options=options,
                command=arguments.command,
                state_folder=state,
            )
            return await (record_start if is_start else run_gate)(arguments.gate, context)

        return asyncio.run(answer())

    return decide


@pytest.mark.parametrize("where", ["hooks/check.sh", "../outside.sh"])
@pytest.mark.parametrize("form", [("{}",), ("cd . && sh '{}' --all",), ("sh", "{}")])
def test_a_pass_is_that_of_the_script_that_ran(
    project: Path, where: str, form: tuple[str, ...], decide: Callable[..., Decision | None]
) -> None:
    """Git ignores the script, or it is not in the repository."""
    make_repository(project, {".gitignore": "hooks/\n"})
    script = project / where
    script.parent.mkdir(exist_ok=True)
    script.write_text("#!/bin/sh\necho run >> ../runs\n")
    script.chmod(0o755)
    words = ("--", *(word.format(where) for word in form))
    assert ([decide(*words) for _ in range(2)], lines(project / "../runs")) == ([Allow()] * 2, ["run"])
    script.write_text("#!/bin/sh\necho stricter; exit 1\n")
    assert isinstance(decide(*words), Block)


def test_a_pass_is_that_of_the_variables_that_the_command_names(
    project: Path, monkeypatch: pytest.MonkeyPatch, decide: Callable[..., Decision | None]
) -> None:
    make_repository(project, {"a": ""})
    monkeypatch.setenv("LEVEL", "low")
    words = ("--", 'echo run >> ../runs; test "$LEVEL" = low')
    assert ([decide(*words) for _ in range(2)], lines(project / "../runs")) == ([Allow()] * 2, ["run"])
    monkeypatch.setenv("LEVEL", "high")
    assert isinstance(decide(*words), Block)


def test_a_command_that_asks_git_is_asked_again_when_git_has_changed(project: Path) -> None:
    """Back at the content of an earlier commit, which is not committed now."""
    words = ("--", "git diff --quiet HEAD")
    make_repository(project, {"a": "A\n"})
    for text in ("A\n", "B\n"):
        write(project, {"a": text})
        commit(project)
        assert answer_of_process(words, claude_input(project)) == (0, {}, "")
    write(project, {"a": "A\n"})
    assert answer_of_process(words, claude_input(project))[1]["decision"] == "block"


@pytest.fixture
def looks(
    project: Path, decide: Callable[..., Decision | None], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Make a repository that an earlier session has looked at, and return a list that gets an item for each look at all files."""
    monkeypatch.setattr("turngate.gates.local_tree_state.RACY_NS", -1)
    make_repository(project, {"data": "good\n", "other": "", "z": "", ".gitignore": "*.log\n"})
    decide("--", "true", session="before")
    found, look = list[str](), _Look._stat

    def note(self: _Look) -> None:
        found.append("look")
        look(self)

    monkeypatch.setattr(_Look, "_stat", note)
    return found


@pytest.mark.parametrize("check", ["true", "echo x > a.log"])
def test_a_first_pass_needs_one_look_and_is_reused(
    project: Path, decide: Callable[..., Decision | None], looks: list[str], check: str
) -> None:
    words = ("--", f"echo run >> ../runs; {check}")
    assert (decide(*words), len(looks)) == (Allow(), 1)
    assert (decide(*words), lines(project / "../runs")) == (Allow(), ["run"])


@pytest.mark.usefixtures("looks")
@pytest.mark.parametrize(
    ("check", "changed"),
    [
        ("echo bad > data", "data"),
        ("echo bad > data; touch -d '2 days ago' data", None),
        ("echo bad > data; echo good > data", None),
        ("echo bad > new", None),
        ("rm other", None),
        ("chmod +x other", None),
        ("git -c user.name=a -c user.email=b commit -q --allow-empty -m more", None),
        ("git update-index --assume-unchanged other", None),
    ],
)
def test_a_first_pass_does_not_count_if_the_check_has_changed_anything(
    project: Path, decide: Callable[..., Decision | None], check: str, changed: str | None
) -> None:
    words = ("--", f"echo run >> ../runs; {check}; test ! -e ../late")
    notice = f'gate "command": the check itself changed {changed}' if changed else None
    assert decide(*words) == Allow(notice=notice)
    (project.parent / "late").touch()
    assert (type(decide(*words)), lines(project / "../runs")) == (Block, ["run"] * 2)


@pytest.mark.parametrize(
    ("edit", "runs", "count"),
    [("", [], 1), ("touch data", [], 1), ("echo more >> data", ["run"], 1), ("echo > new", ["run"], 1)],
)
def test_the_look_before_a_check_ends_where_a_file_differs_from_the_sessions_start(
    project: Path,
    decide: Callable[..., Decision | None],
    looks: list[str],
    edit: str,
    runs: list[str],
    count: int,
) -> None:
    words = ("--", "echo run >> ../runs")
    (project.parent / "runs").touch()
    decide(*words, is_start=True)
    looks.clear()
    subprocess.run(edit, shell=True, cwd=project, check=True)
    unchanged = Allow("nothing to check: nothing has changed since the session's start", quiet=True)
    answer = Allow() if runs else unchanged
    assert (decide(*words), lines(project / "../runs"), len(looks)) == (answer, runs, count)
    assert (decide(*words), lines(project / "../runs")) == (answer, runs)


def said_by_user(text: str, **fields: object) -> str:
    record = {"type": "user", "message": {"role": "user", "content": text}, **fields}
    return json.dumps(record) + "\n"


def run_of_tool(name: str) -> str:
    block = {"type": "tool_use", "id": "t1", "name": name, "input": {}}
    message = {"role": "assistant", "content": [block]}
    return json.dumps({"type": "assistant", "uuid": "u1", "message": message}) + "\n"


@pytest.mark.req("S3-48")
def test_a_tree_that_has_passed_is_checked_again_only_after_a_failure(project: Path) -> None:
    words = ("--", "echo run >> ../runs; ! grep -q bad code")
    counts, answers = [], []
    for text in ("good", "better", "good", "better", "bad", "good"):
        (project / "code").write_text(text)
        answers.append(answer_with_shell(words, claude_input(project), project).get("decision"))
        counts.append(len((project.parent / "runs").read_text().splitlines()))
    assert (counts, answers) == ([1, 2, 2, 2, 3, 4], [None, None, None, None, "block", None])
