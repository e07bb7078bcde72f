"""The gate `evidence`: holds the stop until what the agent claims is backed by a command that succeeded after the last edit."""

import re
from collections.abc import Mapping, Sequence

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import run_in_thread
from turngate.core.shell.parse import WrittenCommand
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.agent_check_results import succeeded
from turngate.gates.agent_commands import edited_path, run_commands, runs_check, written_path
from turngate.gates.claims import CLAIMS, Claim, find_claims
from turngate.gates.conversation import ToolCall, last_answer, read_calls
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.toolchains import CHECKS

MAX_COMMAND_CHARS = 100
_ARROW = " => "  # between the two parts of a pattern
_WANTED = {"tests": "the tests", "build": "the build", "lint": "the linter", "types": "the type checker"}
_Place = tuple[int, int]  # of a call, and of a command in it


@frozen
class CheckRun:
    """One run of a check by the agent."""

    place: _Place
    command: str
    succeeded: bool


@frozen
class Edit:
    place: _Place
    path: str


class InvalidPattern(Exception):
    """A pattern of the user cannot be used."""


async def check_evidence(context: GateContext) -> Decision:
    try:
        claims, checks = _patterns(context.options["claims"], context.options["pattern"])
    except InvalidPattern as error:
        return Fault(str(error))
    found = find_claims(last_answer(context.event), claims)
    if not found:
        return Allow()
    calls = await run_in_thread(read_calls, context.event)
    edit = _last_edit(calls)
    problems = [_problem(claim, _runs(calls, claim.kind, checks), edit) for claim in found]
    reasons = [problem for problem in problems if problem]
    return Block("\n\n".join(reasons)) if reasons else Allow()


def _patterns(
    kinds: Sequence[str], own: Sequence[str]
) -> tuple[Mapping[str, re.Pattern[str]], Mapping[str, re.Pattern[str]]]:
    """Return the patterns of claims and of the commands that back them, by kind."""
    unknown = [kind for kind in kinds if kind not in CLAIMS]
    if unknown:
        raise InvalidPattern(f"{unknown[0]!r} is not a kind of claim; expected one of {', '.join(CLAIMS)}")
    claims = {kind: CLAIMS[kind] for kind in kinds or CLAIMS}
    checks: dict[str, re.Pattern[str]] = {}
    for text in own:
        claim, arrow, command = text.partition(_ARROW)
        if not arrow:
            raise InvalidPattern(f"the pattern {text!r} must have the form CLAIM{_ARROW}COMMAND")
        try:
            claims[text], checks[text] = re.compile(claim.strip(), re.IGNORECASE), re.compile(command.strip())
        except re.error as error:
            raise InvalidPattern(f"the pattern {text!r} is not a regular expression: {error}") from None
    return claims, checks


def _runs(calls: Sequence[ToolCall], kind: str, own: Mapping[str, re.Pattern[str]]) -> list[CheckRun]:
    runs = []
    for number, call in enumerate(calls):
        steps = _steps(call)
        runs += [
            CheckRun((number, place), step.text, succeeded(call, steps, place, kind))
            for place, step in enumerate(steps)
            if runs_check(step.text, kind, own)
        ]
    return runs


def _steps(call: ToolCall) -> list[WrittenCommand]:
    """Return the commands of a call. A tool of another server counts as the program of its name: mcp__ide__test."""
    if call.name == "Bash":
        return run_commands(call.text("command"))
    _, _, name = call.name.rpartition("__")
    return [WrittenCommand(name, "")] if call.name.startswith("mcp__") else []


def _last_edit(calls: Sequence[ToolCall]) -> Edit | None:
    last = None
    for number, call in enumerate(calls):
        if path := edited_path(call):
            last = Edit((number, 0), path)
        if call.name == "Bash":
            for place, step in enumerate(run_commands(call.text("command"))):
                if path := written_path(step.text):
                    last = Edit((number, place), path)
    return last


def _problem(claim: Claim, runs: Sequence[CheckRun], edit: Edit | None) -> str | None:
    """Return why a claim is not backed, and what to do."""
    later = [run for run in runs if edit is None or run.place >= edit.place]
    if any(run.succeeded for run in later):
        return None
    if later:
        what = f"{_show(later[-1])} did not succeed"
    elif runs and edit:
        what = f"{_show(runs[-1])} was run before the last edit, of {one_line(edit.path, MAX_COMMAND_CHARS)}"
    else:
        what = "no command in this session has checked that"
    wanted = _show(runs[-1]) if runs else _WANTED.get(claim.kind, "a command that checks it")
    return f'You claim "{claim.text}", but {what}.\nRun {wanted} now and report what it prints, or correct the claim.'


def _show(run: CheckRun) -> str:
    return f"`{one_line(run.command, MAX_COMMAND_CHARS)}`"


EVIDENCE = Gate(
    name="evidence",
    summary="what the agent claims is backed by a command that succeeded after the last edit",
    check=check_evidence,
    needs_conversation=True,
    options=(
        GateOption("claims", "texts", f"only claims of these kinds: {', '.join(CHECKS)}", "KIND"),
        GateOption(
            "pattern",
            "texts",
            "a further kind: two regular expressions, 'deployed => kubectl rollout status'",
            "CLAIM=>COMMAND",
        ),
    ),
)
