"""What a gate has found, as a reason: the first findings, one on each line, and how many more there are."""

from collections.abc import Sequence

from turngate.core.text import truncate

MAX_FINDINGS = 10
MAX_FINDING_CHARS = 200


def list_findings(findings: Sequence[str], limit: int = MAX_FINDINGS) -> str:
    shown = [f"- {truncate(finding, MAX_FINDING_CHARS)}" for finding in findings[:limit]]
    left_out = len(findings) - limit
    return "\n".join([*shown, f"and {left_out} more"] if left_out > 0 else shown)
