"""The gate `command`: holds the stop until a command passes."""

from turngate.core.reports import Exited, TimedOut
from turngate.core.text import keep_ends
from turngate.gates.base import CouldNotRun, Failed, Gate, GateContext, GateResult, Passed

MAX_REASON_CHARS = 8000
CANNOT_EXECUTE, NOT_FOUND = 126, 127


async def check_command(context: GateContext) -> GateResult:
    if context.command is None:
        return CouldNotRun("there is no command")
    report = await context.commands.run(context.command)
    match report:
        case TimedOut(seconds):
            return CouldNotRun(f"it did not end within {seconds:.3g} s")
        case Exited(code=0):
            return Passed()
        case Exited(signal=int(number)):
            return CouldNotRun(f"it was killed by signal {number}")
        case Exited(code=code) if code in (CANNOT_EXECUTE, NOT_FOUND):
            return CouldNotRun(f"exit code {code}: {report.stderr.strip() or 'the program was not found'}")
        case Exited(code=code):
            output = "\n".join(part for part in (report.stdout.strip(), report.stderr.strip()) if part)
            return Failed(
                f"exit code {code}\n{keep_ends(output, MAX_REASON_CHARS // 4, MAX_REASON_CHARS)}".strip()
            )


COMMAND = Gate(
    name="command",
    summary="a command passes",
    check=check_command,
    command="required",
    is_cached=True,
)
