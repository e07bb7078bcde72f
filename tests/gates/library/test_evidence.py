"""The gate `evidence`."""

from pathlib import Path

from tests.gates.cases.evidence import NOTHING, ends
from tests.support.gates import answer_with_shell, blocked, claude_input
from tests.support.transcripts import talk
from turngate.core.verdict.decisions import UNCHANGED_RESULT


def test_a_claim_that_is_repeated_is_reported_as_unchanged(project: Path) -> None:
    fields = claude_input(project, **ends(talk())(project))
    assert answer_with_shell(("evidence",), fields, project) == NOTHING
    again = blocked(f"{NOTHING['reason']}\n\n{UNCHANGED_RESULT}")
    assert answer_with_shell(("evidence",), fields, project) == again
