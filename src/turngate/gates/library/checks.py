"""The gate `checks`: the checks of the branch's pull request on GitHub pass, as `gh pr checks` says."""

from turngate.core.answers.report_types import TimedOut
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.run_commands import NOT_FOUND

MAX_ERROR_CHARS = 200
NO_GH = "gh, the command line of GitHub, is not installed"
ADVICE = "Correct what fails and push it. `gh run view --log-failed` prints the log."


async def check_checks(context: GateContext) -> Decision:
    wait = ("--watch", "--interval", "10") if context.options["wait"] else ()
    report = await context.commands.run(CommandHook(command="gh", args=("pr", "checks", *wait)))
    if isinstance(report, TimedOut):
        return Fault(f"the checks were not done within {report.seconds:.3g} s", "waiting", may_block=False)
    if report.code == NOT_FOUND:
        return Fault(NO_GH)
    rows = [row for line in report.stdout.splitlines() if len(row := line.split("\t")) > 1]
    states = {row[0]: row[1] for row in rows}
    if failed := [
        f"{row[0]}: {row[1]}{f' {row[3]}' if row[3:] else ''}" for row in rows if row[1] in ("fail", "cancel")
    ]:
        return Block(f"checks of the pull request fail:\n{list_findings(failed)}\n{ADVICE}")
    if pending := [name for name, state in states.items() if state == "pending"]:
        return Fault(
            f"checks of the pull request still run: {', '.join(pending)}", "waiting", may_block=False
        )
    if not states or report.code:
        return Fault(one_line(report.stderr, MAX_ERROR_CHARS) or f"gh ended with exit code {report.code}")
    return Allow()


CHECKS = Gate(
    name="checks",
    summary="the checks of the pull request pass",
    check=check_checks,
    options=(GateOption("wait", "flag", "wait for checks that are still running, until time runs out"),),
)
