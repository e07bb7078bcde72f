"""All gates, by name."""

from collections.abc import Mapping

from turngate.gates.gate import Gate
from turngate.gates.library.archive import ARCHIVE
from turngate.gates.library.budget import BUDGET
from turngate.gates.library.checklist import CHECKLIST
from turngate.gates.library.clean import CLEAN
from turngate.gates.library.command import COMMAND
from turngate.gates.library.evidence import EVIDENCE
from turngate.gates.library.judge import JUDGE
from turngate.gates.library.log import LOG
from turngate.gates.library.no_stubs import NO_STUBS
from turngate.gates.library.notify import NOTIFY
from turngate.gates.library.outputs import OUTPUTS
from turngate.gates.library.plan import PLAN
from turngate.gates.library.project_checks import BUILD, LINT, TESTS, TYPES
from turngate.gates.library.todos import TODOS
from turngate.gates.library.touched import TOUCHED
from turngate.gates.library.until import UNTIL
from turngate.gates.library.untouched import UNTOUCHED

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
