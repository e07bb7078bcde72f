"""The Bash tool: runs a command in the project."""

import asyncio
import shutil
from collections.abc import Mapping
from typing import Any

from turngate.agent.tools.base import ToolContext
from turngate.core.reports import Exited
from turngate.core.text import truncate_middle
from turngate.core.tools import ToolFailed, ToolOutput, tool_spec
from turngate.ports import HookRunContext
from turngate.runners import sanitize_env
from turngate.shells.process import run_process

DEFAULT_TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 600.0
MAX_OUTPUT_CHARS = 30_000

BASH = tool_spec(
    "Bash",
    "Runs a bash command in the project's folder and returns its stdout, then its stderr. Each command "
    "starts in a new shell, so `cd` and variables are not kept. Its stdin is empty. To leave something "
    "running, start it with & and redirect its output to a file.",
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


async def run(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    seconds = min(args.get("timeout", DEFAULT_TIMEOUT_S * 1000), MAX_TIMEOUT_S * 1000) / 1000
    live = HookRunContext()
    try:
        async with asyncio.timeout(seconds) as limit:
            live.on_exit = lambda: limit.reschedule(
                None
            )  # processes that the command left running are not killed
            exited = await _run(args["command"], context, live)
    except TimeoutError:
        printed = _join_output(live.stdout.text(), live.stderr.text())
        raise ToolFailed(f"killed after {seconds:g} s; it had printed:\n{printed}") from None
    except OSError as error:
        raise ToolFailed(f"the command could not be started: {error.strerror or error}") from None
    printed = _join_output(exited.stdout, exited.stderr, _HELD if exited.held else "")
    if exited.code != 0:
        raise ToolFailed(f"exit code {exited.code}\n{printed}")
    return ToolOutput(printed, _response(exited))


def _response(exited: Exited) -> dict[str, Any]:
    """Return the output as Claude Code gives it to hooks."""
    return {
        "stdout": _limited(exited.stdout.rstrip("\n")),
        "stderr": _limited(exited.stderr.rstrip("\n")),
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }


_HELD = "[a background process still has the output open; later output is lost]"


async def _run(command: str, context: ToolContext, live: HookRunContext) -> Exited:
    if "\0" in command:
        raise ToolFailed("`command` has a NUL character, which no process can take")
    shell = shutil.which("bash") or "/bin/sh"
    return await run_process(
        (shell, "-c", "--", command),
        cwd=context.project,
        env=sanitize_env({**context.environ, "PWD": context.project}),
        stdin=b"",
        live=live,
    )


def _join_output(*printed: str) -> str:
    text = "\n".join(stripped for part in printed if (stripped := part.rstrip("\n")))
    return _limited(text) or "(no output)"


def _limited(text: str) -> str:
    return truncate_middle(text, MAX_OUTPUT_CHARS, None) if len(text) > MAX_OUTPUT_CHARS else text
