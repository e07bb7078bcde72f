"""The gate `evidence`: holds the stop until source that the agent has edited was checked by a command that succeeded."""

import re
from collections.abc import Sequence

from turngate.aio.threads import run_in_thread
from turngate.core.answers.missing_programs import MISSING
from turngate.core.answers.report_types import Exited
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.agent_commands import CheckRun, Edit, read_edits, read_runs
from turngate.gates.check_output import describe_empty_run
from turngate.gates.claims import Claim, find_admission, find_claims, says_done
from turngate.gates.conversation import find_prompt, last_answer, read_calls
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.toolchains import CHECKS

MAX_SHOWN_CHARS = 100
MAX_MISSING_LINES = 3
RUN_ONE = "Run the project's tests, or another check of what you have changed, and report what it prints. If that is not possible, say openly what was not checked."
_PART = re.compile(r"\s(?:-k|-t|-m|--grep|-run|--filter|--testNamePattern)[\s=]|::|\S*test\S*\.\w+(?:\s|$)")
_WANTED = {"tests": "the tests", "build": "the build", "lint": "the linter", "types": "the type checker"}
# Claims about the project: a script that prints something if it is not so, and what to say then.
_TREE = {
    "committed": ('git status --porcelain -- "$@"', "files that you have edited are not committed"),
    "pushed": ("git rev-list '@{upstream}..HEAD'", "the branch has commits that are not pushed"),
    "written": ('test -e "$1" || echo no', "there is no such file"),
}


async def check_evidence(context: GateContext) -> Decision:
    try:
        own = [re.compile(text) for text in context.options["check"]]
    except re.error as error:
        return Fault(f"an option `check` is not a regular expression: {error}")
    event, answer = context.event, last_answer(context.event)
    calls = await run_in_thread(read_calls, event)
    edits = read_edits(calls, event.cwd)
    runs = read_runs(calls, own)
    if not edits:
        empty = _empty_run(answer, runs)
        return Block(f"{empty}\n{RUN_ONE}") if empty else Allow()
    if not says_done(answer) and (prompt := find_prompt(event)):
        recent = await run_in_thread(read_calls, event, prompt.offset)
        if edits[-1].place[0] < len(calls) - len(recent):
            return Allow()
    later = [run for run in runs if run.place >= edits[-1].place]
    problem = _problem(later, runs, edits[-1]) or _empty_run(answer, later)
    problems = [problem] if problem else []
    if context.options["claims"]:
        found = [*find_claims(answer)]
        problems += [
            f'You say "{claim.text}", but {what}.'
            for claim in found
            if (what := _contradiction(claim, later))
        ]
        problems += await _tree_problems(context, found, edits)
    if not problems:
        return Allow()
    if admission := find_admission(answer):
        return Allow(f'it is not backed by a check, and the agent says so: "{admission}"')
    return Block("\n".join([*problems, RUN_ONE]))


def _empty_run(answer: str, runs: Sequence[CheckRun]) -> str | None:
    """Return which check the answer says has passed, although its last run has checked nothing."""
    for claim in find_claims(answer):
        own = [run for run in runs if claim.kind in run.kinds]
        if own and (words := describe_empty_run(own[-1].output, claim.kind)):
            return f'You say "{claim.text}", but {_show(own[-1])} checked nothing: {words}'
    return None


def _problem(later: Sequence[CheckRun], runs: Sequence[CheckRun], edit: Edit) -> str | None:
    """Return why what was edited counts as not checked."""
    failed = [
        run
        for run in later
        if not run.succeeded
        and not _is_missing(run)
        and not any(each.succeeded and each.kinds & run.kinds and each.place > run.place for each in later)
    ]
    if failed:
        return f"{_show(failed[-1])} did not succeed, and has not been run successfully since."
    if later:
        return (
            f"{_show(later[-1])} did not run: its program was not found."
            if all(map(_is_missing, later))
            else None
        )
    path = one_line(edit.path, MAX_SHOWN_CHARS)
    if runs:
        return f"{_show(runs[-1])} was run before the last edit, of {path}."
    return f"You have edited {path}, and no command has checked it since."


def _is_missing(run: CheckRun) -> bool:
    """Return whether the program of a check was not found: the check has neither passed nor failed."""
    lines = [line.strip() for line in run.output.splitlines() if line.strip()]
    return not run.succeeded and any(re.fullmatch(MISSING, line) for line in lines[-MAX_MISSING_LINES:])


def _contradiction(claim: Claim, runs: Sequence[CheckRun]) -> str | None:
    if claim.kind not in CHECKS:
        return None
    own = [run for run in runs if claim.kind in run.kinds and run.succeeded]
    if not own:
        return f"{_WANTED[claim.kind]} did not run since the last edit"
    if (
        claim.kind == "tests"
        and claim.is_whole
        and all(_PART.search(run.command) or "deselected" in run.output for run in own)
    ):
        return f"{_show(own[-1])} runs only a part of them"
    return None


async def _tree_problems(context: GateContext, claims: Sequence[Claim], edits: Sequence[Edit]) -> list[str]:
    """Return what git and the files say against claims; a script prints something if a claim is wrong."""
    problems = []
    for claim in claims:
        if claim.kind in _TREE:
            script, what = _TREE[claim.kind]
            words = (claim.path,) if claim.path else tuple({edit.path for edit in edits})
            report = await context.commands.run_script(script, *words)
            if isinstance(report, Exited) and report.code == 0 and report.stdout.strip():
                problems.append(f'You say "{claim.text}", but {what}.')
    return problems


def _show(run: CheckRun) -> str:
    return f"`{one_line(run.command, MAX_SHOWN_CHARS)}`"


EVIDENCE = Gate(
    name="evidence",
    summary="source that the agent has edited was checked by a command that succeeded",
    check=check_evidence,
    needs_conversation=True,
    options=(
        GateOption(
            "claims", "flag", "also compare what the answer claims with the commands, git and the files"
        ),
        GateOption("check", "texts", "a command that counts as a check, as a regular expression", "REGEX"),
    ),
)
