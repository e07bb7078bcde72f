"""All gates, by name."""

from collections.abc import Mapping

from turngate.gates.base import Gate
from turngate.gates.checklist import CHECKLIST
from turngate.gates.clean import CLEAN
from turngate.gates.command import COMMAND
from turngate.gates.evidence import EVIDENCE
from turngate.gates.outputs import OUTPUTS
from turngate.gates.plan import PLAN
from turngate.gates.todos import TODOS
from turngate.gates.touched import TOUCHED
from turngate.gates.until import UNTIL
from turngate.gates.untouched import UNTOUCHED

_GATES = (
    CHECKLIST,
    COMMAND,
    CLEAN,
    EVIDENCE,
    PLAN,
    OUTPUTS,
    TODOS,
    TOUCHED,
    UNTIL,
    UNTOUCHED,
)
GATES: Mapping[str, Gate] = {gate.name: gate for gate in _GATES}
