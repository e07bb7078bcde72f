"""The gate `size`: the change is small enough to be read."""

from turngate.core.verdict.decisions import Allow, Block, Decision
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.git.output import show_path
from turngate.gates.session_changes import record_files, require_patches
from turngate.gates.source_text import is_foreign

MAX_NAMES = 5
ADVICE = "Split the change, or say in your answer why it has to be this large."


async def check_size(context: GateContext) -> Decision:
    """Count added lines; what is generated or vendored does not count, and a binary file has none."""
    patches = await require_patches(context, "the added lines are")
    added = {
        patch.path: count
        for patch in patches.files
        if (count := sum(1 for _ in patch.added()))
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
)
