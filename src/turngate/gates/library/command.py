"""The gate `command`: holds the stop until a command passes.

Recognizes from the output of a failed command that a program, a script or a target is not there. Pure.

Such a command has checked nothing, and an agent that is blocked because of it cannot change that. To add a tool: a line
in `_MESSAGES`, with the message of that tool and nothing that a failing test might print.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from turngate.core.answers.reports import Exited, TimedOut
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import one_line
from turngate.gates.failure_output import WHOLE_OUTPUT, failure_names, has_failing_lines, useful_output
from turngate.gates.gate import CouldNotRun, Failed, Gate, GateContext, GateOption, GateResult, Passed
from turngate.gates.project_files import FilesUnreadable
from turngate.gates.session_changes import changed_files, record_files

CANNOT_EXECUTE, NOT_FOUND = 126, 127
MAX_WHY_CHARS = 300
LAST_LINES = 12  # of stderr: the message of a tool that does not start is at the end

_MESSAGES = re.compile(
    r"""
      (?:\S*/)?(?:ba|da|z|k|a)?sh:\s(?:line\s)?(?:\d+:\s)?\S+:\s(?:command\s)?not\ found  # sh, bash, dash
    | (?:\S*/)?zsh:(?:\d+:)?\scommand\ not\ found:\s\S+
    | \S+:\s(?:line\s)?\d+:\s\S+:\s(?:command\s)?not\ found     # in a script
    | (?:\S*/)?python[\d.]*:\sNo\ module\ named\s\S+            # python -m TOOL
    | g?make(?:\[\d+\])?:\s\*\*\*\sNo\ rule\ to\ make\ target\s\S+\.\s+Stop\.
    | g?make(?:\[\d+\])?:\s\*\*\*\s.*\sError\s12[67]
    | npm\s(?:ERR!|error)\sMissing\ script:.*
    | npm\s(?:ERR!|error)\s(?:enoent\ )?Could\ not\ read\ package\.json:.*
    | npm\s(?:ERR!|error)\scould\ not\ determine\ executable\ to\ run.*
    | npx\ canceled\ due\ to\ missing\ packages.*
    | \s*ERR_PNPM_NO_SCRIPT.*
    | error\ Command\ ".*"\ not\ found\.?                       # yarn
    | error:\ Script\ not\ found\ ".*"                          # bun
    | error:\ no\ such\ (?:sub)?command:?\s`.*                  # cargo
    | error:\ rustup\ could\ not\ choose\ a\ version\ of\ \S+\ to\ run.*
    | error:\ toolchain\ '.*'\ is\ not\ installed.*           # rustup
    | error:\ could\ not\ find\ `Cargo\.toml`\ in\ .*
    | go:\ (?:cannot\ find\ main\ module|go\.mod\ file\ not\ found).*
    | error:\ Failed\ to\ spawn:\s`.*                           # uv
    | Command\ not\ found:\s\S+                                 # poetry
    """,
    re.VERBOSE,
)


def missing_program(code: int, stdout: str, stderr: str) -> str | None:
    """Return what is not there, or None if the command has failed in another way: also if it reports failures."""
    if has_failing_lines(stdout, stderr):
        return None
    lines = [line.strip() for line in stderr[-20_000:].splitlines() if line.strip()]
    said = next((line for line in lines[-LAST_LINES:] if _MESSAGES.fullmatch(line)), None)
    if said is not None:
        return f"exit code {code}: {one_line(said, MAX_WHY_CHARS)}"
    if code in (CANNOT_EXECUTE, NOT_FOUND):
        last = one_line(lines[-1], MAX_WHY_CHARS) if lines else "a program was not found"
        return f"exit code {code}: {last}"
    return None


MAX_COMMAND_CHARS = 200
MAX_BASELINE = 2000  # names of failures that are kept
# Exit codes of a shell whose command was killed: 128 plus the signal. Others are counts of failures, as mocha's.
KILLED = frozenset(128 + number for number in (1, 2, 3, 4, 6, 7, 8, 9, 11, 13, 15))
NOT_COMPARABLE = (
    "The output differs from that at the session's start, and it has no names of failures to compare."
)

OPTIONS = (
    GateOption(
        name="if-changed",
        kind="texts",
        metavar="GLOB",
        help="check only if a file that matches has changed since the session's start",
    ),
    GateOption(
        name="baseline",
        kind="flag",
        help="count only failures that were not there at the session's start; configure it at SessionStart too",
    ),
)
RECORD_OPTIONS = tuple(option.name for option in OPTIONS)


async def check_command(context: GateContext) -> GateResult:
    """Run the command once: any failing exit code blocks, except where the command has checked nothing."""
    if context.command is None:
        return CouldNotRun("there is no command")
    return _result(await context.commands.run(context.command))


async def hold_until_passed(context: GateContext, command: CommandHook) -> GateResult:
    """Check a command with the options of this module; the reason names the command."""
    if (note := await _nothing_to_check(context)) is not None:
        return Passed(note)
    report = await context.commands.run(command)
    result = _result(report)
    if isinstance(result, Failed) and isinstance(report, Exited) and context.options.get("baseline"):
        result = _without_known_failures(result, report, _baseline_of(context, command))
    if isinstance(result, Failed):
        return Failed(f"`{show_command(command)}`: {result.reason}")
    return result


async def record_command(context: GateContext, *commands: CommandHook) -> Mapping[str, Any]:
    """Return what the options need at a stop: the files, and the failures that are there already."""
    record: dict[str, Any] = {}
    if context.options.get("if-changed"):
        record |= await record_files(context)
    if context.options.get("baseline"):
        record["baseline"] = {show_command(each): await _failures(context, each) for each in commands}
    return record


def show_command(command: CommandHook) -> str:
    text = command.command if command.args is None else shlex.join((command.command, *command.args))
    return one_line(text, MAX_COMMAND_CHARS)


_RAN_NO_TEST = re.compile(r"^Ran 0 tests in ", re.MULTILINE)  # of unittest


def _result(report: Exited | TimedOut) -> GateResult:
    match report:
        case TimedOut(seconds):
            return CouldNotRun(f"it did not end within {seconds:.3g} s")
        case Exited(code=0 | 5) if _RAN_NO_TEST.search(report.stderr):  # 5: since Python 3.12
            return CouldNotRun("it ran no test: unittest runs only the methods of a unittest.TestCase")
        case Exited(code=0):
            return Passed()
        case Exited(signal=int(number)):
            return CouldNotRun(f"it was killed by signal {number}")
        case Exited(code=code, stdout=stdout, stderr=stderr):
            if (missing := missing_program(code, stdout, stderr)) is not None:
                return CouldNotRun(missing)
            if code in KILLED and not has_failing_lines(stdout, stderr):
                return CouldNotRun(f"it was killed by signal {code - 128}")
            return Failed(f"exit code {code}\n{useful_output(stdout, stderr)}".strip())


async def _nothing_to_check(context: GateContext) -> str | None:
    globs = context.options.get("if-changed")
    if not globs:
        return None
    try:
        changed = await changed_files(context, globs)
    except FilesUnreadable:  # or there is no session to compare with: then the command decides
        return None
    return None if changed else f"nothing to check: no file that matches {' or '.join(globs)} has changed"


async def _failures(context: GateContext, command: CommandHook) -> list[str] | None:
    """Return the names of the failures that are there now, or None if the command cannot run."""
    report = await context.commands.run(command)
    match _result(report):
        case Passed():
            return []
        case Failed():
            return sorted(failure_names(report.stdout, report.stderr))[:MAX_BASELINE]
        case _:
            return None


def _baseline_of(context: GateContext, command: CommandHook) -> frozenset[str] | None:
    recorded = (context.state.start or {}).get("baseline")
    names = recorded.get(show_command(command)) if isinstance(recorded, dict) else None
    return frozenset(map(str, names)) if isinstance(names, list) else None


def _without_known_failures(result: Failed, report: Exited, known: frozenset[str] | None) -> GateResult:
    if known is None:
        note = "The failures at the session's start are not recorded, so all of them count."
        return Failed(f"{result.reason}\n\n{note}")
    new = failure_names(report.stdout, report.stderr) - known
    if not new:
        return Passed("it fails only as it did at the session's start")
    if not known:
        return result
    if any(name.startswith(WHOLE_OUTPUT) for name in new):
        return Failed(f"{result.reason}\n\n{NOT_COMPARABLE}")
    listed = "\n".join(f"- {name}" for name in sorted(new)[:20])
    return Failed(f"{result.reason}\n\nNew since the session's start:\n{listed}")


async def _check(context: GateContext) -> GateResult:
    if context.command is None:
        return CouldNotRun("there is no command")
    return await hold_until_passed(context, context.command)


async def _record(context: GateContext) -> Mapping[str, Any]:
    return await record_command(context, *((context.command,) if context.command else ()))


COMMAND = Gate(
    name="command",
    summary="a command passes",
    check=_check,
    options=OPTIONS,
    command="required",
    is_cached=True,
    record=_record,
    record_options=RECORD_OPTIONS,
)
