"""The gate `todos`."""

from pathlib import Path

from tests.gates.cases.todos import OPEN_TWO, OPEN_TWO_REASON
from tests.support.gates import answer_with_shell, blocked, claude_input
from tests.support.transcripts import TranscriptBuilder, talk
from turngate.core.verdict.decisions import UNCHANGED_RESULT


def test_a_list_that_has_not_changed_is_reported_as_unchanged(project: Path) -> None:
    talk().calls("TodoWrite", OPEN_TWO).write(project.parent / "transcript.jsonl")
    fields = claude_input(project)
    assert answer_with_shell(("todos",), fields, project) == blocked(OPEN_TWO_REASON, "todos")
    again = answer_with_shell(("todos",), {**fields, "stop_hook_active": True}, project)
    assert again == blocked(f"{blocked(OPEN_TWO_REASON, 'todos')['reason']}\n\n{UNCHANGED_RESULT}")


def test_the_list_is_found_at_the_beginning_of_100_mb(project: Path) -> None:
    path = project.parent / "transcript.jsonl"
    talk().calls("TodoWrite", OPEN_TWO).write(path)
    filler = TranscriptBuilder().runs("make", "x" * 5000, code=2).lines
    with path.open("ab") as file:
        file.write((b"\n".join(filler) + b"\n") * 18_000)
        file.write(b'{"message":"' + b"y" * 10_000_000 + b'"}\n')
    assert path.stat().st_size > 100_000_000
    assert answer_with_shell(("todos",), claude_input(project), project) == blocked(OPEN_TWO_REASON, "todos")
