"""The observer `archive`: keeps a copy of the transcript at every stop."""

import os
import re
from datetime import UTC, datetime

from turngate.aio.threads import run_in_thread
from turngate.core.verdict.decisions import Allow, Decision
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.gates.project_files import SAFE_TARGET
from turngate.gates.run_commands import describe_failure
from turngate.state.files import open_regular_file

MAX_TRANSCRIPT_BYTES = 512 * 1024 * 1024
# The folder, the name of the copy. A copy appears at once, is readable only by its owner, and replaces nothing.
SCRIPT = (
    SAFE_TARGET
    + """\
mkdir -p "$target" || exit
new=$target/.$2.$$
set -C  # replaces no file, and follows no link
cat > "$new" || exit
trap 'rm -f "$new"' EXIT
name=$2.jsonl count=0
until ln "$new" "$target/$name" 2> /dev/null; do
    [ -e "$target/$name" ] || { mv "$new" "$target/$name"; break; }
    count=$((count + 1)) name=$2-$count.jsonl
done
"""
)


async def archive(context: GateContext) -> Decision:
    path = context.event.stopping_transcript
    try:
        content, version = await run_in_thread(_read, path)
    except OSError as error:
        return Allow(f"the transcript was not archived: {error.strerror}")
    if context.state.data.get("archived") == version:
        return Allow()
    report = await context.commands.run_script(SCRIPT, context.options["to"], _name(context), stdin=content)
    if (cause := describe_failure(report)) is not None:
        return Allow(f"the transcript was not archived: {cause}")
    context.state.data["archived"] = version
    return Allow()


def _read(path: str) -> tuple[bytes, list[object]]:
    """Return the transcript, and what changes with it."""
    with open(open_regular_file(path, os.O_RDONLY), "rb") as file:
        info = os.fstat(file.fileno())
        if info.st_size > MAX_TRANSCRIPT_BYTES:
            raise OSError(0, f"it has more than {MAX_TRANSCRIPT_BYTES // 1024**2} MB")
        return file.read(), [path, info.st_size, info.st_mtime_ns]


def _name(context: GateContext) -> str:
    """Return the name of the copy: session, subagent and time; ids may have any characters."""
    event = context.event
    ids = (event.session_id, event.subagent.id if event.subagent else "")
    parts = [re.sub(r"[^A-Za-z0-9_-]+", "_", each)[:80] for each in ids if each]
    return "-".join([*parts, f"{datetime.fromtimestamp(context.now, UTC):%Y%m%dT%H%M%SZ}"])


ARCHIVE = Gate(
    name="archive",
    summary="(an observer: keeps a copy of the transcript)",
    check=archive,
    is_observer=True,
    needs_conversation=True,
    options=(GateOption("to", "text", "the folder for the copies", "DIR", required=True),),
)
