"""The gate `checklist`: holds the stop until every item of a Markdown checklist is checked."""

from turngate.gates.conversation import was_touched
from turngate.gates.gate import CouldNotRun, Failed, Gate, GateContext, GateOption, GateResult, Passed
from turngate.gates.git.output import show_path
from turngate.gates.markdown_tasks import (
    count_open,
    describe_open,
    has_heading,
    read_checkboxes,
    section,
)
from turngate.gates.project_files import expand_globs, read_file


async def check_checklist(context: GateContext) -> GateResult:
    names = await expand_globs(context.commands, context.options["files"])
    results = [await _check_file(context, name) for name in names]
    for result in results:
        if isinstance(result, CouldNotRun):
            return result
    reasons = [result.reason for result in results if isinstance(result, Failed)]
    if reasons:
        return Failed("\n\n".join(reasons) + "\nFinish what is open and check it off.")
    notes = [result.note for result in results if isinstance(result, Passed) and result.note]
    return Passed("; ".join(notes) or None)


async def _check_file(context: GateContext, name: str) -> GateResult:
    if context.options["if-touched"] and not await was_touched(context, name):
        return Passed()
    text = await read_file(context.commands, name)
    if text is None:
        return CouldNotRun(f"there is no file {show_path(name)} in the project")
    heading = context.options["section"]
    if heading is not None and not has_heading(text, heading):
        return CouldNotRun(f"{show_path(name)} has no section {heading!r}")
    items = read_checkboxes(text) if heading is None else section(read_checkboxes(text), heading)
    number = count_open(items)
    if not items:
        return Passed(f"{show_path(name)} has no checklist")
    if not number:
        return Passed()
    verb = "is" if number == 1 else "are"
    return Failed(f"{number} of {len(items)} items in {show_path(name)} {verb} open:\n{describe_open(items)}")


CHECKLIST = Gate(
    name="checklist",
    summary="every item of a Markdown checklist is checked",
    check=check_checklist,
    operands=GateOption(
        name="files", kind="texts", metavar="FILE…", required=True, help="Markdown files of the project"
    ),
    options=(
        GateOption(name="section", kind="text", metavar="HEADING", help="only the items below this heading"),
        GateOption(
            name="if-touched", kind="flag", help="only if the agent has edited the file in this session"
        ),
    ),
)
