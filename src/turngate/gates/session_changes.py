"""What has changed in the project since the session's start, committed or not.

The start is what `record_files` has stored at SessionStart: which files differ from the commit, and how. Without it, git gives the commit of that
time, which is that of the first record of the transcript; without a transcript, only what is not committed counts. A file does not differ
from a commit if a conversion of git explains the difference, such as Git LFS.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from turngate._frozen import frozen
from turngate.aio.threads import run_in_thread
from turngate.core.answers.hook_reports import Exited, TimedOut
from turngate.core.permissions.globs import matches_globs
from turngate.gates.gate import GateContext
from turngate.gates.git.output import (
    Change,
    ChangeKind,
    FilePatch,
    quote_path,
    read_changes,
    read_patches,
    show_path,
    unquote_path,
)
from turngate.gates.git.scripts import CHECKSUMS, CONVERSIONS, DIFF, DIFFERENCES, NOT_STORED, STORE
from turngate.gates.local_tree_state import local_entries
from turngate.gates.project_files import stdout_of
from turngate.gates.run_commands import NOT_FOUND, FilesUnreadable, ProjectCommands
from turngate.gates.stored_state import digest
from turngate.transcript.reader import read_records, time_of

WHOLE_FILE = 10**6  # lines around a change
MAX_PATCH_LINES = 150_000  # which take seconds to read
MAX_START_BYTES = 1024 * 1024  # of a transcript, in which its first time is looked for
MAX_STORED = 1000  # files whose content is stored at the session's start
NO_FOLDER, NOT_CHECKED_OUT = 3, 4  # exit codes of `DIFFERENCES` for a submodule
_CHECKSUM = re.compile(r"(\d+ \d+) \./(.*)", re.DOTALL)
PROBLEM = "the changes since the session's start cannot be read"
NO_REPOSITORY = "the project has no git repository"
NO_SESSION = "it compares with a session's start; give --base REV"
UNKNOWN_START = (
    "and what the project was at the session's start is not recorded; configure this gate at SessionStart too"
)

Entry = str | None  # mode and id of a file, as in a tree of git; None: there is no file
Pairs = dict[str, tuple[Entry, Entry]]  # what a file was and what it is, by its path in the project


class NoRepository(FilesUnreadable):
    """The project has no git repository, or there is no git on its machine."""


@frozen
class Differences:
    """The files that differ from a commit."""

    base: str  # the id of the commit, or of a tree
    prefix: str  # of the project in the repository
    left_out: str  # what a sparse checkout leaves out, as an id
    files: Pairs
    filtered: tuple[str, ...] = ()  # only a filter of git could tell whether they differ


@frozen
class Patches:
    """The changed lines, and whether there are more that could not be read."""

    files: tuple[FilePatch, ...]
    truncated: bool = False
    repositories: tuple[str, ...] = ()  # new ones inside of the project, which are not looked into


async def record_files(context: GateContext) -> Mapping[str, Any]:
    """Return what the project is now, for the state of a gate: what differs from the commit, or the checksums of all files.

    If it cannot be found out, there is no record, and the gate answers by what git knows.
    """
    try:
        found = await read_differences(context)
        names = [path for path, (_, now) in found.files.items() if _is_regular(now)]
        if 0 < len(names) <= MAX_STORED:
            await context.commands.run_script(STORE, ".", stdin=_lines(found, names))
    except NoRepository:
        return {"files": await _checksums(context.commands)}
    except FilesUnreadable:
        return {}
    return {"head": found.base, "left_out": found.left_out, "changed": found.files}


async def changed_files(context: GateContext, globs: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that the globs name of the files that have changed. Raises FilesUnreadable."""
    return changed_paths(await find_changes(context), globs)


def changed_paths(changes: Iterable[Change], globs: Sequence[str]) -> tuple[str, ...]:
    """Return the paths that the globs name; a file that was renamed has two."""
    paths = {path for change in changes for path in (change.path, change.old_path) if path}
    return tuple(sorted(path for path in paths if matches_globs(globs, path)))


async def find_changes(context: GateContext) -> tuple[Change, ...]:
    """Return the files that have changed. Raises FilesUnreadable."""
    try:
        found = await since_start(context)
    except NoRepository as error:
        before = (context.state.start or {}).get("files")
        if not isinstance(before, dict):
            raise FilesUnreadable(f"{error}, {UNKNOWN_START}") from None
        return tuple(_compare(before, await _checksums(context.commands)))
    changes = [*_changes(found.files), *(Change(path, "filtered") for path in found.filtered)]
    whole = [
        path for path, (old, new) in found.files.items() if not (old and new) and _is_regular(old or new)
    ]
    if len({found.files[path][0] is None for path in whole}) < 2:  # nothing can be renamed
        return tuple(changes)
    compared = stdout_of(await _diff(context, found, whole, "--raw --no-abbrev"), PROBLEM)
    renamed = [change for change in read_changes(compared) if change.kind == "renamed"]
    gone = {path for change in renamed for path in (change.path, change.old_path)}
    kept = (change for change in changes if change.path not in gone)
    return tuple(sorted((*kept, *renamed), key=lambda change: change.path))


def _changes(files: Pairs) -> Iterator[Change]:
    for path, (old, new) in sorted(files.items()):
        (old_mode, old_id), (mode, new_id) = ((each or " ").split(" ") for each in (old, new))
        if not path.endswith("/"):  # a repository of its own
            kind: ChangeKind = "modified" if old and new else "added" if new else "deleted"
            yield Change(path, kind, None, old_mode, mode, is_same_content=old_id == new_id)


def describe_filtered(path: str) -> str:
    return f"{show_path(path)} cannot be compared with the commit: a filter of git stands between, and filters are not run"


async def find_patches(
    context: GateContext, wanted: Callable[[str], object], context_lines: int = 0, *, is_source: bool = False
) -> Patches | None:
    """Return the changed lines of the files that are wanted, or None if there is no git repository. Raises FilesUnreadable.

    `is_source`: all files have lines, also those that the repository's attributes call binary.
    """
    try:
        found = await since_start(context)
    except NoRepository:
        return None
    new = tuple(path for path, (old, _) in found.files.items() if path.endswith("/") and old is None)
    paths = [path for path, pair in found.files.items() if wanted(path) and any(map(_is_regular, pair))]
    options = f"--patch --unified={context_lines}{' --text' if is_source else ''}"
    report = await _diff(context, found, paths, options) if paths else Exited(0)
    is_truncated = False
    if isinstance(report, Exited) and report.code == 0:
        *lines, rest = report.stdout.split("\n", MAX_PATCH_LINES)
        is_truncated = (
            report.truncated or len(lines) == MAX_PATCH_LINES or report.stdout.startswith(NOT_STORED)
        )
        report = Exited(0, "\n".join(lines if is_truncated else [*lines, rest]))
    return Patches(read_patches(stdout_of(report, PROBLEM)), is_truncated, new)


async def since_start(context: GateContext) -> Differences:
    """Return what differs from the session's start. Raises FilesUnreadable."""
    if context.base == "":
        raise FilesUnreadable(NO_SESSION)
    start = {} if context.base else context.state.start or {}
    recorded = start.get("changed")
    if not isinstance(recorded, dict):
        moment = None if context.base else session_start(context)
        found = await read_differences(context, context.base or "", "" if moment is None else f"{moment:.0f}")
        return await without_conversions(context, found)
    found = await read_differences(context, str(start["head"]), left_out=str(start["left_out"]))
    pairs: Pairs = {}
    for path in sorted({*found.files, *recorded}):
        head, before = recorded.get(path) or found.files[path][:1] * 2
        now = found.files[path][1] if path in found.files else head
        if before != now:
            pairs[path] = before, now
    return await without_conversions(context, replace(found, files=pairs), is_recorded=True)


async def without_conversions(
    context: GateContext, found: Differences, *, folder: str = ".", is_recorded: bool = False
) -> Differences:
    """Return what differs in more than conversions of git would make of it. Raises FilesUnreadable.

    `is_recorded`: what the files were is known, so that only an object of Git LFS that was fetched since is the same.
    """
    files = dict(found.files)
    paths = [path for path, (old, new) in files.items() if _is_regular(old) and _is_regular(new)]
    ids = {path: str(files[path][0]).partition(" ")[2] for path in paths}
    other = [path for path in paths if not str(files[path][1]).endswith(ids[path])]
    if not other:
        return found
    stdin = b"".join(ids[path].encode() + b"\t" + _lines(found, [path]) for path in other)
    report = await context.commands.run_script(CONVERSIONS, folder, found.base, stdin=stdin)
    filtered = []
    for line in stdout_of(report, PROBLEM).splitlines():
        kind, _, name = line.partition("\t")
        path = unquote_path(name)[len(found.prefix) :]
        old, new = files[path]
        if kind == "lfs" or (kind == "text" and not is_recorded):
            mode = str(new).partition(" ")[0]
            files[path] = old, f"{mode} {ids[path]}"
            if files[path][1] == old:
                del files[path]
        elif kind == "filtered" and not is_recorded:
            del files[path]
            filtered.append(path)
    return replace(found, files=files, filtered=tuple(filtered))


async def read_differences(
    context: GateContext,
    base: str = "",  # a commit; without it that of the time `moment`, or HEAD
    moment: str = "",
    *,
    left_out: str = "",
    folder: str = ".",  # of the project, or of a submodule
    problem: str = PROBLEM,
) -> Differences:
    """Return what differs from a commit, by the content of files alone. Raises FilesUnreadable."""
    listed = None
    if context.commands.is_local and context.state_folder:
        listed = await run_in_thread(
            local_entries, os.path.join(context.project, folder), context.state_folder
        )
    lines = [f"{entry}\t{quote_path(name)}\n" for name, entry in (listed or {}).items()]
    words = (folder, base, moment, left_out, "" if listed is None else "listed")
    report = await context.commands.run_script(DIFFERENCES, *words, stdin="".join(lines).encode())
    if isinstance(report, Exited) and report.code in (NO_FOLDER, NOT_CHECKED_OUT):
        raise _NotCheckedOut(report.code)
    if isinstance(report, Exited) and report.code == NOT_FOUND:
        raise NoRepository("git was not found")
    if isinstance(report, Exited) and report.code and "not a git repository" in report.stderr:
        raise NoRepository(NO_REPOSITORY)
    base, prefix, left_out, *entries = stdout_of(report, problem).split("\n")
    files: Pairs = {}
    submodules = []
    for line in filter(None, entries):
        entry, _, name = line[2:].partition("\t")
        path = unquote_path(name)[len(prefix) :]
        if line[0] == "=":
            submodules.append((path, entry))
        else:
            old, new = files.get(path, (None, None))
            files[path] = (entry, new) if line[0] == "-" else (old, entry)
    found = Differences(base, prefix, left_out, files)
    now = await asyncio.gather(
        *(_submodule(context, f"{folder}/{path}", entry) for path, entry in submodules)
    )
    for (path, entry), current in zip(submodules, now, strict=True):
        old, _ = files.get(path, (entry, entry))
        files.pop(path, None)
        if old != current:
            files[path] = old, current
    return found


class _NotCheckedOut(Exception):
    """There is no folder for a submodule, or none of its files."""


async def _submodule(context: GateContext, folder: str, entry: str) -> Entry:
    """Return the entry of a submodule as it is: its commit, unless a file that is tracked differs. Raises FilesUnreadable."""
    try:
        found = await read_differences(context, folder=folder)
        found = await without_conversions(context, found, folder=folder)
    except _NotCheckedOut as error:
        return None if error.args[0] == NO_FOLDER else entry
    tracked = sorted((path, pair) for path, pair in found.files.items() if pair[0])
    return f"160000 {digest(repr(tracked)) if tracked else found.base}"


async def _diff(
    context: GateContext, found: Differences, paths: Iterable[str], options: str
) -> Exited | TimedOut:
    """Let git compare what regular files were with what they are."""
    stdin = b"".join(
        f"{mark} {entry}\t".encode() + _lines(found, [path])
        for path in paths
        for mark, entry in zip("-+", found.files[path], strict=True)
        if _is_regular(entry)
    )
    return await context.commands.run_script(DIFF, ".", options, stdin=stdin)


def _is_regular(entry: Entry) -> bool:
    return entry is not None and entry.startswith("100")


def _lines(found: Differences, paths: Iterable[str]) -> bytes:
    """Return the names of files in the repository, one a line."""
    return "".join(f"{quote_path(found.prefix + path)}\n" for path in paths).encode()


def session_start(context: GateContext) -> float | None:
    """Return when the agent that stops has begun, by the first time in its transcript, else in that of its session."""
    paths = (context.event.stopping_transcript, context.event.transcript_path)
    return next((moment for path in paths if path and (moment := first_time(path)) is not None), None)


def first_time(path: str) -> float | None:
    """Return the first time in a transcript, in seconds since the epoch."""
    try:
        return next(filter(None, map(time_of, read_records(path, MAX_START_BYTES))), None)
    except OSError:
        return None


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


def _compare(before: Mapping[str, object], now: Mapping[str, object]) -> Iterator[Change]:
    for path in sorted({*before, *now}):
        if path not in now:
            yield Change(path, "deleted")
        elif path not in before:
            yield Change(path, "added")
        elif before[path] != now[path]:
            yield Change(path, "modified")
