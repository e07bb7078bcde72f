"""What a gate has found, as a reason: the first findings, one on each line, and how many more there are."""

from collections.abc import Sequence

from turngate._frozen import frozen
from turngate.core.text import printable, truncate
from turngate.gates.git.output import show_path

MAX_FINDINGS = 10
MAX_FINDING_CHARS = 200


@frozen
class Finding:
    """Something at a place in a file."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{show_path(self.path)}:{self.line}: {printable(self.text)}"


def list_findings(findings: Sequence[str], limit: int = MAX_FINDINGS) -> str:
    shown = [f"- {truncate(finding, MAX_FINDING_CHARS)}" for finding in findings[:limit]]
    left_out = len(findings) - limit
    return "\n".join([*shown, f"and {left_out} more"] if left_out > 0 else shown)
