"""What this session has added, line by line, for gates that look for something in it. What was moved or reworded is not new."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from turngate.core.globs import matches_globs
from turngate.core.text import wildcard_matches
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.gate import Finding, Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import FilePatch, Line
from turngate.gates.project_files import read_file
from turngate.gates.session_changes import (
    WHOLE_FILE,
    Patches,
    find_changes,
    find_patches,
    note_submodules,
    record_files,
)
from turngate.gates.source_text import (
    EXTENSIONS,
    GENERATED_LINES,
    Source,
    is_foreign,
    language_of,
    read_source,
)

PATHSPECS = tuple(f":(glob,icase)**/*.{extension}" for extension in EXTENSIONS)
MAX_NEW_FILES = 200  # that are read one by one
MAX_LINE_CHARS = 1000
TOO_LONG = "the changes are too long to be read as a whole; in the part that was read, nothing was found"
FILTERS = (
    GateOption(
        "allow",
        "texts",
        "lines that contain this text do not count; `*` stands for any characters",
        "PATTERN",
    ),
    GateOption("files", "texts", "check only these files; `!GLOB` is an exception", "GLOB"),
)


class Mark(NamedTuple):
    """Something in a file as it is, or was."""

    extent: set[int]  # the places of its lines
    kind: str
    text: str = ""  # what is equal is the same; if empty: its line


# Returns the marks of a file by their places. Only those in the places that are given count.
FindMarks = Callable[[str, Sequence[Line], set[int]], Mapping[int, Mark]]


class _Found(NamedTuple):
    path: str
    line: Line
    hunk: int  # the changed lines that it is in
    mark: Mark


def answer(findings: Sequence[Finding], patches: Patches, problem: str, advice: str) -> Decision:
    if findings:
        return Block(f"{problem}:\n{list_findings([str(each) for each in findings])}\n{advice}")
    if patches.truncated:
        return Fault(TOO_LONG)
    lines = ((patch.path, line.text) for patch in patches.files for line in patch.added())
    return Allow(note_submodules(path for path, text in lines if text.startswith("Subproject commit ")))


def counts(context: GateContext, finding: Finding) -> bool:
    allowed: Sequence[str] = context.options["allow"]
    if any(wildcard_matches(f"*{pattern}*", finding.text) for pattern in allowed):
        return False
    return matches_globs(context.options["files"] or ("**",), finding.path)


async def source_patches(context: GateContext) -> Patches:
    """Return the changed source files with all of their lines; without git only new files. Raises FilesUnreadable."""
    patches = await find_patches(context, *PATHSPECS, context_lines=WHOLE_FILE, is_source=True)
    if patches is not None:
        return patches
    changes = await find_changes(context)
    paths = [change.path for change in changes if change.kind == "added" and language_of(change.path)]
    files = []
    for path in paths[:MAX_NEW_FILES]:
        lines = enumerate((await read_file(context.commands, path) or "").split("\n"), start=1)
        files.append(FilePatch(path, tuple(Line(number, line, "added") for number, line in lines)))
    return Patches(tuple(files), truncated=len(paths) > MAX_NEW_FILES)


def new_marks(patches: Iterable[FilePatch], find: FindMarks) -> Iterator[Finding]:
    """Yield the marks that were added. The patches have all lines of each file."""
    patches = [patch for patch in patches if language_of(patch.path)]
    new = [found for patch in patches for found in _marks_of(patch, "added", find)]
    old = [found for patch in patches for found in _marks_of(patch, "removed", find)] if new else []
    same = Counter((found.mark.kind, found.mark.text) for found in old)
    reworded = Counter((found.path, found.hunk, found.mark.kind) for found in old)
    rest = []
    for found in new:
        if same[found.mark.kind, found.mark.text]:
            same[found.mark.kind, found.mark.text] -= 1
            reworded[found.path, found.hunk, found.mark.kind] -= 1
        else:
            rest.append(found)
    for found in rest:
        reworded[found.path, found.hunk, found.mark.kind] -= 1
        if reworded[found.path, found.hunk, found.mark.kind] < 0:
            yield Finding(found.path, found.line.number, f"{found.mark.kind}: {found.line.text.strip()}")


def _marks_of(patch: FilePatch, side: str, find: FindMarks) -> Iterator[_Found]:
    """Yield the marks in the changed lines of a file as it is now ("added") or was before ("removed")."""
    lines, hunks, hunk, was_kept = [], [], 0, True
    for line in patch.lines:
        hunk += line.kind != "kept" and was_kept
        was_kept = line.kind == "kept"
        if line.kind in ("kept", side):
            lines.append(line)
            hunks.append(hunk)
    changed = {place for place, line in enumerate(lines) if line.kind == side}
    if not changed or is_foreign(patch.path, [line.text for line in lines[:GENERATED_LINES]]):
        return
    for place, mark in sorted(find(patch.path, lines, changed).items()):
        if concerned := mark.extent & changed:
            text = mark.text or lines[place].text.strip()
            yield _Found(patch.path, lines[place], hunks[min(concerned)], mark._replace(text=text))


def line_gate(
    name: str, summary: str, problem: str, advice: str, describe: Callable[[str, Source, int], str | None]
) -> Gate:
    """Return the gate that asks about each changed line what it is; None: nothing."""

    def find(path: str, lines: Sequence[Line], changed: set[int]) -> Mapping[int, Mark]:
        content = "\n".join(line.text[:MAX_LINE_CHARS] for line in lines)
        source = read_source(content, language_of(path) or "")
        return {place: Mark({place}, kind) for place in changed if (kind := describe(path, source, place))}

    async def check(context: GateContext) -> Decision:
        patches = await source_patches(context)
        findings = [each for each in new_marks(patches.files, find) if counts(context, each)]
        return answer(findings, patches, f"the added lines {problem}", advice)

    return Gate(name=name, summary=summary, check=check, options=FILTERS, record=record_files)
