"""The observer `archive`: keeps a copy of the transcript at every stop."""

import os
import re
from datetime import UTC, datetime

from turngate.aio.threads import run_in_thread
from turngate.core.answers.reports import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow, Decision
from turngate.gates.gate import Gate, GateContext, GateOption
from turngate.state.files import open_regular_file

MAX_TRANSCRIPT_BYTES = 512 * 1024 * 1024
MAX_ERROR_CHARS = 200
# The folder, the name of the copy. A copy appears at once, is readable only by its owner, and replaces nothing.
SCRIPT = """\
umask 077
case $1 in "~/"*) set -- "$HOME/${1#"~/"}" "$2";; -*) set -- "./$1" "$2";; esac
mkdir -p "$1" || exit
new=$1/.$2.$$
trap 'rm -f "$new"' EXIT
cat > "$new" || exit
name=$2.jsonl count=0
until ln "$new" "$1/$name" 2> /dev/null; do
    [ -e "$1/$name" ] || { mv "$new" "$1/$name"; break; }
    count=$((count + 1)) name=$2-$count.jsonl
done
"""


async def archive(context: GateContext) -> Decision:
    path = context.event.stopping_transcript
    try:
        content, version = await run_in_thread(_read, path)
    except OSError as error:
        return Allow(f"the transcript was not archived: {error.strerror}")
    if context.state.data.get("archived") == version:
        return Allow()
    hook = CommandHook(
        command="/bin/sh", args=("-c", SCRIPT, "turngate", context.options["to"], _name(context))
    )
    report = await context.commands.run(hook, stdin=content)
    if isinstance(report, Exited) and report.code == 0:
        context.state.data["archived"] = version
        return Allow()
    cause = one_line(report.stderr, MAX_ERROR_CHARS) if isinstance(report, Exited) else "its time is up"
    return Allow(f"the transcript was not archived: {cause}")


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
    options=(
        GateOption(name="to", kind="text", metavar="DIR", required=True, help="the folder of the copies"),
    ),
)
