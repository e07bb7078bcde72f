"""The gate `evidence`."""

from pathlib import Path

from tests.gates.cases.evidence import NOTHING, edit, ends
from tests.support.gates import answer_with_shell, blocked, claude_input
from turngate.core.verdict.decisions import UNCHANGED_RESULT


def test_a_claim_that_is_repeated_is_reported_as_unchanged(project: Path) -> None:
    fields = claude_input(project, **ends(edit())(project))
    assert answer_with_shell(("evidence",), fields, project) == blocked(NOTHING["reason"], "evidence")
    again = blocked(f"{blocked(NOTHING['reason'], 'evidence')['reason']}\n\n{UNCHANGED_RESULT}")
    assert answer_with_shell(("evidence",), fields, project) == again
