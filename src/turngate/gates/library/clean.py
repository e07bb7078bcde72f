"""The gate `clean`: the git tree is committed, or stashed."""

from collections.abc import Mapping
from typing import Any

from turngate._frozen import frozen
from turngate.core.answers.hook_reports import Exited
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import show_path, unquote_path
from turngate.gates.git.scripts import STATUS
from turngate.gates.project_files import stdout_of
from turngate.gates.run_commands import NOT_FOUND, FilesUnreadable
from turngate.gates.session_changes import NO_REPOSITORY, changed_paths, find_changes, lacks_git, record_files

PROBLEM = "the state of the git repository cannot be read"
ADVICE = "Commit what belongs to your task, or stash it with `git stash`."
NO_UPSTREAM = "the branch has no upstream, so whether its commits are pushed is not known"
UNTRACKED = "??"
UNMERGED = frozenset({"DD", "AU", "UD", "UA", "DU", "AA", "UU"})


@frozen
class Status:
    """What `git status` shows of the project."""

    entries: Mapping[str, str]  # by path, its two letters
    operations: tuple[str, ...]  # those in progress, such as "rebase"
    unpushed: int | None  # commits; None: the branch has no upstream


async def check_clean(context: GateContext) -> Decision:
    start = context.state.start or {}
    status = await _read_status(context, str(start.get("head", "")))
    if status is None:
        return Fault(NO_REPOSITORY)
    before = start.get("operations")
    new = [name for name in status.operations if not (isinstance(before, list) and name in before)]
    problems = [f"a {name} is in progress: complete or abort it." for name in new]
    entries = await _select(context, status)
    if entries:
        listed = list_findings([f"{_label(entries[path])}: {show_path(path)}" for path in sorted(entries)])
        problems.append(f"these changes are not committed:\n{listed}\n{ADVICE}")
    if context.options["pushed"] and status.unpushed:
        problems.append(f"the branch has {status.unpushed} commits that are not pushed: run `git push`.")
    if problems:
        return Block("\n".join(problems))
    return Allow(NO_UPSTREAM if context.options["pushed"] and status.unpushed is None else None)


async def record_clean(context: GateContext) -> Mapping[str, Any]:
    """Record the files and their status: what the user has left uncommitted does not count."""
    try:
        status = await _read_status(context, "")
    except FilesUnreadable:
        status = None
    if status is None:
        return {}
    files = await record_files(context)
    return {**files, "status": dict(status.entries), "operations": list(status.operations)}


async def _select(context: GateContext, status: Status) -> dict[str, str]:
    """Return the entries that count: not those that were there at the session's start, if that is known.

    Without a record, a file that is not tracked may be the user's own, so it counts only by choice.
    """
    before = (context.state.start or {}).get("status")
    is_recorded = isinstance(before, dict)
    counts_untracked = context.options["untracked"] or (is_recorded and not context.options["tracked-only"])
    entries = {
        path: letters for path, letters in status.entries.items() if letters != UNTRACKED or counts_untracked
    }
    if not (entries and isinstance(before, dict)):
        return entries
    changed = set(changed_paths(await find_changes(context), ("**",)))
    return {
        path: letters for path, letters in entries.items() if path in changed or before.get(path) != letters
    }


async def _read_status(context: GateContext, head: str) -> Status | None:
    """Return the status, or None without a repository. Commits up to `head` count as pushed."""
    report = await context.commands.run_script(STATUS, head)
    if isinstance(report, Exited) and report.code == NOT_FOUND:
        raise FilesUnreadable(f"{PROBLEM}: git was not found")
    if lacks_git(report):
        return None
    facts, _, listed = stdout_of(report, PROBLEM).partition("\n\n")
    unpushed, *operations = facts.split("\n")
    count = unpushed.removeprefix("unpushed ")
    # A file that is no longer tracked has two lines, of which the first counts.
    entries = {unquote_path(line[3:]): line[:2] for line in reversed(listed.split("\n")) if line}
    return Status(entries, tuple(operations), int(count) if count.isdecimal() else None)


def _label(letters: str) -> str:
    if letters in UNMERGED:
        return "unmerged"
    if letters == UNTRACKED:
        return "not tracked"
    if "D" in letters:
        return "deleted"
    return "new" if "A" in letters else "modified"


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
