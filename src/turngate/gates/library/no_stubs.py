"""The gate `no-stubs`: the lines that were added hold no TODO, no `NotImplementedError`, no skipped test, no empty body."""

from collections.abc import Sequence

from turngate.core.answers.reports import Exited
from turngate.core.permissions.globs import matches_globs
from turngate.core.text import wildcard_matches
from turngate.gates.base import CouldNotRun, Failed, Gate, GateContext, GateOption, GateResult, Passed
from turngate.gates.changes import WHOLE_FILE, Patches, find_changes, find_patches, record_files
from turngate.gates.findings import Finding, list_findings
from turngate.gates.git.output import FilePatch, Line, show_path, unquote_path
from turngate.gates.project_files import read_file
from turngate.gates.source_text import EXTENSIONS, language_of
from turngate.gates.stubs import find_stubs

PATHSPECS = tuple(f":(glob,icase)**/*.{extension}" for extension in EXTENSIONS)
MAX_NEW_FILES = 200  # that are read one by one
TOO_LONG = "the changes are too long to be read as a whole; in the part that was read, there are no stubs"
OTHERS = "git ls-files --others --exclude-standard"
NESTED = "not checked, because it is a repository of its own"
MAX_NESTED = 5
ADVICE = "Complete them, or remove them and say in your answer what is missing."


async def check_no_stubs(context: GateContext) -> GateResult:
    patches = await find_patches(context, *PATHSPECS, context_lines=WHOLE_FILE, is_source=True)
    if patches is None:
        patches = await _read_new_files(context)
    findings = [finding for finding in find_stubs(patches.files) if _counts(context, finding)]
    if findings:
        listed = list_findings([str(finding) for finding in findings])
        return Failed(f"the added lines hold stubs:\n{listed}\n{ADVICE}")
    if patches.truncated:
        return CouldNotRun(TOO_LONG)
    nested = await _new_repositories(context)
    return Passed(f"{NESTED}: {', '.join(map(show_path, nested))}" if nested else None)


async def _new_repositories(context: GateContext) -> list[str]:
    """Return the folders that git does not look into, because they are repositories of their own."""
    report = await context.commands.run_script(OTHERS)
    if not isinstance(report, Exited) or report.code != 0:  # also without git
        return []
    left_out = (context.state.start or {}).get("left_out")
    known = left_out if isinstance(left_out, list) else []
    names = [unquote_path(line) for line in report.stdout.split("\n")]
    return [name for name in names if name.endswith("/") and name not in known][:MAX_NESTED]


def _counts(context: GateContext, finding: Finding) -> bool:
    allowed: Sequence[str] = context.options["allow"]
    if any(wildcard_matches(f"*{pattern}*", finding.text) for pattern in allowed):
        return False
    return matches_globs(context.options["files"] or ("**",), finding.path)


async def _read_new_files(context: GateContext) -> Patches:
    """Return the new files of a project without git. Which lines of the other files are new is not known."""
    changes = await find_changes(context)
    paths = [change.path for change in changes if change.kind == "added" and language_of(change.path)]
    files = []
    for path in paths[:MAX_NEW_FILES]:
        text = await read_file(context.commands, path) or ""
        lines = enumerate(text.split("\n"), start=1)
        files.append(FilePatch(path, tuple(Line(number, line, "added") for number, line in lines)))
    return Patches(tuple(files), truncated=len(paths) > MAX_NEW_FILES)


NO_STUBS = Gate(
    name="no-stubs",
    summary="the added lines hold no TODO, skipped test or empty body",
    check=check_no_stubs,
    options=(
        GateOption(
            name="allow",
            kind="texts",
            metavar="PATTERN",
            help="lines that contain this text do not count; `*` stands for any characters",
        ),
        GateOption(
            name="files", kind="texts", metavar="GLOB", help="check only these files; `!GLOB` is an exception"
        ),
    ),
    record=record_files,
    needs_start=True,
)
