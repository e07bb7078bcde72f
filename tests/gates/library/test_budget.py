"""The gate `budget`."""

from pathlib import Path

from tests.support.cli import turngate
from tests.support.gates import answer_with_shell, claude_input
from tests.support.transcripts import talk


def test_it_cannot_be_strict_because_it_never_blocks() -> None:
    message = (
        "turngate gate: the gate budget never blocks, so it cannot be strict; see `turngate gate --help`\n"
    )
    assert turngate("gate", "budget", "--tokens", "1", "--strict", stdin="") == (1, "", message)


def test_the_tokens_of_a_large_transcript_are_counted(project: Path) -> None:
    path = project.parent / "transcript.jsonl"
    talk().says("x" * 1000, id="m0").write(path)
    line = path.read_bytes().splitlines()[-1]
    with path.open("ab") as file:
        for number in range(60_000):
            file.write(line.replace(b'"m0"', b'"m%d"' % number) + b"\n")
    fields = claude_input(project)
    answer = answer_with_shell(("budget", "--tokens", "1000"), fields, project)
    assert answer["stopReason"] == "the budget of this session is used up: 900,000 of 1,000 tokens"
