"""All gates, by name."""

from collections.abc import Mapping

from turngate.gates.base import Gate
from turngate.gates.clean import CLEAN
from turngate.gates.command import COMMAND
from turngate.gates.todos import TODOS
from turngate.gates.touched import TOUCHED

_GATES = (
    COMMAND,
    CLEAN,
    TODOS,
    TOUCHED,
)
GATES: Mapping[str, Gate] = {gate.name: gate for gate in _GATES}
