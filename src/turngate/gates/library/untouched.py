"""The gate `untouched`: protected files, such as tests, are unchanged since the session's start."""

import os
import re
from collections.abc import Mapping, Sequence

from turngate.core.globs import matches_globs
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.conversation import read_wishes
from turngate.gates.gate import MAX_FINDINGS, Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import Change, show_path
from turngate.gates.session_changes import (
    WHOLE_FILE,
    Patches,
    changed_paths,
    describe_filtered,
    find_changes,
    find_patches,
    note_submodules,
    record_files,
)
from turngate.gates.source_text import language_of

DATA_FILES = ("__snapshots__", "*.snap", "*.ambr", "snapshots", "data", "fixtures", "testdata")
ADVICE = "Restore them, and complete the task without changing them."
MAX_PATHSPECS = 500
_TEST_NAME = r"test_.*|tests?|.*[._-](?:test|spec)s?|.*(?:Tests?|Spec)"  # without its suffix
OF_SUBMODULE = "160000"  # its mode
NO_LINES = "the project has no git repository, so the lines of changed files are not known"
TOO_LONG = "the changes of the protected files are too long to be compared"


async def check_untouched(context: GateContext) -> Decision:
    found, globs = await find_changes(context), context.options["globs"]
    named = [each for each in found if changed_paths([each], globs)]
    changes = [change for change in named if change.kind != "filtered"]
    if named and not changes:
        return Fault(describe_filtered(named[0].path))
    submodules = note_submodules(change.path for change in found if change.mode == OF_SUBMODULE)
    if context.options["no-weakening"]:
        return await _compare_assertions(context, changes, found, submodules)
    touched = [change for change in changes if change.kind != "added" or context.options["added"]]
    patches = await _read_patches(context, touched[:MAX_FINDINGS]) if touched else None
    lines = {patch.path: patch.lines[0].number for patch in patches.files if patch.lines} if patches else {}
    return _fail([_describe(change, lines) for change in touched], submodules)


async def _compare_assertions(
    context: GateContext, changes: Sequence[Change], everything: Sequence[Change], note: str | None
) -> Decision:
    """Compare the tests in source files, and what says which tests run. Data, such as snapshots, may change."""
    from turngate.gates.weakened_tests import (  # noqa: PLC0415 # lazy: it compiles many patterns
        RUNNER_FILES,
        find_weakened,
    )

    runners = [change for change in everything if matches_globs(RUNNER_FILES, change.path)]
    wanted = [*changes, *runners]
    patches = await _read_patches(context, wanted, context_lines=WHOLE_FILE) if wanted else Patches(())
    if patches is None:
        return Fault(NO_LINES)
    named = {path for change in changes for path in (change.path, change.old_path) if path}
    protected = [patch for patch in patches.files if patch.path in named]
    others = [patch for patch in patches.files if patch.path not in named]
    weakened = list(find_weakened(protected, others))
    if weakened:  # unless what it tests was removed too, or the user wants it
        sources = await _read_patches(context, everything)
        others = [patch for patch in sources.files if patch.path not in named] if sources else []
        weakened = list(find_weakened(protected, others, read_wishes(context.event)))
    deleted = {change.path for change in changes if change.kind == "deleted"}
    gone = sorted({finding.path for finding in weakened} & deleted)
    findings = [
        *(_describe(change, {}) for change in changes if _must_stay(context, change)),
        *(f"{show_path(path)} was deleted" for path in gone),
        *(str(finding) for finding in weakened if finding.path not in deleted),
    ]
    return Fault(TOO_LONG) if patches.truncated and not findings else _fail(findings, note)


def _must_stay(context: GateContext, change: Change) -> bool:
    globs: Sequence[str] = context.options["globs"]
    match change.kind:
        case "added":
            return bool(context.options["added"])
        case "renamed" if matches_globs(globs, change.old_path or ""):
            return not matches_globs(globs, change.path) or _hides_test(change)
        case "renamed":  # into the protected folder
            return bool(context.options["added"])
        case "deleted":
            return language_of(change.path) in (None, "shell") and not matches_globs(DATA_FILES, change.path)
        case _:
            return False


def _hides_test(change: Change) -> bool:
    """Return whether a file was a test by its name, and is none by its new one, so that no test runner finds it."""
    (old, suffix), (new, new_suffix) = (
        os.path.splitext(os.path.basename(path)) for path in (change.old_path or "", change.path)
    )
    was_test = re.fullmatch(_TEST_NAME, old) is not None and language_of(change.old_path or "") is not None
    return was_test and (suffix != new_suffix or not re.fullmatch(_TEST_NAME, new))


async def _read_patches(
    context: GateContext, changes: Sequence[Change], context_lines: int = 0
) -> Patches | None:
    paths = {path for change in changes for path in (change.old_path, change.path) if path}
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
            return f"{path}{f':{lines[change.path]}' if change.path in lines else ''} was changed"
        case kind:
            return f"{path} was {kind}"


def _fail(findings: Sequence[str], note: str | None = None) -> Decision:
    if not findings:
        return Allow(note)
    return Block(f"protected files have changed:\n{list_findings(findings)}\n{ADVICE}")


UNTOUCHED = Gate(
    name="untouched",
    summary="protected files, such as tests, are unchanged",
    check=check_untouched,
    options=(
        GateOption("added", "flag", "new files that match the globs count too"),
        GateOption(
            "no-weakening",
            "flag",
            "tests may change as long as no assertion or test is removed, weakened or switched off",
        ),
    ),
    operands=GateOption("globs", "texts", "the protected files", "GLOB…", required=True),
    record=record_files,
)
