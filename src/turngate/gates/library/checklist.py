"""The gate `checklist`: holds the stop until every item of a Markdown checklist is checked."""

from turngate.core.verdict.decisions import Allow, Block, Decision, Fault
from turngate.gates.conversation import was_touched
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.git.output import show_path
from turngate.gates.markdown_tasks import (
    count_open,
    describe_open,
    has_heading,
    in_scope,
    read_checkboxes,
    section,
)
from turngate.gates.project_files import expand_globs, read_file


async def check_checklist(context: GateContext) -> Decision:
    names = await expand_globs(context.commands, context.options["files"])
    results = [await _check_file(context, name) for name in names]
    for result in results:
        if isinstance(result, Fault):
            return result
    reasons = [result.reason for result in results if isinstance(result, Block)]
    if reasons:
        return Block("\n\n".join(reasons) + "\nFinish what is open and check it off.")
    notes = [result.reason for result in results if isinstance(result, Allow) and result.reason]
    return Allow("; ".join(notes) or None)


async def _check_file(context: GateContext, name: str) -> Decision:
    if context.options["if-touched"] and not await was_touched(context, name):
        return Allow()
    text = await read_file(context.commands, name)
    if text is None:
        return Fault(f"there is no file {show_path(name)} in the project")
    heading = context.options["section"]
    if heading is not None and not has_heading(text, heading):
        return Fault(f"{show_path(name)} has no section {heading!r}")
    boxes = read_checkboxes(text)
    items = in_scope(boxes) if heading is None else section(boxes, heading)
    number = count_open(items)
    if not items:
        return Allow(f"{show_path(name)} has no checklist")
    if not number:
        return Allow()
    verb = "is" if number == 1 else "are"
    return Block(f"{number} of {len(items)} items in {show_path(name)} {verb} open:\n{describe_open(items)}")


CHECKLIST = Gate(
    name="checklist",
    summary="every item of a Markdown checklist is checked",
    check=check_checklist,
    operands=GateOption("files", "texts", "Markdown files in the project", "FILE…", required=True),
    options=(
        GateOption("section", "text", "only the items below this heading", "HEADING"),
        GateOption("if-touched", "flag", "only if the agent has edited the file in this session"),
    ),
)
