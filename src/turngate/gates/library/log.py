"""The observer `log`: appends one JSON line for every stop to a file."""

import json
from datetime import UTC, datetime

from turngate.core.text import truncate
from turngate.core.verdict.decisions import Allow, Decision
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.project_files import SAFE_TARGET
from turngate.gates.run_commands import describe_failure

# So that a line is appended with one write, and lines of parallel processes do not mix.
MAX_ANSWER_CHARS = 500
MAX_ID_CHARS = 200
SCRIPT = (
    SAFE_TARGET
    + """\
if test -e "$target" && ! test -f "$target"; then echo "$target is not a regular file" >&2; exit 1; fi
mkdir -p "$(dirname "$target")" && {
    if test -f "$target" && test -n "$(tail -c 1 "$target")"; then echo; fi  # after a line that was not written to its end
    cat
} >> "$target"
"""
)


async def log(context: GateContext) -> Decision:
    report = await context.commands.run_script(SCRIPT, context.options["file"], stdin=_line(context))
    cause = describe_failure(report)
    return Allow() if cause is None else Allow(f"the stop was not logged: {cause}")


def _line(context: GateContext) -> bytes:
    event, subagent = context.event, context.event.subagent
    fields = {
        "time": datetime.fromtimestamp(context.now, UTC).isoformat(timespec="milliseconds"),
        "event": event.name,
        "session_id": truncate(event.session_id, MAX_ID_CHARS),
        "agent_id": truncate(subagent.id, MAX_ID_CHARS) if subagent else None,
        "agent_type": truncate(subagent.type, MAX_ID_CHARS) if subagent else None,
        "cwd": truncate(event.cwd, MAX_ID_CHARS),
        "stop_hook_active": event.stop_hook_active,
        "continuation_count": event.continuation_count,
        "last_assistant_message": truncate(event.last_text, MAX_ANSWER_CHARS),
    }
    present = {key: value for key, value in fields.items() if value is not None}
    return (json.dumps(present, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "replace")


LOG = Gate(
    name="log",
    summary="(an observer: appends one line to a file at every stop)",
    check=log,
    is_observer=True,
    options=(GateOption("file", "text", "the file, one JSON object per line", "FILE", required=True),),
)
