"""The tools Bash, BashOutput and KillShell: run a command in the project, also in the background."""

import asyncio
import shutil
from collections.abc import Mapping
from functools import partial
from typing import Any

from turngate.agent.background import BackgroundCommands
from turngate.agent.tools.tool import ToolContext
from turngate.core.answers.report_types import Exited
from turngate.core.constants import IN_TOOL
from turngate.core.conversation.tools import ToolFailed, ToolOutput, tool_spec
from turngate.core.hooks.kinds import CommandHook
from turngate.core.text import truncate_middle
from turngate.ports import ConnectionLost, HookRunContext
from turngate.runners.command import sanitize_env
from turngate.shells.local import run_process

DEFAULT_TIMEOUT_S = 120.0
MAX_TIMEOUT_S = 600.0
MAX_OUTPUT_CHARS = 30_000

BASH = tool_spec(
    "Bash",
    "Runs a bash command in the project's folder and returns its stdout, then its stderr. Each command "
    "starts in a new shell, so `cd` and variables are not kept. Its stdin is empty. With `run_in_background` "
    "it returns at once: you get a message when the command ends, BashOutput reads its output so far, and KillShell "
    "ends it. It ends with the session.",
    {
        "command": {"type": "string", "description": "The command."},
        "timeout": {
            "type": "integer",
            "minimum": 1,
            "description": "Milliseconds after which it is ended; 120000 if not given, at most 600000.",
        },
        "description": {"type": "string", "description": "What it does, in five to ten words."},
        "run_in_background": {
            "type": "boolean",
            "description": "Do not wait for its end; it has no timeout.",
        },
    },
    required=("command",),
)
BASH_OUTPUT = tool_spec(
    "BashOutput",
    "Returns what a background command has printed since you read it last, and whether it is still running.",
    {"bash_id": {"type": "string", "description": "The id that Bash returned."}},
    required=("bash_id",),
)
KILL_SHELL = tool_spec(
    "KillShell",
    "Ends a background command with all processes that it started.",
    {"shell_id": {"type": "string", "description": "The id that Bash returned."}},
    required=("shell_id",),
)


async def run(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    if "\0" in args["command"]:
        raise ToolFailed("`command` has a NUL character, which no process can take")
    if args.get("run_in_background"):
        return _start(args, context)
    seconds = min(args.get("timeout", DEFAULT_TIMEOUT_S * 1000), MAX_TIMEOUT_S * 1000) / 1000
    live = HookRunContext()
    try:
        async with asyncio.timeout(seconds) as limit:
            live.on_exit = lambda: limit.reschedule(None)  # processes that it left running are not killed
            exited = await _run(args["command"], context, live)
    except TimeoutError:
        printed = _join_output(live.stdout.text(), live.stderr.text())
        raise ToolFailed(f"killed after {seconds:g} s; it had printed:\n{printed}") from None
    except ConnectionLost as error:
        printed = _join_output(live.stdout.text(), live.stderr.text())
        raise ToolFailed(f"{error}; how it ended is not known, it had printed:\n{printed}") from None
    except OSError as error:
        raise ToolFailed(f"the command could not be started: {error.strerror or error}") from None
    printed = _join_output(exited.stdout, exited.stderr, _HELD if exited.held else "")
    if exited.code != 0:
        raise ToolFailed(f"exit code {exited.code}\n{printed}")
    return ToolOutput(printed, _response(exited.stdout, exited.stderr))


def _response(stdout: str = "", stderr: str = "") -> dict[str, Any]:
    """Return the output as Claude Code gives it to hooks."""
    return {
        "stdout": truncate_middle(stdout.rstrip("\n"), MAX_OUTPUT_CHARS),
        "stderr": truncate_middle(stderr.rstrip("\n"), MAX_OUTPUT_CHARS),
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }


def _start(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    command, description = args["command"], args.get("description", "")
    run = partial(_run, command, context, in_background=True)
    started = _background(context).start(command, description, run)
    text = f"Started in the background as {started.id}. You get a message when it ends."
    return ToolOutput(text, {**_response(), "backgroundTaskId": started.id})


async def read_output(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    command = _background(context).get(args["bash_id"])
    command.is_reported = command.status != "running"
    output = truncate_middle(command.output.take_new().rstrip("\n"), MAX_OUTPUT_CHARS)
    text = f"{command.id} {command.state}.\n{output or '(no new output)'}"
    return ToolOutput(text, {"shellId": command.id, "status": command.status, "stdout": output})


async def kill_shell(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
    background = _background(context)
    command = background.get(args["shell_id"])
    if not command.is_alive:
        raise ToolFailed(f"{command.id} is not running: it {command.ending}")
    await background.kill([command])
    return ToolOutput(f"{command.id} was killed.", {"shell_id": command.id, "message": "killed"})


def _background(context: ToolContext) -> BackgroundCommands:
    if context.background is None:
        raise ToolFailed("no command can run in the background here")
    return context.background


_HELD = "[a background process still has the output open; later output is lost]"


# The agent expects bash; some machines have only sh.
_BASH_OR_SH = 'command -v bash >/dev/null && exec bash -c -- "$1"; exec /bin/sh -c -- "$1"'


async def _run(
    command: str, context: ToolContext, live: HookRunContext, *, in_background: bool = False
) -> Exited:
    env = sanitize_env({**context.environ, "PWD": context.project, IN_TOOL: "1"})
    world = context.world
    if world is not None and world.remote is not None:
        hook = CommandHook("/bin/sh", args=("-c", _BASH_OR_SH, "sh", command))
        shell = (in_background and world.remote.background_shell) or world.shell
        return await shell.run(hook, cwd=context.project, env=env, stdin=b"", live=live)
    argv = (shutil.which("bash") or "/bin/sh", "-c", "--", command)
    return await run_process(argv, cwd=context.project, env=env, stdin=b"", live=live)


def _join_output(*printed: str) -> str:
    text = "\n".join(stripped for part in printed if (stripped := part.rstrip("\n")))
    return truncate_middle(text, MAX_OUTPUT_CHARS) or "(no output)"
