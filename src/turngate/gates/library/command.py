"""The gate `command`: holds the stop until a command passes."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from turngate.core.answers.report_types import Exited, TimedOut
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.check_changes import block_once, find_definition, note_changes
from turngate.gates.count_tests import (
    count_tests,
    describe_fewer,
    describe_missing_count,
    last_pass,
    store_pass,
)
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.project_files import read_project
from turngate.gates.run_commands import FilesUnreadable

MAX_COMMAND_CHARS = 200
MAX_BASELINE = 2000  # names of failures that are kept
# Exit codes of a shell whose command was killed: 128 plus the signal. Others are counts of failures, as mocha's.
KILLED = frozenset(128 + number for number in (1, 2, 3, 4, 6, 7, 8, 9, 11, 13, 15))
NOT_COMPARABLE = (
    "The output differs from that at the session's start, and it has no names of failures to compare."
)

OPTIONS = (
    GateOption(
        "if-changed",
        "texts",
        "check only if a file that matches has changed since the session's start",
        "GLOB",
    ),
    GateOption(
        "baseline",
        "flag",
        "count only failures that were not there at the session's start; configure it at SessionStart too",
    ),
)


async def check_command(context: GateContext) -> Decision:
    """Run the command once: any failing exit code blocks, except where the command has checked nothing."""
    if context.command is None:
        return Fault("there is no command")
    return _result(context.command, await context.commands.run(context.command), None)


async def hold_until_passed(context: GateContext, command: CommandHook, check: str | None = None) -> Decision:
    """Check a command with the options of this module; the reason names the command. `check`: what it checks, if known."""
    if (note := await _nothing_to_check(context)) is not None:
        return Allow(note)
    report = await context.commands.run(command)
    result = _result(command, report, check)
    has_passed, name = isinstance(result, Allow), show_command(command)
    if has_passed and check == "tests" and (why := describe_missing_count(context, name, report)):
        return Fault(why)
    if isinstance(result, Block) and isinstance(report, Exited) and context.options.get("baseline"):
        result = _without_known_failures(result, report, _baseline_of(context, command))
    fewer = (
        _note_tests(context, command, report, has_passed=isinstance(result, Allow))
        if check == "tests"
        else None
    )
    if isinstance(result, Block):
        note = f"\n\nAlso: {fewer}." if fewer else ""
        return Block(f"`{show_command(command)}`: {result.reason}{note}")
    return (
        Allow("; ".join(filter(None, (result.reason, fewer))))
        if isinstance(result, Allow) and fewer
        else result
    )


def _note_tests(
    context: GateContext, command: CommandHook, report: Exited | TimedOut, *, has_passed: bool
) -> str | None:
    """Return whether fewer tests have passed, or more were skipped, than when they passed last in this project."""
    counted = count_tests(f"{report.stdout}\n{report.stderr}")
    if counted is None or context.state_folder is None:
        return None
    place = (context.state_folder, context.project, show_command(command))
    before = last_pass(*place)
    if has_passed:
        store_pass(*place, counted)
    return describe_fewer(before, counted) if before else None


async def record_command(
    context: GateContext, *commands: CommandHook, check: str | None = None
) -> Mapping[str, Any]:
    """Return what the options need at a stop: the files, and the failures that are there already."""
    record: dict[str, Any] = {}
    if context.options.get("if-changed"):
        from turngate.gates.session_changes import record_files  # noqa: PLC0415 # lazy: only for this option

        record |= await record_files(context)
    if context.options.get("baseline"):
        record["baseline"] = {show_command(each): await _failures(context, each, check) for each in commands}
    return record


def show_command(command: CommandHook) -> str:
    return one_line(_text(command), MAX_COMMAND_CHARS)


def _text(command: CommandHook) -> str:
    return command.command if command.args is None else shlex.join((command.command, *command.args))


NO_TESTS = 5  # exit code of pytest and unittest
MAX_OUTPUT_CHARS = 2000
# The line in which pytest, jest, node and mocha count failures.
_FAILED = re.compile(
    r"^=*\s?[1-9]\d* failed\b.* in [\d.]+s|^Tests:\s+[1-9]\d* failed|^[#ℹ] fail [1-9]|^[ \t]*[1-9]\d* failing\b",
    re.MULTILINE,
)


def _result(command: CommandHook, report: Exited | TimedOut, check: str | None) -> Decision:
    match report:
        case TimedOut(seconds):
            return Fault(f"it did not end within {seconds:.3g} s")
        case Exited(code=0 | 5) if (words := _describe_empty_run(command, report, check)) is not None:
            return Fault(f"it checked nothing: {words}")
        case Exited(code=0) if check == "tests" and _FAILED.search(f"{report.stdout}\n{report.stderr}"):
            return Block(
                f"exit code 0, although tests have failed\n{report.stdout[-MAX_OUTPUT_CHARS:]}".strip()
            )
        case Exited(code=0):
            return Allow()
        case Exited(signal=int(number)):
            return Fault(f"it was killed by signal {number}")
        case Exited():
            return _failure(report.code, report.stdout, report.stderr)


def _describe_empty_run(command: CommandHook, report: Exited, check: str | None) -> str | None:
    output = f"{report.stdout}\n{report.stderr}"
    if not output.strip():
        return None
    from turngate.gates.empty_runs import describe_empty_run  # noqa: PLC0415 # lazy: only if something is printed

    words = describe_empty_run(output, check)
    if words is None or check is not None:
        return words
    from turngate.gates.agent_commands import find_check  # noqa: PLC0415 # lazy: few runs are empty

    return describe_empty_run(output, find_check(_text(command)) or "other")


def _failure(code: int, stdout: str, stderr: str) -> Decision:
    # lazy: for failures only; it compiles large patterns
    from turngate.gates.failure_output import has_failing_lines, missing_program, useful_output  # noqa: PLC0415

    if (missing := missing_program(code, stdout, stderr)) is not None:
        return Fault(missing)
    if code in KILLED and not has_failing_lines(stdout, stderr):
        return Fault(f"it was killed by signal {code - 128}")
    return Block(f"exit code {code}\n{useful_output(stdout, stderr)}".strip())


async def _nothing_to_check(context: GateContext) -> str | None:
    globs = context.options.get("if-changed")
    if not globs:
        return None
    from turngate.gates.session_changes import changed_files  # noqa: PLC0415 # lazy: only for this option

    try:
        changed = await changed_files(context, globs)
    except FilesUnreadable:  # or there is no session to compare with: then the command decides
        return None
    return None if changed else f"nothing to check: no file that matches {' or '.join(globs)} has changed"


async def _failures(context: GateContext, command: CommandHook, check: str | None) -> list[str] | None:
    """Return the names of the failures that are there now, or None if the command cannot run."""
    from turngate.gates.failure_output import failure_names  # noqa: PLC0415 # lazy: as above

    report = await context.commands.run(command)
    match _result(command, report, check):
        case Allow():
            return []
        case Block():
            return sorted(failure_names(report.stdout, report.stderr))[:MAX_BASELINE]
        case _:
            return None


def _baseline_of(context: GateContext, command: CommandHook) -> frozenset[str] | None:
    recorded = (context.state.start or {}).get("baseline")
    names = recorded.get(show_command(command)) if isinstance(recorded, dict) else None
    return frozenset(map(str, names)) if isinstance(names, list) else None


def _without_known_failures(result: Block, report: Exited, known: frozenset[str] | None) -> Decision:
    from turngate.gates.failure_output import WHOLE_OUTPUT, failure_names  # noqa: PLC0415 # lazy: as above

    if known is None:
        note = "The failures at the session's start are not recorded, so all of them count."
        return Block(f"{result.reason}\n\n{note}")
    new = failure_names(report.stdout, report.stderr) - known
    if not new:
        return Allow("it fails only as it did at the session's start")
    if not known:
        return result
    if any(name.startswith(WHOLE_OUTPUT) for name in new):
        return Block(f"{result.reason}\n\n{NOT_COMPARABLE}")
    listed = "\n".join(f"- {name}" for name in sorted(new)[:20])
    return Block(f"{result.reason}\n\nNew since the session's start:\n{listed}")


async def _check(context: GateContext) -> Decision:
    if context.command is None:
        return Fault("there is no command")
    check, definition = await _definition(context, context.command)
    if block := block_once(context, show_command(context.command), definition):
        return block
    result = await hold_until_passed(context, context.command, check)
    if isinstance(result, Allow) and (changes := note_changes(context, definition)):
        return Allow("; ".join(filter(None, (result.reason, changes))))
    return result


async def _definition(context: GateContext, command: CommandHook) -> tuple[str | None, dict[str, str]]:
    """Return which check a command is, if that is known, and what defines it."""
    from turngate.gates.agent_commands import find_check  # noqa: PLC0415 # lazy: it compiles patterns

    check = find_check(_text(command))
    files = await read_project(context.commands)
    return check, await find_definition(context, [_text(command)], files)


async def _record(context: GateContext) -> Mapping[str, Any]:
    if context.command is None:
        return {}
    _, definition = await _definition(context, context.command)
    return {"definition": definition, **await record_command(context, context.command)}


COMMAND = Gate(
    name="command",
    summary="a command passes",
    check=_check,
    options=OPTIONS,
    command="required",
    is_cached=True,
    record=_record,
)
