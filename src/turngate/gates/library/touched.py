"""The gate `touched`: where some files have changed, others have to change with them, such as a changelog with the code."""

from turngate.core.globs import matches_globs
from turngate.core.verdict.decisions import Allow, Block, Decision
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import show_path
from turngate.gates.session_changes import changed_paths, find_changes, record_files

MAX_NAMES = 5


async def check_touched(context: GateContext) -> Decision:
    """A file that both lists name is one of those that have to change. A file that was deleted was not kept up to date."""
    sources, documents = context.options["if"], context.options["then"]
    changes = [change for change in await find_changes(context) if change.kind != "filtered"]
    if any(
        matches_globs(documents, change.path) and change.kind != "deleted" and not change.is_same_content
        for change in changes
    ):
        return Allow()
    causes = [path for path in changed_paths(changes, sources) if not matches_globs(documents, path)]
    if not causes:
        return Allow()
    wanted = " ".join(map(show_path, documents))
    return Block(
        f"these files have changed, but none that {wanted} names:\n"
        f"{list_findings([show_path(path) for path in causes], MAX_NAMES)}\n"
        f"Update {wanted} to match."
    )


TOUCHED = Gate(
    name="touched",
    summary="the changelog or the docs have changed with the code",
    check=check_touched,
    options=(
        GateOption("if", "texts", "if one of these files has changed", "GLOB", required=True),
        GateOption("then", "texts", "one of these has to change too", "GLOB", required=True),
    ),
    record=record_files,
    needs_start=True,
)
