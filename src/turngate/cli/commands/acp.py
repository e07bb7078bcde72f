"""`turngate acp`: check the stops of any agent that speaks the Agent Client Protocol, between it and its editor."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Callable
from io import FileIO

from turngate.cli.arguments import EXIT_ALL_SIGNALS, EXIT_INTERNAL, PROJECT_HELP, Parser
from turngate.cli.main import (
    EXIT_ALLOWED,
    EXIT_BLOCKED,
    EXIT_FAILED,
    EXIT_HALTED,
    EXIT_NOT_ENFORCED,
    EXIT_PROBLEMS,
    EXIT_WAITING,
)
from turngate.cli.project import project_folder
from turngate.errors import UsageError
from turngate.state.paths import state_folder

KINDS = (
    "read",
    "edit",
    "delete",
    "move",
    "search",
    "execute",
    "think",
    "fetch",
    "switch_mode",
    "other",
    "all",
)
EXIT_CODES = {
    "capped": EXIT_BLOCKED,
    "stalled": EXIT_BLOCKED,
    "halted": EXIT_HALTED,
    "checkpoint": EXIT_WAITING,
}


def declare(parser: Parser) -> None:
    parser.ssh_hint = "it starts the agent here: run it there"
    parser.description = """\
Run an agent that speaks the Agent Client Protocol (ACP), and check its stops. An editor starts this command instead of
the agent's own. Every message passes through unchanged. When the agent has answered a prompt, the hooks and gates of
.turngate and .mux are asked, as `turngate hook` asks them; if one blocks, the agent gets the reason as its next prompt.

If `turngate hook` is installed in the agent program itself and will run, the stops are left to it; stderr says so."""
    parser.epilog = f"""\
Examples:
  turngate install zed --agent 'opencode acp'      let Zed start an agent behind this command
  turngate acp -- gemini --acp                     what an editor starts
  turngate acp --prompt 'fix the test' --allow edit -- opencode acp
                                                   one turn without an editor, for CI

Exit codes:
  0   with --prompt: the agent stopped, and no hook blocks; otherwise that of the agent, with 1 for 2
  10  with --prompt: a hook still blocks: the limit is reached, or nothing changed (capped, stalled)
  11  with --prompt: halted by a hook
  12  with --prompt: the agent waits for the user
  13  with --prompt and --strict: the agent stopped, but a hook was not enforced
  20  with --prompt: the agent failed, refused or reached a limit of its own
  64  wrong usage, or the agent cannot be started
  {EXIT_INTERNAL}
  {EXIT_ALL_SIGNALS}"""
    add = parser.add_argument
    add("command_line", nargs="+", metavar="CMD", help="the agent and its arguments, after --")
    add("--prompt", metavar="TEXT", help="run one turn without an editor, and print the last answer")
    add("--project", metavar="DIR", help=f"with --prompt: {PROJECT_HELP}")
    add(
        "--allow",
        action="append",
        default=[],
        choices=KINDS,
        metavar="KIND",
        help=f"with --prompt: permit this kind of tool when the agent asks: {', '.join(KINDS)}; may be repeated",
    )
    add("--strict", action="store_true", help="with --prompt: exit with 13 if a hook was not enforced")


def run(options: argparse.Namespace) -> int:
    # lazy: --help needs none of it
    from turngate.cli.commands.acp_own_line import own_line_of  # noqa: PLC0415
    from turngate.cli.console.signals import run_until_signal  # noqa: PLC0415

    own_line = own_line_of(options.command_line)
    if options.prompt is not None:
        ended = run_until_signal(_run_prompt(options, own_line))
    else:
        # Not `sys.stdout`, which reports errors of its own.
        with open(0, "rb", 0, closefd=False) as stdin, open(1, "wb", 0, closefd=False) as stdout:
            ended = run_until_signal(_run_in_editor(options, own_line, stdin, stdout), for_host=True)
    return 128 + ended if isinstance(ended, signal.Signals) else ended


async def _run_in_editor(
    options: argparse.Namespace, own_line: Callable[[str], str | None], stdin: FileIO, stdout: FileIO
) -> int:
    # lazy: as above
    from turngate.acp.connection import connect  # noqa: PLC0415
    from turngate.acp.proxy import READ_BYTES  # noqa: PLC0415

    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_BYTES)
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdin)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdout)
    except ValueError:
        raise UsageError("an editor starts it, with pipes as stdin and stdout; see --prompt") from None
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    code = await connect(options.command_line, (reader, writer), state_folder(), own_line)
    return EXIT_PROBLEMS if code == 2 else code  # 2 is a block


async def _run_prompt(options: argparse.Namespace, own_line: Callable[[str], str | None]) -> int:
    # lazy: as above
    from turngate.acp.connection import connect  # noqa: PLC0415
    from turngate.acp.headless import HeadlessEditor  # noqa: PLC0415

    if not options.prompt.strip():
        raise UsageError("--prompt is empty; give the agent's task")
    editor = HeadlessEditor(project_folder(options.project), options.prompt, options.allow)
    await connect(options.command_line, (editor.reader, editor), state_folder(), own_line)
    if editor.error is not None or editor.result.get("stopReason") != "end_turn":
        why = editor.error or f"it stopped with {editor.result.get('stopReason')}"
        print(f"turngate acp: the agent failed: {why}", file=sys.stderr)
        return EXIT_FAILED
    print(editor.answer)
    outcome = str(((editor.result.get("_meta") or {}).get("turngate") or {}).get("outcome"))
    if outcome == "not enforced" and options.strict:
        return EXIT_NOT_ENFORCED
    return EXIT_CODES.get(outcome, EXIT_ALLOWED)
