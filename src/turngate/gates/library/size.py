"""The gate `size`: the change is small enough to be read."""

from turngate.core.globs import matches_globs
from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.git.output import show_path
from turngate.gates.session_changes import find_patches, record_files
from turngate.gates.source_text import is_foreign

MAX_NAMES = 5
NO_LINES = "the project has no git repository, so the added lines are not known"
ADVICE = "Split the change, or say in your answer why it has to be this large."


async def check_size(context: GateContext) -> Decision:
    """Count added lines; what is generated or vendored does not count, and a binary file has none."""
    patches = await find_patches(context)
    if patches is None:
        return Fault(NO_LINES)
    globs = context.options["files"] or ("**",)
    added = {
        patch.path: count
        for patch in patches.files
        if (count := sum(1 for _ in patch.added()))
        and matches_globs(globs, patch.path)
        and not is_foreign(patch.path, [line.text for line in patch.lines[:10]])
    }
    lines, files = sum(added.values()), len(added)
    most, limit = context.options["max-lines"], context.options["max-files"]
    if lines <= most and files <= limit and not patches.truncated:
        return Allow()
    largest = sorted(added, key=lambda path: -added[path])[:MAX_NAMES]
    listed = "\n".join(f"- {show_path(path)}: {added[path]} lines" for path in largest)
    more = "more than " if patches.truncated else ""
    return Block(
        f"the change is {more}{lines} added lines in {files} file{'s' * (files != 1)}; the limits are {most:g} lines and {limit:g} files. "
        f"The largest:\n{listed}\n{ADVICE}"
    )


SIZE = Gate(
    name="size",
    summary="the change is small enough to be read",
    check=check_size,
    options=(
        GateOption("max-lines", "number", "how many lines may be added", "N", default=1000),
        GateOption("max-files", "number", "how many files may get new lines", "N", default=50),
        GateOption("files", "texts", "count only these files; `!GLOB` is an exception", "GLOB"),
    ),
    record=record_files,
    needs_start=True,
)
