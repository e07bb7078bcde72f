"""Which files the agent has edited in its session, by its tool calls."""

import os
import re

from turngate.aio.threads import run_in_thread
from turngate.core.events.events import StopEvent
from turngate.gates.base import GateContext
from turngate.gates.changes import changed_files
from turngate.gates.conversation import EDIT_TOOLS, read_calls_of

# Commands that write files, roughly: `sed -i`, `perl -pi`, `tee`, `mv`, `cp`, a redirection.
_WRITES = re.compile(r"\bsed\s+(?:-\S+\s+)*-\w*i|\bperl\s+-\w*i|\b(?:tee|mv|cp|truncate)\s|>>?\s*[^\s&>|]")


async def was_touched(context: GateContext, name: str) -> bool:
    """Return what the option `if-touched` asks: without a session, whether the file has changed since the base, if any.

    Raises TranscriptUnreadable, FilesUnreadable.
    """
    if context.base is None:
        return await was_edited(context, name)
    return not context.base or name.removeprefix("./") in await changed_files(context, ("**",))


async def was_edited(context: GateContext, name: str) -> bool:
    """Return whether the agent has edited a file of the project. Raises TranscriptUnreadable."""
    return await run_in_thread(_was_edited, context.event, context.project, name)


def _was_edited(event: StopEvent, project: str, name: str) -> bool:
    paths = {os.path.normpath(os.path.join(folder, name)) for folder in (project, event.cwd)}
    base = os.path.basename(name)
    for call in read_calls_of(event, (*EDIT_TOOLS, "Bash")):
        edited = call.edited_file
        if edited and os.path.normpath(os.path.join(event.cwd, edited)) in paths:
            return True
        command = call.text("command")
        if base and base in command and _WRITES.search(command):
            return True
    return False
