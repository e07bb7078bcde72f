"""The gate `ran`: if some files have changed, a command has run since, such as the one that writes files from them."""

import re
from collections.abc import Sequence

from turngate.core.globs import matches_globs
from turngate.core.verdict.decisions import Allow, Block, Decision
from turngate.gates.conversation import EDIT_TOOLS, ToolCall, read_calls_of
from turngate.gates.gate import Gate, GateContext, GateOption, list_findings
from turngate.gates.git.output import show_path
from turngate.gates.session_changes import changed_files, record_files

MAX_NAMES = 5
_WRITES = re.compile(r">|\b(?:sed|perl)\s+-\w*i|\b(?:mv|cp|rm|tee)\b")


async def check_ran(context: GateContext) -> Decision:
    """The tree says whether the files differ from the start, and the conversation what came last: an edit or the command."""
    changed = await changed_files(context, context.options["if"])
    if not changed:
        return Allow()
    command = context.options["then"]
    calls = read_calls_of(context.event, (*EDIT_TOOLS, "Bash"))
    runs = [place for place, call in enumerate(calls) if _runs(call, command)]
    globs = context.options["if"]
    edits = [place for place, call in enumerate(calls) if _edits(call, context.project, globs, changed)]
    if runs and runs[-1] >= max(edits, default=0):
        return Allow()
    since = "has not succeeded since they were edited" if runs else "has not run in this session"
    listed = list_findings([show_path(path) for path in changed], MAX_NAMES)
    return Block(f"these files have changed, and `{command}` {since}:\n{listed}\nRun `{command}`.")


def _runs(call: ToolCall, command: str) -> bool:
    words = r"\s+".join(map(re.escape, command.split()))
    is_there = re.search(rf"(?:^|[\s;&|(]){words}(?=$|[\s;&|)])", call.text("command"))
    return call.name == "Bash" and not call.is_error and call.result is not None and bool(is_there)


def _edits(call: ToolCall, project: str, globs: Sequence[str], changed: Sequence[str]) -> bool:
    """Return whether a call has edited one of these files; a command that writes and names one counts."""
    if path := call.edited_file:
        return matches_globs(globs, path.removeprefix(project.rstrip("/") + "/"))
    command = call.text("command")
    return bool(_WRITES.search(command)) and any(name in command for name in changed)


RAN = Gate(
    name="ran",
    summary="a command has run since some files were changed",
    check=check_ran,
    options=(
        GateOption("if", "texts", "if one of these files has changed", "GLOB", required=True),
        GateOption("then", "text", "the agent has to run this command", "COMMAND", required=True),
    ),
    record=record_files,
    needs_conversation=True,
)
