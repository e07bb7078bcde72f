"""The gate `untouched`: protected files, such as tests, are as they were at the session's start."""

from collections.abc import Mapping, Sequence

from turngate.core.permissions.globs import matches_globs
from turngate.gates.assertions import find_weakened
from turngate.gates.base import CouldNotRun, Failed, Gate, GateContext, GateOption, GateResult, Passed
from turngate.gates.changes import WHOLE_FILE, Patches, find_changes, find_patches, record_files
from turngate.gates.findings import MAX_FINDINGS, list_findings
from turngate.gates.git.output import Change, show_path
from turngate.gates.source_text import language_of

ADVICE = "Restore what they were, and complete the task without changing them."
MAX_PATHSPECS = 500
NO_LINES = "the project has no git repository, so the lines of changed files are not known"
TOO_LONG = "the changes of the protected files are too long to be compared"


async def check_untouched(context: GateContext) -> GateResult:
    changes = [change for change in await find_changes(context) if _is_named(context, change)]
    if not changes:
        return Passed()
    if context.options["no-weakening"]:
        return await _compare_assertions(context, changes)
    touched = [change for change in changes if change.kind != "added" or context.options["added"]]
    patches = await _read_patches(context, touched[:MAX_FINDINGS]) if touched else None
    lines = {patch.path: patch.lines[0].number for patch in patches.files if patch.lines} if patches else {}
    return _fail([_describe(change, lines) for change in touched])


async def _compare_assertions(context: GateContext, changes: Sequence[Change]) -> GateResult:
    """Compare the tests in source files. Other files, and those that were moved away, must be as they were."""
    others = [change for change in changes if _must_stay(context, change)]
    sources = [change for change in changes if language_of(change.path) or language_of(change.old_path or "")]
    patches = await _read_patches(context, sources, context_lines=WHOLE_FILE) if sources else Patches(())
    if patches is None:
        return CouldNotRun(NO_LINES)
    deleted = {change.path for change in changes if change.kind == "deleted"}
    weakened = list(find_weakened(patches.files))
    gone = sorted({finding.path for finding in weakened} & deleted)
    findings = [
        *(_describe(change, {}) for change in others),
        *(f"{show_path(path)} was deleted" for path in gone),
        *(str(finding) for finding in weakened if finding.path not in deleted),
    ]
    return CouldNotRun(TOO_LONG) if patches.truncated and not findings else _fail(findings)


def _is_named(context: GateContext, change: Change) -> bool:
    globs: Sequence[str] = context.options["globs"]
    return any(path and matches_globs(globs, path) for path in (change.path, change.old_path))


def _must_stay(context: GateContext, change: Change) -> bool:
    globs: Sequence[str] = context.options["globs"]
    match change.kind:
        case "added":
            return bool(context.options["added"])
        case "renamed" if matches_globs(globs, change.old_path or ""):
            return not matches_globs(globs, change.path)
        case "renamed":  # into the protected folder
            return bool(context.options["added"])
        case _:
            return language_of(change.path) is None


async def _read_patches(
    context: GateContext, changes: Sequence[Change], context_lines: int = 0
) -> Patches | None:
    paths = [path for change in changes for path in (change.old_path, change.path) if path]
    pathspecs = (".",) if len(paths) > MAX_PATHSPECS else tuple(f":(literal){path}" for path in paths)
    patches = await find_patches(
        context, *pathspecs, context_lines=context_lines, is_source=context_lines == WHOLE_FILE
    )
    if patches is None:
        return None
    return Patches(tuple(patch for patch in patches.files if patch.path in paths), patches.truncated)


def _describe(change: Change, lines: Mapping[str, int]) -> str:
    path = show_path(change.path)
    match change.kind:
        case "renamed":
            return f"{show_path(change.old_path or '')} was renamed to {path}"
        case "modified" if change.old_mode != change.mode:
            return f"{path}: its mode was changed from {change.old_mode} to {change.mode}"
        case "modified":
            return (
                f"{path}:{lines[change.path]} was changed" if change.path in lines else f"{path} was changed"
            )
        case kind:
            return f"{path} was {kind}"


def _fail(findings: Sequence[str]) -> GateResult:
    if not findings:
        return Passed()
    return Failed(f"protected files have changed:\n{list_findings(findings)}\n{ADVICE}")


UNTOUCHED = Gate(
    name="untouched",
    summary="protected files, such as tests, are as they were",
    check=check_untouched,
    options=(
        GateOption(name="added", kind="flag", help="new files that the globs name count too"),
        GateOption(
            name="no-weakening",
            kind="flag",
            help="tests may change as long as no assertion or test is removed, changed or switched off",
        ),
    ),
    operands=GateOption(
        name="globs", kind="texts", metavar="GLOB…", required=True, help="the protected files"
    ),
    record=record_files,
    needs_start=True,
)
