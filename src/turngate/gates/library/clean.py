"""The gate `clean`: the git tree is committed, or stashed."""

import posixpath
import re
from collections.abc import Collection, Mapping
from typing import Any

from turngate._frozen_dataclass import frozen
from turngate.core.answers.report_types import Exited
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.conversation import find_prompt
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import read_filtered, show_path, unquote_path
from turngate.gates.git.scripts import STATUS
from turngate.gates.project_files import stdout_of
from turngate.gates.run_commands import NOT_FOUND, FilesUnreadable
from turngate.gates.session_changes import (
    NO_REPOSITORY,
    changed_paths,
    describe_filtered,
    find_changes,
    lacks_git,
    new_repositories,
    record_files,
    run_comparison,
)
from turngate.gates.toolchains import NODE_LOCK_FILES, PYTHON_LOCK_FILES

PROBLEM = "the state of the git repository cannot be read"
ADVICE = "Commit what belongs to your task, or stash it with `git stash`."
NO_UPSTREAM = "the branch has no upstream, so whether its commits are pushed is not known"
UNTRACKED = " A"
_NO_COMMIT = re.compile(r"\b(?:do not|don['’]t|never|no|without|not) (?:yet )?commit", re.IGNORECASE)
_REPORT = re.compile(
    r"(?:^|/)(?:\.coverage(?:\.[^/]*)?$|coverage\.(?:xml|json|out)$|(?:htmlcov|coverage|__pycache__|node_modules|\.[\w-]*cache|\.nyc_output|[^/]*\.egg-info)/|"
    r"\.DS_Store$|Thumbs\.db$|\.eslintcache$|junit[^/]*\.xml$|[^/]*\.(?:pyc|tsbuildinfo|swp|log)$)"
)
_MANIFESTS = {
    **dict.fromkeys(NODE_LOCK_FILES, "package.json"),
    **dict.fromkeys(PYTHON_LOCK_FILES, "pyproject.toml"),
    "Pipfile.lock": "Pipfile",
    "Cargo.lock": "Cargo.toml",
    "composer.lock": "composer.json",
    "Gemfile.lock": "Gemfile",
    "go.sum": "go.mod",
}


@frozen
class Status:
    entries: Mapping[str, str]  # by path, a letter of git for what is staged, and one for the file
    filtered: tuple[str, ...]  # files of which only a filter could tell
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
    entries, filtered = await _select(context, status)
    prompt = find_prompt(context.event) if entries else None
    is_left = prompt is not None and _NO_COMMIT.search(prompt.text) is not None
    if entries and not is_left:
        listed = list_findings([f"{_label(entries[path])}: {show_path(path)}" for path in sorted(entries)])
        problems.append(f"these changes are not committed:\n{listed}\n{ADVICE}")
    if context.options["pushed"] and status.unpushed:
        problems.append(f"the branch has {status.unpushed} commits that are not pushed: run `git push`.")
    if problems:
        return Block("\n".join(problems))
    if filtered:
        return Fault(describe_filtered(filtered[0]))
    if is_left:
        return Allow("changes are not committed, as the user asked")
    is_unknown = context.options["pushed"] and status.unpushed is None
    notes = (NO_UPSTREAM if is_unknown else None, await new_repositories(context))
    return Allow("; ".join(filter(None, notes)) or None)


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


async def _select(context: GateContext, status: Status) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return what counts, also of the filtered files: what was not there at the start; without a record, untracked files only by choice."""
    before = (context.state.start or {}).get("status")
    is_recorded = isinstance(before, dict)
    counts_untracked = context.options["untracked"] or (is_recorded and not context.options["tracked-only"])
    entries = {
        path: letters for path, letters in status.entries.items() if letters != UNTRACKED or counts_untracked
    }
    filtered, changed = status.filtered, {*entries}
    if (entries or filtered) and isinstance(before, dict):
        changed = set(changed_paths(await find_changes(context), ("**",)))
        entries = {
            path: letters
            for path, letters in entries.items()
            if path in changed or path not in before or _is_staged(letters) > _is_staged(str(before[path]))
        }
        filtered = tuple(path for path in filtered if path in changed)
    if not context.options["untracked"]:
        entries = {
            path: letters for path, letters in entries.items() if not _is_of_a_tool(path, letters, changed)
        }
    return entries, filtered


def _is_staged(letters: str) -> bool:
    return letters[:1] not in (" ", "?")


def _is_of_a_tool(path: str, letters: str, changed: Collection[str]) -> bool:
    """Return whether a tool has written a file beside its work: a report or cache, a lock file whose manifest is as it was."""
    folder, name = posixpath.split(path)
    manifest = _MANIFESTS.get(name)
    if manifest is not None:
        return posixpath.join(folder, manifest) not in changed
    return letters == UNTRACKED and _REPORT.search(path) is not None


async def _read_status(context: GateContext, head: str) -> Status | None:
    """Return the status, or None without a repository. Commits up to `head` count as pushed."""
    report = await run_comparison(context, STATUS, head)
    if isinstance(report, Exited) and report.code == NOT_FOUND:
        raise FilesUnreadable(f"{PROBLEM}: git was not found")
    if lacks_git(report):
        return None
    facts, _, listed = stdout_of(report, PROBLEM).partition("\n\n")
    unpushed, *operations = facts.split("\n")
    count = unpushed.removeprefix("unpushed ")
    letters: dict[str, dict[str, str]] = {"staged": {}, "changed": {}}
    for kind, letter, name in (line.split("\t") for line in listed.split("\n") if line.count("\t") == 2):
        letters[kind].setdefault(unquote_path(name), letter)
    staged, changed = letters["staged"], letters["changed"]
    entries = {path: staged.get(path, " ") + changed.get(path, " ") for path in {**changed, **staged}}
    unpushed_count = int(count) if count.isdecimal() else None
    return Status(entries, read_filtered(listed), tuple(operations), unpushed_count)


def _label(letters: str) -> str:
    if "U" in letters:
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
            "untracked", "flag", "count untracked files, even without a record of the session's start"
        ),
        GateOption("tracked-only", "flag", "never count untracked files"),
        GateOption("pushed", "flag", "also require that the session's commits be pushed"),
    ),
    record=record_clean,
)
