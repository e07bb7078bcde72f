"""A secret of the environment that the command of a gate prints: neither in an answer nor in a file of the state folder."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.builders import write_settings
from tests.support.cli import turngate
from tests.support.gates import answer_of_process, blocked, claude_input, could_not_run
from tests.support.git_projects import make_repository

SECRET = "s3cr3tvalue9988"


@pytest.fixture(autouse=True)
def _secret_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", SECRET)


def files_with_secret(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


PRINTS = 'echo "FAILED with $MY_API_KEY"; exit 1'
# Each line is truncated, in the middle of the secret.
LONG = 'i=0; while [ $i -lt 99 ]; do printf "%395s%s\\n" "FAILED" "$MY_API_KEY"; i=$((i+1)); done; exit 1'
NAMED = 'echo "FAILED test_a.py::test_$MY_API_KEY"; exit 1'


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--", PRINTS), blocked(f"`{PRINTS}`: exit code 1\nFAILED with …")),
        (
            ("--strict", "--", 'echo "$MY_API_KEY" >&2; exit 127'),
            blocked('gate "command" could not run: exit code 127: …'),
        ),
        (("--", 'echo "$MY_API_KEY" >&2; exit 127'), could_not_run("command", "exit code 127: …")),
        (
            ("--", 'echo "0 passing $MY_API_KEY"'),
            could_not_run("command", 'it checked nothing: its output says "0 passing"'),
        ),
        (("checklist", "TODO.md"), None),
        (("--", LONG), None),
    ],
)
def test_neither_the_answer_of_a_gate_nor_its_state_has_it(
    project: Path, state: Path, words: tuple[str, ...], expected: dict[str, Any] | None
) -> None:
    (project / "TODO.md").write_text(f"- [ ] replace {SECRET}\n")
    code, answer, err = answer_of_process(words, claude_input(project))
    assert (code, err) == (0, "")
    assert expected is None or answer == expected
    assert SECRET[:6] not in json.dumps(answer)
    assert ("decision" in answer) is ("systemMessage" not in answer)
    assert files_with_secret(state) == []


def test_failures_at_the_start_are_recognized_without_it(project: Path, state: Path) -> None:
    words = ("--", NAMED)
    make_repository(project, {"a": ""})
    assert answer_of_process(words, claude_input(project, hook_event_name="SessionStart")) == (0, {}, "")
    assert files_with_secret(state) == []
    (project / "new").touch()
    passed = {"systemMessage": 'gate "command": it fails only as it did at the session\'s start'}
    assert answer_of_process(words, claude_input(project)) == (0, passed, "")


def test_a_name_of_a_file_that_is_like_a_secret_is_still_found(project: Path, state: Path) -> None:
    make_repository(project, {"tests/a.py": "1"})
    (project / "tests" / f"{SECRET}.py").write_text("")
    words = ("untouched", "--added", f"tests/{SECRET}.py")
    expected = "protected files have changed:\n- tests/….py was added\nRestore them, and complete the task without changing them."
    assert answer_of_process(words, claude_input(project)) == (0, blocked(expected, "untouched"), "")
    names = [file for file in files_with_secret(state) if not file.name.startswith("files-")]
    assert names == []  # the names of the project's files are kept as they are


@pytest.mark.parametrize("command", [PRINTS, LONG])
def test_a_gate_of_the_settings_records_it_nowhere(project: Path, state: Path, command: str) -> None:
    gate = {"type": "gate", "id": "g", "command": command}
    write_settings(project, "turngate", {"hooks": {"Stop": [{"hooks": [gate]}]}})
    assert turngate("hooks", "approve", "--all", "--yes", "--project", str(project))[0] == 0
    event = {"hook_event_name": "Stop", "session_id": "s", "turn_id": "1", "model": "m", "cwd": str(project)}
    code, out, err = turngate("hook", stdin=json.dumps(event))
    assert (code, json.loads(out)["decision"], err) == (0, "block", "")
    assert SECRET[:6] not in out
    assert files_with_secret(state) == []
