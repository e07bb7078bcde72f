"""Runs a command of the agent's in the project."""

import asyncio
import shutil
from collections.abc import Mapping
from typing import Any

from turngate.agent.tools.base import ToolContext
from turngate.core.reports import Exited
from turngate.core.text import truncate_middle
from turngate.core.tools import ToolFailed, tool_spec
from turngate.ports import RunContext
from turngate.runners import sanitize_env
from turngate.shells.process import run_process

SECONDS = 120.0
MOST_SECONDS = 600.0
MOST_OUTPUT = 30_000  # characters

BASH = tool_spec(
    "Bash",
    "Runs a bash command in the project's folder and gives what it printed: stdout, then stderr. Each command "
    "starts in a fresh shell, so `cd` and variables do not last. It gets no input. To leave something "
    "running, start it with & and send its output to a file.",
    {
        "command": {"type": "string", "description": "The command."},
        "timeout": {
            "type": "integer",
            "minimum": 1,
            "description": "Milliseconds after which it is ended; 120000 if not given, at most 600000.",
        },
        "description": {"type": "string", "description": "What it does, in five to ten words."},
    },
    required=("command",),
)


async def run(given: Mapping[str, Any], workplace: ToolContext) -> str:
    seconds = min(given.get("timeout", SECONDS * 1000), MOST_SECONDS * 1000) / 1000
    live = RunContext()
    try:
        async with asyncio.timeout(seconds) as limit:
            live.on_exit = lambda: limit.reschedule(None)  # what it left running is not ended
            exited = await _run(given["command"], workplace, live)
    except TimeoutError:
        printed = _joined(live.stdout.text(), live.stderr.text())
        raise ToolFailed(f"it was ended after {seconds:g} s; it had printed:\n{printed}") from None
    except OSError as error:
        raise ToolFailed(f"it could not be run: {error.strerror or error}") from None
    printed = _joined(exited.stdout, exited.stderr, _LEFT if exited.held else "")
    if exited.code != 0:
        raise ToolFailed(f"exit code {exited.code}\n{printed}")
    return printed


_LEFT = "[it left a process that still holds its output; what that prints from now on is lost]"


async def _run(command: str, workplace: ToolContext, live: RunContext) -> Exited:
    if "\0" in command:
        raise ToolFailed("`command` holds a NUL character: no process can be given that")
    shell = shutil.which("bash") or "/bin/sh"
    return await run_process(
        (shell, "-c", "--", command),
        cwd=workplace.project,
        env=sanitize_env({**workplace.environ, "PWD": workplace.project}),
        stdin=b"",
        live=live,
    )


def _joined(*printed: str) -> str:
    text = "\n".join(stripped for part in printed if (stripped := part.rstrip("\n")))
    return truncate_middle(text, MOST_OUTPUT, None) if len(text) > MOST_OUTPUT else text or "(no output)"
