"""All gates, by name."""

from collections.abc import Mapping

from turngate.gates.base import Gate
from turngate.gates.command import COMMAND
from turngate.gates.todos import TODOS

_GATES = (
    COMMAND,
    TODOS,
)
GATES: Mapping[str, Gate] = {gate.name: gate for gate in _GATES}
