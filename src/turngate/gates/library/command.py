"""The gate `command`: holds the stop until a command passes."""

import asyncio
import os
import re
import shlex
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from turngate.core.answers.report_types import Exited, TimedOut
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import one_line, strip_controls
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.baseline import Known, Results, run_at_start
from turngate.gates.check_changes import block_once, find_definition, note_changes
from turngate.gates.check_output import (
    count_tests,
    describe_empty_run,
    describe_fewer,
    describe_missing_count,
    last_pass,
    store_pass,
)
from turngate.gates.gate import WITHOUT_BASELINE, Gate, GateContext, GateOption
from turngate.gates.local_tree_state import content_of, others_of
from turngate.gates.project_files import read_project
from turngate.gates.run_commands import FilesUnreadable
from turngate.gates.tree_state import tree_before, tree_state

MAX_COMMAND_CHARS = 200
MAX_REASON_CHARS = 2500
TAIL_LINES, MAX_TAIL_CHARS = 3, 300  # of a command that did not end
# Exit codes of a shell whose command was killed: 128 plus the signal. Others are counts of failures, as mocha's.
KILLED = frozenset(128 + number for number in (1, 2, 3, 4, 6, 7, 8, 9, 11, 13, 15))
# A check with such a word in what defines it finds something else after a commit.
_ASKS_GIT = r"(?<![\w.-])(?:git|gh|commitlint|lint-staged|gitlint|lefthook|husky|overcommit|pre-commit|prek|nx|turbo)(?![\w.:/-])"
# One with such a word runs on another machine, or in a process that was there before and sees only the files of now.
_RUNS_ELSEWHERE = r"(?<![\w.-])(?:docker(?:-compose)?|podman|nerdctl|kubectl|ssh|vagrant|devcontainer|gradlew?|mvnd|bazel(?:isk)?|buck2|pants|dmypy|eslint_d)(?![\w.:/-])"
# Tools that say that they have ended before the rest.
_ENDED = r"(?m)stopping after \d+ failures|(?i:\bbail(?:ed|ing)? out)|^error: test failed, to rerun pass "
_FAILED_TARGET = r"(?m)^g?make(?:\[\d+\])?: \*\*\* \[(?:\S+: )?(\S+)\] Error "
UNKNOWN_START = "All failures count, because what failed at the session's start is not known"
NEW_ERROR = "Its output has an error without a name that it did not have at the session's start:"
NO_FAILURE = "If this is not a failure of the check, stop again: the user then reads it."
EXIT_CODE = "exit code "  # how `missing_program` begins
MAX_ERROR_CHARS = 200
RELATED_SHARE = 1 / 3  # of the time that is left, for the tests of a change
ONLY_RELATED = "These are tests that the change concerns. The others were not run."

OPTIONS = (
    GateOption(
        "if-changed",
        "texts",
        "check only if a file that matches has changed since the session's start",
        "GLOB",
    ),
    GateOption("always", "flag", "check even if the session has changed nothing that could be checked"),
    GateOption("all-failures", "flag", "also count failures from before the session"),
    GateOption("baseline", "flag", "the default: count only failures that are new since the session's start"),
    GateOption(
        "reason-chars", "number", "maximum number of characters in a reason", "N", default=MAX_REASON_CHARS
    ),
)

RELATED = GateOption("related", "flag", "first run the tests that the session's change affects")


async def check_command(context: GateContext) -> Decision:
    """Run the command once: any failing exit code blocks, except where the command has checked nothing."""
    if context.command is None:
        return Fault("there is no command")
    return judge(context.command, await context.commands.run(context.command), None, context.project)


async def hold_until_passed(
    context: GateContext,
    command: CommandHook,
    check: str | None,
    definition: Mapping[str, str],
    counted_as: str,
) -> Decision:
    """Check a command with the options of this module. What fails as at the session's start does not block.

    `check`: what it checks, if known. `counted_as`: under which name the number of its tests is kept.
    """
    text = "\n".join((_text(command), *definition.values()))
    context.asks_git = re.search(_ASKS_GIT, text) is not None
    context.runs_elsewhere = found[0] if (found := re.search(_RUNS_ELSEWHERE, text)) else ""
    results, name = _results(context, _text(command)), show_command(command)
    if context.options.get("related") and (block := await _check_related(context, command)):
        return block
    ended = results.find(await tree_before(context)) if results.has_slow() else None
    if ended and ended.is_too_slow(context.commands.seconds_left):
        hint = "" if context.options.get("related", True) else " (`related` runs the tests of a change first)"
        return Fault(
            f"not run again until a file changes or its timeout is raised{hint}: on these files {ended.problem}"
        )
    began = time.monotonic()
    report = await context.commands.run(command)
    seconds = time.monotonic() - began
    result = judge(command, report, check, context.project, _limit(context))
    results.store(await tree_before(context), _describe_run(context, report, result, seconds))
    if (
        isinstance(result, Allow)
        and check == "tests"
        and (why := describe_missing_count(context, name, counted_as, report))
    ):
        return Fault(why)
    if isinstance(result, Allow):
        context.state.data[f"passed: {name}"] = True
    elif isinstance(result, Block) and isinstance(report, Exited):
        result = await _without_known_failures(context, command, check, definition, report, result, seconds)
    elif isinstance(result, Fault) and isinstance(report, Exited) and result.error.startswith(EXIT_CODE):
        # Such as a program that was not found: also a function of the project that a script calls.
        ran = await run_at_start(context, command, seconds)
        at_start = None if isinstance(ran, str) else judge(command, ran, check, context.project)
        if isinstance(at_start, Allow | Block):
            result = Block(f"{result.error}\n\nOn the files of the session's start it can run.")
    fewer = (
        _note_tests(context, counted_as, report, has_passed=isinstance(result, Allow))
        if check == "tests"
        else None
    )
    if isinstance(result, Block):
        note = f"\n\nAlso: {fewer}." if fewer else ""
        return Block(f"`{name}`: {result.reason}{note}")
    return (
        Allow("; ".join(filter(None, (result.reason, fewer))))
        if isinstance(result, Allow) and fewer
        else result
    )


def _results(context: GateContext, command: str) -> Results:
    return Results(context.state_folder, context.project, command, asks_git=context.asks_git)


def _describe_run(context: GateContext, report: Exited | TimedOut, result: Decision, seconds: float) -> Known:
    """Return what a later run is compared with. `seconds`: how long it took."""
    match result, report:
        case Allow(), _:
            return Known(Counter())
        case Block(), _:
            from turngate.gates.failures import read_output  # noqa: PLC0415 # lazy: for failures only

            output = read_output(report.stdout, report.stderr, context.project)
            return Known(output.names, output.incomplete, errors=tuple(output.unnamed_errors))
        case Fault(error), TimedOut():
            return Known(None, seconds=seconds, problem=error)
        case _:
            return Known(None)


async def _without_known_failures(
    context: GateContext,
    command: CommandHook,
    check: str | None,
    definition: Mapping[str, str],
    report: Exited,
    result: Block,
    seconds: float,
) -> Decision:
    """Leave out the failures that were there at the session's start. If it is not certain what failed then, all count, and the agent may say that it has not caused them."""
    from turngate.gates.failures import WITHOUT_NAME, read_output  # noqa: PLC0415 # lazy: for failures only

    data, recorded = context.state.data, context.state.start
    if not recorded or context.options.get("all-failures") or f"passed: {show_command(command)}" in data:
        return result
    context.is_shared = False
    output = read_output(report.stdout, report.stderr, context.project)

    def unknown(why: str) -> Block:
        has_names = not any(each.startswith(WITHOUT_NAME) for each in output.names)
        data[WITHOUT_BASELINE] = sorted(output.names.elements()) if has_names else [WITHOUT_NAME]
        return Block(f"{result.reason}\n\n{UNKNOWN_START}: {why}.")

    if not isinstance(start := recorded.get("state"), str):
        return unknown("its files could not all be read")
    results = _results(context, _text(command))
    known = results.find(start)
    if known is None or (known.names is None and not known.is_too_slow(context.commands.seconds_left)):
        began = time.monotonic()
        ran = await run_at_start(context, command, seconds)
        if isinstance(ran, str):
            return unknown(ran)
        at_start = judge(command, ran, check, context.project)
        known = _describe_run(context, ran, at_start, time.monotonic() - began)
        results.store(start, known)
    if known.names is None:
        return unknown(
            f"it {'did not end within its time limit' if known.seconds is not None else 'could not run'}"
        )
    if not known.names:
        return result
    if known.incomplete and not output.incomplete:
        return unknown(known.incomplete)
    names = _follow_renames(context.project, known.names, output.names)
    if not output.names - names:
        unchecked = output.incomplete or _why_unchecked(output.lines, _text(command), check, definition)
        note = f"; {unchecked}, so the rest was not checked" if unchecked else ""
        if new := [line for key, line in output.unnamed_errors.items() if key not in known.errors]:
            first = one_line(new[0], MAX_ERROR_CHARS)
            if "new error" not in data:  # its lines may differ from run to run
                data["new error"], context.keeps_result = first, False
                return Block(
                    f"exit code {report.code}\n{NEW_ERROR}\n{first}\n\n{_describe_left_out(output.names)}\n\n{NO_FAILURE}"
                )
            note += f'; new in its output: "{first}"'
        return Allow(f"it fails only as it did at the session's start{note}")
    if any(name.startswith(WITHOUT_NAME) for name in (*(output.names - names), *names)):
        return unknown("its output differs, and has no names of failures to compare")
    return Block(_describe_new(context, report, names))


def _why_unchecked(
    lines: Sequence[str], command: str, check: str | None, definition: Mapping[str, str]
) -> str | None:
    """Return why more may not have run after a failure, as in `ruff check && pytest`, or with `pytest -x`."""
    from turngate.gates.toolchains import FAILED_TESTS  # noqa: PLC0415 # lazy: for failures only

    text = "\n".join(lines)
    # The recipe of a target that the command names is at its end.
    if re.search(_ENDED, text) or {*re.findall(_FAILED_TARGET, text)} - {*command.split()}:
        return "it ended at the first failure"
    shows_tests = count_tests(text) or re.search(rf"{FAILED_TESTS}|(?m:^\s*(?:FAIL|FAILED|not ok)\b)", text)
    if check == "tests" and not shows_tests:
        return "its output shows no test"
    has_steps = any("&&" in each for each in (command, *definition.values()))
    return "commands after `&&` may not have run" if has_steps else None


def _follow_renames(project: str, known: Counter[str], now: Counter[str]) -> Counter[str]:
    """Return the known failures, those of a file that is gone also under the name of another one that has the same failure, each once."""
    gone = [name for name in known - now if not os.path.exists(os.path.join(project, _file_of(name)))]
    found = Counter(known)
    for new in sorted(now - known):
        file = _file_of(new)
        for old in gone if file else ():
            if _file_of(old) and old.removeprefix(_file_of(old)) == new.removeprefix(file):
                found[new] = max(found[new], known[old])
                gone.remove(old)
                break
    return found


def _file_of(name: str) -> str:
    """Return the path at the beginning of a failure's name, or ""."""
    found = re.match(r"[^\s:]+\.\w+(?=[: ])", name)
    return found[0] if found else ""


def _describe_new(context: GateContext, report: Exited, known: Counter[str]) -> str:
    """Return the failures without known ones, and how many these are."""
    from turngate.gates.failures import describe_failures, read_output  # noqa: PLC0415 # lazy: for failures only

    output = read_output(report.stdout, report.stderr, context.project)
    left_out = output.names & known
    shown = describe_failures(output, output.without(known) if known else None, _limit(context))
    return "\n\n".join(
        [f"exit code {report.code}\n{shown}", *([_describe_left_out(left_out)] if left_out else [])]
    )


def _describe_left_out(known: Counter[str]) -> str:
    if known.total() == 1:
        return "1 failure that was there at the session's start is left out."
    return f"{known.total()} failures that were there at the session's start are left out."


async def _check_related(context: GateContext, command: CommandHook) -> Block | None:
    """Return a block if tests that the session's change concerns fail, and did not at its start. What is not certain is for the whole suite."""
    from turngate.gates.related_tests import related_commands  # noqa: PLC0415 # lazy: an option

    for name, text in await related_commands(context, _text(command)):
        results, seconds = _results(context, name), context.commands.seconds_left * RELATED_SHARE
        known = results.find(await tree_before(context))
        if known and (known.names is not None or known.is_too_slow(seconds)):
            continue
        related = replace(command, command=text, args=None)
        try:
            async with asyncio.timeout(seconds if seconds < float("inf") else None):
                report = await context.commands.run(related)
                result = judge(related, report, "tests", context.project)
                if isinstance(result, Block) and isinstance(report, Exited):
                    block = await _block_for_related(context, command, related, report)
                    if block is not None:
                        return block
            results.store(await tree_before(context), Known(Counter()))
        except TimeoutError:
            results.store(await tree_before(context), Known(None, seconds=seconds))
    return None


async def _block_for_related(
    context: GateContext, command: CommandHook, related: CommandHook, report: Exited
) -> Block | None:
    """Return a block if tests have failed that did not fail at the session's start, and both is certain."""
    from turngate.gates.related_tests import show_related  # noqa: PLC0415 # lazy: for failures only

    failed = _read_failed_tests(context, report)
    if failed is None:
        return None
    start, known = (context.state.start or {}).get("state"), Counter[str]()
    if isinstance(start, str) and not context.options.get("all-failures"):
        context.is_shared = False
        at_start = await _find_failed_at_start(context, command, related, start)
        if at_start is None or not failed - at_start:
            return None
        known = at_start
    name = one_line(show_related(related.command), MAX_COMMAND_CHARS)
    return Block(f"`{name}`: {_describe_new(context, report, known)}\n\n{ONLY_RELATED}")


async def _find_failed_at_start(
    context: GateContext, command: CommandHook, related: CommandHook, start: str
) -> Counter[str] | None:
    """Return the tests that failed on the files of the start, by a run of the same tests there or a stored one of all. None: not known."""
    from turngate.gates.failures import WITHOUT_NAME  # noqa: PLC0415 # lazy: for failures only

    found = []
    whole = _results(context, _text(command)).find(start)
    if whole and whole.names is not None and not whole.incomplete:
        found += [] if any(name.startswith(WITHOUT_NAME) for name in whole.names) else [whole.names]
    ran = await run_at_start(context, related, 0.0)
    if isinstance(ran, Exited):
        if ran.code == 0 or _describe_empty_run(related, ran, "tests") is not None:
            found.append(Counter())
        elif failed := _read_failed_tests(context, ran):
            found.append(failed)
    return found[0] | found[-1] if found else None


def _read_failed_tests(context: GateContext, report: Exited) -> Counter[str] | None:
    """Return the names of failed tests; None for a usage error, a coverage that is too low for a part of the tests and the like."""
    # lazy: for failures only
    from turngate.gates.failures import read_output  # noqa: PLC0415
    from turngate.gates.toolchains import FAILED_TESTS  # noqa: PLC0415

    output = read_output(report.stdout, report.stderr, context.project)
    has_failed = output.failures and re.search(FAILED_TESTS, "\n".join(output.lines))
    return output.names if has_failed and not output.incomplete else None


def _note_tests(
    context: GateContext, name: str, report: Exited | TimedOut, *, has_passed: bool
) -> str | None:
    """Return whether fewer tests have passed, or more were skipped, than when they passed last in this project."""
    counted = count_tests(f"{report.stdout}\n{report.stderr}")
    data, key, passed = context.state.data, f"tests of {name}", counted.passed if counted else 0
    ran = int(str(data.get(key, 0)))  # in this session
    has_failed = not (isinstance(report, Exited) and report.code == 0)  # perhaps only as at the start
    run = passed + _count_failures(context, report) if has_failed else passed
    data[key] = run if has_passed else max(ran, run)
    if counted is None or context.state_folder is None:
        return None
    place = (context.state_folder, context.project, name)
    passes = (context.state.start or {}).get("passes")
    before = last_pass(*place, at_start=passes.get(name) if isinstance(passes, dict) else None)
    if has_passed:
        store_pass(*place, counted)
    if before and not has_passed and run >= before.passed:
        counted = counted._replace(passed=run)  # none is gone: the reason has those that fail
    fewer = describe_fewer(before, counted) if before else None
    if has_passed and run < ran and not fewer:
        return f"{run} test{'s' * (run != 1)} passed, and {ran} have run in this session"
    return fewer


def _count_failures(context: GateContext, report: Exited | TimedOut) -> int:
    from turngate.gates.failures import read_output  # noqa: PLC0415 # lazy: for failures only

    return len(read_output(report.stdout, report.stderr, context.project).failures) or 1


async def record_command(context: GateContext, counted_as: Iterable[str]) -> Mapping[str, Any]:
    """Return what is needed at a stop: the files as they are, their state, and how many tests passed last. `counted_as`: their names."""
    from turngate.gates.session_changes import list_local, record_files  # noqa: PLC0415 # lazy: once in a session

    listing = await list_local(context)
    state = listing.state if listing else await tree_state(context)
    without_git = bool(context.options.get("if-changed"))
    files = await record_files(context, without_git=without_git, of_git="kept", listing=listing)
    place = (context.state_folder or "", context.project)
    return {"state": state, "passes": {name: last_pass(*place, name) for name in counted_as}, **files}


def _limit(context: GateContext) -> int:
    return int(context.options.get("reason-chars") or MAX_REASON_CHARS)


def show_command(command: CommandHook) -> str:
    return one_line(_text(command), MAX_COMMAND_CHARS)


def _text(command: CommandHook) -> str:
    return command.command if command.args is None else shlex.join((command.command, *command.args))


MAX_OUTPUT_CHARS = 2000
# The line in which pytest, jest, node and mocha count failures.
_FAILED = r"(?m)^=*\s?[1-9]\d* failed\b.* in [\d.]+s|^Tests:\s+[1-9]\d* failed|^[#ℹ] fail [1-9]|^[ \t]*[1-9]\d* failing\b"


def judge(
    command: CommandHook,
    report: Exited | TimedOut,
    check: str | None,
    project: str = "",
    limit: int = MAX_REASON_CHARS,
) -> Decision:
    """Return what a run means, whatever was there before. `limit`: the most characters of a reason."""
    match report:
        case TimedOut(seconds):
            lines = map(str.strip, f"{report.stdout}\n{report.stderr}".split("\n"))
            # What make says when it is ended is no news.
            tail = " / ".join([line for line in lines if line and " *** " not in line][-TAIL_LINES:])
            said = (
                f"; the end of its output: {one_line(strip_controls(tail), MAX_TAIL_CHARS)}" if tail else ""
            )
            return Fault(f"it did not end within {seconds:.3g} s{said}")
        case Exited(code=0 | 5) if (words := _describe_empty_run(command, report, check)) is not None:
            return Fault(f'it checked nothing: its output says "{words}"')
        case Exited(code=0) if check == "tests" and re.search(_FAILED, f"{report.stdout}\n{report.stderr}"):
            return Block(
                f"exit code 0, although tests have failed\n{report.stdout[-MAX_OUTPUT_CHARS:]}".strip()
            )
        case Exited(code=0):
            return Allow()
        case Exited(signal=int(number)):
            return Fault(f"it was killed by signal {number}")
        case Exited():
            return _failure(report.code, report.stdout, report.stderr, project, limit)


def _describe_empty_run(command: CommandHook, report: Exited, check: str | None) -> str | None:
    output = f"{report.stdout}\n{report.stderr}"
    if not output.strip():
        return None
    words = describe_empty_run(output, check)
    if words is None or check is not None:
        return words
    from turngate.gates.agent_commands import find_check  # noqa: PLC0415 # lazy: few runs are empty

    return describe_empty_run(output, find_check(_text(command)) or "other")


def _failure(code: int, stdout: str, stderr: str, project: str, limit: int) -> Decision:
    # lazy: for failures only; it compiles large patterns
    from turngate.gates.failures import describe_failures, has_failures, missing_program, read_output  # noqa: PLC0415

    output = read_output(stdout, stderr, project)
    if (missing := missing_program(code, output, stderr)) is not None:
        return Fault(missing)
    if code in KILLED and not has_failures(output):
        return Fault(f"it was killed by signal {code - 128}")
    return Block(f"exit code {code}\n{describe_failures(output, limit=limit)}".strip())


def is_unchanged(context: GateContext, *, with_git: bool = False) -> Allow | None:
    """Return that there is nothing to check, if no file has changed since the session's start. `with_git`: nor a commit, a branch …"""
    start = context.start_state
    if start is None or context.tree is None:
        return None
    if start != context.tree if with_git else content_of(start) != content_of(context.tree):
        return None
    context.is_of_tree = True
    if (context.state.result or {}).get(
        "outcome"
    ) == "failed":  # the work may be on another branch, or stashed
        undone = "the check failed at the last stop, and since then all changes of the session were undone"
        return _nothing(context, undone, quiet=False)
    return _nothing(context, "nothing has changed since the session's start")


def with_note(result: Decision, note: str | None) -> Decision:
    """Return the result; if it is a pass, with a note for the user."""
    if not isinstance(result, Allow) or not note:
        return result
    return Allow(note if result.quiet else "; ".join(filter(None, (result.reason, note))))


def _nothing(context: GateContext, why: str, *, quiet: bool = True) -> Allow:
    context.is_shared = False
    return Allow(f"nothing to check: {why}", quiet=quiet)


async def nothing_to_check(
    context: GateContext, check: str | None, definition: Mapping[str, str]
) -> Allow | None:
    """Return that nothing has changed that the check is about: files that match `if-changed`; for tests, lint and types, more than documents."""
    globs, start = context.options.get("if-changed"), context.state.start or {}
    skips_documents = (
        check in ("tests", "lint", "types") and start.get("tree") and not context.options.get("always")
    )
    if not (globs or skips_documents):
        return None
    from turngate.gates.session_changes import changed_paths, find_changes  # noqa: PLC0415 # lazy: few need it

    try:
        changes = await find_changes(context, of_others=True)
    except FilesUnreadable:  # or there is no session to compare with: then the command decides
        return None
    if globs and not changed_paths(changes, globs):
        return _nothing(context, f"no file that matches {' or '.join(globs)} has changed", quiet=False)
    text = "\n".join(definition.values())
    paths = changed_paths(changes, ("**",))
    if skips_documents and all(_is_document(path, text) for path in paths) and await _is_same_beside(context):
        what = "only documents have" if paths else "nothing has"
        return _nothing(context, f"{what} changed since the session's start")
    return None


async def _is_same_beside(context: GateContext) -> bool:
    """Return whether all that has changed since the session's start is among the files of the repository, if that is known."""
    before, now = context.start_state, await tree_before(context)
    return before is not None and now is not None and others_of(before) == others_of(now)


# Texts in the root and below `docs`, and what has such a name in any folder.
_DOCUMENT = (
    r"(?i)(?:docs?/.*|[^/]*)\.(?:md|markdown|rst|adoc)|docs?/.*\.txt|(?:.*/)?(?:README|CHANGELOG|CHANGES|CONTRIBUTING|LICEN[CS]E|COPYING|NOTICE|AUTHORS)"
    r"(?:-[^/.]*|(?:[.-][^/]*)?\.(?:md|markdown|rst|adoc|txt))?"
)
_NO_DOCUMENT = r"(?:.*/)?[^/]*(?:requirements|constraints)[^/]*\.txt"
_READS_DOCUMENTS = r"\b(?:markdown\w*|mdformat|prettier|biome|mkdocs|sphinx\S*|doctest\S*|vale|cspell|codespell|typos|remark|pre-commit|prek)\b"


def _is_document(path: str, definition: str) -> bool:
    """Return whether a check does not read a file: it is a document, and nothing that defines the check names it or its kind."""
    name = path.rpartition("/")[2]
    if (
        not re.fullmatch(_DOCUMENT, path)
        or re.fullmatch(_NO_DOCUMENT, path)
        or re.search(_READS_DOCUMENTS, definition)
    ):
        return False
    return name not in definition and f".{name.rpartition('.')[2]}" not in definition


async def _check(context: GateContext) -> Decision:
    if context.command is None:
        return Fault("there is no command")
    if (unchanged := is_unchanged(context, with_git=True)) is not None:
        return unchanged
    check, definition = await _definition(context, context.command)
    if block := block_once(context, show_command(context.command), definition):
        return block
    changes = note_changes(context, definition)
    if (nothing := await nothing_to_check(context, None, definition)) is not None:
        return with_note(nothing, changes)
    counted_as = show_command(context.command)
    return with_note(
        await hold_until_passed(context, context.command, check, definition, counted_as), changes
    )


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
    return {"definition": definition, **await record_command(context, [show_command(context.command)])}


COMMAND = Gate(
    name="command",
    summary="a command passes",
    check=_check,
    options=OPTIONS,
    command="required",
    is_cached=True,
    record=_record,
)
