"""What has changed in the project since the session's start, committed or not.

The start is what `record_files` has stored at SessionStart. Without it, git gives the commit of that time, which is that
of the first record of the transcript; without a transcript, only what is not committed counts. A file does not differ from a commit if a
conversion of git explains the difference, such as Git LFS.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.aio.threads import run_in_thread
from turngate.core.answers.report_types import Exited, TimedOut
from turngate.core.globs import matches_globs
from turngate.gates.gate import GateContext
from turngate.gates.git.output import (
    Change,
    FilePatch,
    read_changes,
    read_filtered,
    read_patches,
    show_path,
    unquote_path,
)
from turngate.gates.git.scripts import CHECKSUMS, DIFF, SNAPSHOT, SUBMODULE
from turngate.gates.local_tree_state import Listing, local_listing
from turngate.gates.project_files import stdout_of
from turngate.gates.run_commands import GIT_FUNCTION, NOT_FOUND, FilesUnreadable, ProjectCommands
from turngate.transcript.reader import read_records, time_of

WHOLE_FILE = 10**6  # lines around a change
MAX_PATCH_LINES = 150_000  # which take seconds to read
MAX_START_BYTES = 1024 * 1024  # of a transcript, in which its first time is looked for
_CHECKSUM = re.compile(r"(\d+ \d+) \./(.*)", re.DOTALL)
OTHERS = "git ls-files --others --exclude-standard"
MAX_NESTED = 5  # repositories that a note names
PROBLEM = "the changes since the session's start cannot be read"
NO_REPOSITORY = "the project has no git repository"
NO_SESSION = "it compares with a session's start; give --base REV"
UNKNOWN_START = (
    "and the project's state at the session's start was not recorded; configure this gate at SessionStart too"
)


@frozen
class Patches:
    """The changed lines, and whether there were more than could be read."""

    files: tuple[FilePatch, ...]
    truncated: bool = False


async def record_files(
    context: GateContext, *, without_git: bool = True, of_git: str = "", listing: Listing | None = None
) -> Mapping[str, Any]:
    """Return what the project is now, for the state of a gate: a tree of git, or the checksums of all files.

    If it cannot be found out, there is no record, and the gate answers by what git knows. `without_git`: whether checksums are needed; `of_git`:
    any text if the index and the refs are, and the names of what git ignores.
    """
    listing = listing or await list_local(context)
    inside = "none" if listing and not listing.has_repositories else ""
    report = await run_comparison(context, SNAPSHOT, inside, of_git, listing=listing)
    try:
        if lacks_git(report):
            return {"files": await _checksums(context.commands)} if without_git else {}
        tree, head, left_out, kept, ignored, *repositories = stdout_of(report, PROBLEM).split("\n")
    except FilesUnreadable:
        return {}
    nested = [unquote_path(name) for name in repositories if name]
    start = {"tree": tree, "head": head, "time": context.now}
    return {**start, "left_out": left_out, "git": kept, "ignored": ignored, "repositories": nested}


async def changed_files(context: GateContext, globs: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that the globs name of the files that have changed. Raises FilesUnreadable."""
    return changed_paths(await find_changes(context), globs)


def changed_paths(changes: Sequence[Change], globs: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that the globs name; a file that was renamed has two."""
    paths = {path for change in changes for path in (change.path, change.old_path) if path}
    return tuple(sorted(path for path in paths if matches_globs(globs, path)))


async def find_changes(context: GateContext, *, of_others: bool = False) -> tuple[Change, ...]:
    """Return the files that have changed; `of_others`: also those that a merge or a rebase has brought. Raises FilesUnreadable."""
    report = await _diff(context, "--raw --no-abbrev", of_others=of_others)
    if lacks_git(report):
        return tuple(_compare(_recorded_checksums(context, report), await _checksums(context.commands)))
    text = stdout_of(report, PROBLEM)
    return (*read_changes(text), *(Change(path, "filtered") for path in read_filtered(text)))


def describe_filtered(path: str) -> str:
    return f"{show_path(path)} cannot be compared with the commit: a git filter converts it, and Turngate runs no filters"


def note_submodules(paths: Iterable[str]) -> str | None:
    """Return a note about submodules that differ, of which no lines are known."""
    names = ", ".join(map(show_path, sorted({*paths})))
    return f"changes in a submodule are not checked: {names}" if names else None


async def new_repositories(context: GateContext) -> str | None:
    """Return a note about folders that git does not look into, because they are new repositories of their own."""
    report = await context.commands.run_script(OTHERS)
    if not isinstance(report, Exited) or report.code != 0:  # also without git
        return None
    known = (context.state.start or {}).get("repositories")
    found = (unquote_path(line) for line in report.stdout.split("\n"))
    new = (name for name in found if name.endswith("/") and not (isinstance(known, list) and name in known))
    names = ", ".join(map(show_path, islice(new, MAX_NESTED)))
    return f"not checked, because it is a repository of its own: {names}" if names else None


async def find_patches(
    context: GateContext, *pathspecs: str, context_lines: int = 0, is_source: bool = False
) -> Patches | None:
    """Return the lines that have changed, or None without git. `is_source`: also of files that attributes call binary. Raises FilesUnreadable."""
    options = f"--patch --unified={context_lines}{' --text' if is_source else ''}"
    report = await _diff(context, options, *pathspecs)
    if lacks_git(report):
        return None
    is_truncated = False
    if isinstance(report, Exited) and report.code == 0:
        *lines, rest = report.stdout.split("\n", MAX_PATCH_LINES)
        is_truncated = report.truncated or len(lines) == MAX_PATCH_LINES
        report = Exited(0, "\n".join(lines if is_truncated else [*lines, rest]))
    return Patches(read_patches(stdout_of(report, PROBLEM)), is_truncated)


async def require_patches(
    context: GateContext, unknown: str, *pathspecs: str, context_lines: int = 0
) -> Patches:
    """Return the changed lines of the files that the option `files` names. Raises FilesUnreadable, also without git."""
    patches = await find_patches(context, *pathspecs, context_lines=context_lines)
    if patches is None:
        raise FilesUnreadable(f"{NO_REPOSITORY}, so {unknown} not known")
    globs = context.options.get("files") or ("**",)
    return Patches(
        tuple(each for each in patches.files if matches_globs(globs, each.path)), patches.truncated
    )


async def _diff(
    context: GateContext, options: str, *pathspecs: str, of_others: bool = False
) -> Exited | TimedOut:
    if context.base == "":
        raise FilesUnreadable(NO_SESSION)
    start = {"tree": context.base} if context.base else context.state.start or {}
    tree, head = start.get("tree", ""), start.get("head", "")
    is_exact = context.base or (tree and of_others)
    moment = None if is_exact else session_start(context) or start.get("time")
    seconds = "" if moment is None else f"{moment:.0f}"
    return await run_comparison(context, DIFF, str(tree), str(head), seconds, options, *(pathspecs or (".",)))


async def list_local(context: GateContext) -> Listing | None:
    """Return the files of a project on this machine, with what is known of the last look."""
    if context.commands.is_local and context.state_folder:
        return await run_in_thread(local_listing, context.project, context.state_folder)
    return None


async def run_comparison(
    context: GateContext, script: str, *words: str, listing: Listing | None = None
) -> Exited | TimedOut:
    """Run a script that compares the files; those of this machine are listed."""
    listing = listing or await list_local(context)
    lines = b"".join([entry + b"\0" for entry in listing.entries]) if listing else b""
    left_out = "" if context.base else str((context.state.start or {}).get("left_out", ""))
    common = (".", "listed" if listing else "", left_out, GIT_FUNCTION + SUBMODULE)
    return await context.commands.run_script(script, *common, *words, stdin=lines)


def session_start(context: GateContext) -> float | None:
    """Return when the agent that stops has begun, by the first time in its transcript, else in that of its session."""
    paths = (context.event.stopping_transcript, context.event.transcript_path)
    return next((moment for path in paths if path and (moment := first_time(path)) is not None), None)


def first_time(path: str) -> float | None:
    try:
        return next(filter(None, map(time_of, read_records(path, MAX_START_BYTES))), None)
    except OSError:
        return None


def lacks_git(report: Exited | TimedOut) -> bool:
    """Return whether there is no repository, or no git on that machine."""
    match report:
        case Exited(code=code, stderr=stderr):
            return code == NOT_FOUND or (code != 0 and "not a git repository" in stderr)
        case TimedOut():
            return False


async def _checksums(commands: ProjectCommands) -> dict[str, str]:
    """Return the checksum of each file. A line that does not begin with one belongs to a name with a newline."""
    report = await commands.run_script(CHECKSUMS)
    if isinstance(report, Exited) and report.code == 1 and report.stdout:  # some files cannot be read
        report = Exited(0, report.stdout, truncated=report.truncated)
    found: dict[str, str] = {}
    lines: list[str] = []
    for line in (*stdout_of(report, PROBLEM).removesuffix("\n").split("\n"), "0 0 ./"):
        if _CHECKSUM.fullmatch(line) and lines:
            match = _CHECKSUM.fullmatch("\n".join(lines))
            found |= {match[2]: match[1]} if match else {}
            lines = []
        lines.append(line)
    return found


def _recorded_checksums(context: GateContext, report: Exited | TimedOut) -> Mapping[str, object]:
    files = (context.state.start or {}).get("files")
    if isinstance(files, dict):
        return files
    is_missing = isinstance(report, Exited) and report.code == NOT_FOUND
    raise FilesUnreadable(f"{'git was not found' if is_missing else NO_REPOSITORY}, {UNKNOWN_START}")


def _compare(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[Change]:
    for path in sorted({*before, *now}):
        if path not in now:
            yield Change(path, "deleted")
        elif path not in before:
            yield Change(path, "added")
        elif before[path] != now[path]:
            yield Change(path, "modified")
