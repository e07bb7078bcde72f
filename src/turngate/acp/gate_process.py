"""One event of a session, answered by `turngate hook` in a process of its own, as for any other host."""

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from turngate.hosts.host import HostAnswer

# `-P`: a module in the current folder, which may be the project's, must not take the place of ours.
_COMMAND = (sys.executable, "-P", "-m", "turngate", "hook", "--host", "acp")
_KILL_AFTER_S = 5.0  # of a process that was told to end


async def ask_gates(event: Mapping[str, Any]) -> HostAnswer:
    """Return the answer. When it is cancelled, the process ends its gates and itself before it returns."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*_COMMAND, stdin=pipe, stdout=pipe)
    except OSError as error:
        return _not_asked(f"`turngate hook` cannot be started: {error.strerror}")
    try:
        stdout, _ = await process.communicate(json.dumps(event).encode())
    finally:
        await _end(process)
    if process.returncode:
        return _not_asked(f"`turngate hook` ended with exit code {process.returncode}")
    try:
        return HostAnswer(**{"decision": "allow", **json.loads(stdout or b"{}")})
    except (ValueError, TypeError):
        return _not_asked("`turngate hook` gave an answer that is not known")


async def _end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        try:
            process.terminate()
            await asyncio.wait_for(process.wait(), _KILL_AFTER_S)
        except TimeoutError:
            process.kill()  # its gates end with it


def _not_asked(why: str) -> HostAnswer:
    return HostAnswer(
        decision="allow", outcome="not enforced", notices=(f"this stop was not checked: {why}",)
    )
