"""All gates, by name."""

from collections.abc import Mapping

from turngate.gates.archive import ARCHIVE
from turngate.gates.base import Gate
from turngate.gates.budget import BUDGET
from turngate.gates.checklist import CHECKLIST
from turngate.gates.clean import CLEAN
from turngate.gates.command import COMMAND
from turngate.gates.evidence import EVIDENCE
from turngate.gates.judge import JUDGE
from turngate.gates.log import LOG
from turngate.gates.no_stubs import NO_STUBS
from turngate.gates.notify import NOTIFY
from turngate.gates.outputs import OUTPUTS
from turngate.gates.plan import PLAN
from turngate.gates.preset_gates import BUILD, LINT, TESTS, TYPES
from turngate.gates.todos import TODOS
from turngate.gates.touched import TOUCHED
from turngate.gates.until import UNTIL
from turngate.gates.untouched import UNTOUCHED

_GATES = (
    ARCHIVE,
    BUDGET,
    CHECKLIST,
    COMMAND,
    CLEAN,
    EVIDENCE,
    PLAN,
    JUDGE,
    LOG,
    NOTIFY,
    NO_STUBS,
    OUTPUTS,
    TESTS,
    LINT,
    TYPES,
    BUILD,
    TODOS,
    TOUCHED,
    UNTIL,
    UNTOUCHED,
)
GATES: Mapping[str, Gate] = {gate.name: gate for gate in _GATES}
