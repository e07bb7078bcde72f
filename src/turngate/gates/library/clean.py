"""The gate `clean`: the git tree is committed, or stashed."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from turngate._frozen import frozen
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import show_path, unquote_path
from turngate.gates.git.scripts import STATUS
from turngate.gates.project_files import stdout_of
from turngate.gates.run_commands import FilesUnreadable
from turngate.gates.session_changes import (
    NO_REPOSITORY,
    NoRepository,
    describe_filtered,
    read_differences,
    record_files,
    without_conversions,
)

PROBLEM = "the state of the git repository cannot be read"
ADVICE = "Commit what belongs to your task, or stash it with `git stash`."
NO_UPSTREAM = "the branch has no upstream, so whether its commits are pushed is not known"
UNTRACKED = "not tracked"
UNMERGED = "U"  # a letter of git


@frozen
class Status:
    """What is not committed."""

    entries: Mapping[str, str]  # by path: "unmerged", "not tracked", "deleted", "new" or "modified"
    staged: Mapping[str, str]  # by path, a letter of git
    operations: tuple[str, ...]  # those in progress, such as "rebase"
    unpushed: int | None  # commits; None: the branch has no upstream
    filtered: tuple[str, ...]  # only a filter of git could tell whether they are committed


async def check_clean(context: GateContext) -> Decision:
    start = context.state.start or {}
    try:
        status = await _read_status(context, start)
    except NoRepository as error:
        return Fault(str(error) if str(error) == NO_REPOSITORY else f"{PROBLEM}: {error}")
    before = start.get("operations")
    new = [name for name in status.operations if not (isinstance(before, list) and name in before)]
    problems = [f"a {name} is in progress: complete or abort it." for name in new]
    counts_untracked = context.options["untracked"] or (
        "staged" in start and not context.options["tracked-only"]
    )
    entries = {
        path: label for path, label in status.entries.items() if label != UNTRACKED or counts_untracked
    }
    if entries:
        listed = list_findings([f"{entries[path]}: {show_path(path)}" for path in sorted(entries)])
        problems.append(f"these changes are not committed:\n{listed}\n{ADVICE}")
    if context.options["pushed"] and status.unpushed:
        problems.append(f"the branch has {status.unpushed} commits that are not pushed: run `git push`.")
    if problems:
        return Block("\n".join(problems))
    if status.filtered:
        return Fault(describe_filtered(status.filtered[0]))
    return Allow(NO_UPSTREAM if context.options["pushed"] and status.unpushed is None else None)


async def record_clean(context: GateContext) -> Mapping[str, Any]:
    """Record the files and what is staged: what the user has left uncommitted does not count."""
    try:
        status = await _read_status(context, {})
    except FilesUnreadable:
        return {}
    files = await record_files(context)
    return {**files, "staged": dict(status.staged), "operations": list(status.operations)}


async def _read_status(context: GateContext, start: Mapping[str, Any]) -> Status:
    """Return what counts: not what was there at the session's start, if that is known. Raises FilesUnreadable.

    Commits up to that of the start count as pushed.
    """
    found = await read_differences(context, problem=PROBLEM)
    recorded: Mapping[str, Any] = start.get("changed") or {}
    own = {
        path: pair
        for path, pair in found.files.items()
        if path not in recorded or recorded[path][1] != pair[1]
    }
    found = await without_conversions(context, replace(found, files=own))
    report = await context.commands.run_script(STATUS, ".", str(start.get("head", "")))
    facts, _, listed = stdout_of(report, PROBLEM).partition("\n\n")
    unpushed, *operations = facts.split("\n")
    count = unpushed.removeprefix("unpushed ")
    staged = {unquote_path(line[2:]): line[0] for line in reversed(listed.split("\n")) if line}
    before: Mapping[str, str] = start.get("staged") or {}
    entries = {
        path: _label(staged.get(path, ""), found.files.get(path))
        for path in {**found.files, **staged}
        if path in found.files or before.get(path) != staged[path]
    }
    unpushed_count = int(count) if count.isdecimal() else None
    return Status(entries, staged, tuple(operations), unpushed_count, found.filtered)


def _label(staged: str, pair: tuple[str | None, str | None] | None) -> str:
    old, new = pair or ("", "")
    if staged == UNMERGED:
        return "unmerged"
    if not staged and old is None:
        return UNTRACKED
    if staged == "D" or new is None:
        return "deleted"
    return "new" if staged == "A" else "modified"


CLEAN = Gate(
    name="clean",
    summary="the git tree is committed, or stashed",
    check=check_clean,
    options=(
        GateOption(
            "untracked", "flag", "count files that are not tracked, also without a record of the start"
        ),
        GateOption("tracked-only", "flag", "never count files that are not tracked"),
        GateOption("pushed", "flag", "also require that the session's commits are pushed"),
    ),
    record=record_clean,
)
