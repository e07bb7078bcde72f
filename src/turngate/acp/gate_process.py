"""One event of a session, answered by `turngate hook` in a process of its own, as for any other host."""

import asyncio
import contextlib
import json
import sys
from collections.abc import Mapping
from typing import Any, Literal

from turngate._frozen_dataclass import frozen

# `-P`: a module in the current folder, which may be the project's, must not take the place of ours.
_COMMAND = (sys.executable, "-P", "-m", "turngate", "hook", "--host", "acp")
_KILL_AFTER_S = 5.0  # of a process that was told to end


@frozen
class GateAnswer:
    """What the gates say about a stop."""

    decision: Literal["allow", "block", "halt"] = "allow"
    reason: str = ""
    outcome: str = ""  # as in `HostAnswer`; "": nothing was asked, or nothing has changed since it passed
    notices: tuple[str, ...] = ()


async def ask_gates(event: Mapping[str, Any]) -> GateAnswer:
    """Return the answer to an event. When it is cancelled, it returns at once, and the process ends its gates and itself."""
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(*_COMMAND, stdin=pipe, stdout=pipe)
    except OSError as error:
        return not_asked(f"`turngate hook` cannot be started: {error.strerror}")
    try:
        stdout, _ = await process.communicate(json.dumps(event).encode())
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            ending.add(task := asyncio.create_task(_kill_later(process)))
            task.add_done_callback(ending.discard)
    if process.returncode:
        return not_asked(f"`turngate hook` ended with exit code {process.returncode}")
    try:
        answer = json.loads(stdout or b"{}")
        return GateAnswer(**{**answer, "notices": (*answer.get("notices", ()),)})
    except (ValueError, TypeError, AttributeError):
        return not_asked("`turngate hook` gave an answer that is not known")


ending = set[asyncio.Task[None]]()  # what waits for processes that were told to end


async def _kill_later(process: asyncio.subprocess.Process) -> None:
    try:
        await asyncio.wait_for(process.wait(), _KILL_AFTER_S)
    except TimeoutError:
        process.kill()  # its gates end with it


def not_asked(why: str) -> GateAnswer:
    return GateAnswer(outcome="not enforced", notices=(f"this stop was not checked: {why}",))
