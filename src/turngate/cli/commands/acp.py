"""`turngate acp`: check the stops of any agent that speaks the Agent Client Protocol, between it and its editor."""

import argparse
import asyncio
import os
import re
import signal
from collections.abc import Sequence
from io import FileIO

from turngate.acp import say
from turngate.acp.headless import HeadlessEditor
from turngate.acp.proxy import READ_BYTES, connect
from turngate.acp.session import OwnLine
from turngate.cli import main
from turngate.cli.arguments import EXIT_ALL_SIGNALS, EXIT_CODES_OF_TURN, EXIT_INTERNAL, PROJECT_HELP, Parser
from turngate.cli.console.signals import run_until_signal
from turngate.cli.project import find_project, project_folder
from turngate.core.constants import FAMILIES
from turngate.core.events.stream_events import OUTCOMES
from turngate.core.settings import Settings
from turngate.doctor.hosts.diagnosis import diagnose_files
from turngate.errors import UsageError
from turngate.hosts.all_hosts import HOSTS

_KINDS = "read edit delete move search execute think fetch switch_mode other all".split()
# The name of a program, without a version, and that of the npm package in its path.
_PROGRAM = r"node_modules/(?:@[^/]+/)?([^/]+)|([^/@]+)(?:@[^/]*)?$"


def declare(parser: Parser) -> None:
    parser.ssh_hint = "it starts the agent here: run it there"
    parser.description = """\
Run an agent that speaks the Agent Client Protocol (ACP), and check its stops. An editor starts this command
instead of the agent's own. Every message passes through unchanged. When the agent has answered a prompt, the
hooks and gates of .turngate and .mux run as in `turngate hook`; if one blocks, the agent gets the reason as
its next prompt.

If `turngate hook` is installed in the agent program itself and will run, this command leaves the stops to it, and
says so on stderr. Without --prompt, the exit code is the agent's own, but 1 instead of 2."""
    parser.epilog = f"""\
Examples:
  turngate install zed --agent 'opencode acp'      let Zed start an agent behind this command
  turngate acp -- gemini --acp                     what an editor starts
  turngate acp --prompt 'fix the test' --allow edit -- opencode acp
                                                   one turn without an editor, for CI

Exit codes:
  {EXIT_CODES_OF_TURN}
  13  with --strict: the agent stopped, but a hook was not enforced
  20  the agent failed, refused or reached a limit of its own
  64  wrong usage, or the agent cannot be started
  {EXIT_INTERNAL}
  {EXIT_ALL_SIGNALS}"""
    add = parser.add_argument
    add("command_line", nargs="+", metavar="CMD", help="the agent and its arguments, after --")
    add("--prompt", metavar="TEXT", help="run one turn without an editor, and print the last answer")
    add("--project", metavar="DIR", help=f"with --prompt: {PROJECT_HELP}")
    permit = f"with --prompt: permit tools of a kind: {', '.join(_KINDS)}; may be repeated"
    add("--allow", action="append", default=[], choices=_KINDS, metavar="KIND", help=permit)
    add("--strict", action="store_true", help="with --prompt: exit with 13 if a hook was not enforced")


def run(options: argparse.Namespace) -> int:
    if options.prompt is not None:
        ended = run_until_signal(_run_prompt(options))
    else:
        ended = run_until_signal(_run_for_editor(options.command_line), for_host=True)
    return 128 + ended if isinstance(ended, signal.Signals) else ended


async def _run_for_editor(command: Sequence[str]) -> int:
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=READ_BYTES)
    # Not `sys.stdout`, which reports errors of its own.
    stdin, stdout = FileIO(0, closefd=False), FileIO(1, "wb", closefd=False)
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdin)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdout)
    except ValueError:
        raise UsageError("an editor starts it, with pipes as stdin and stdout; see --prompt") from None
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    code = await connect(command, reader, writer, *_own_line_of(command))
    return main.EXIT_PROBLEMS if code == 2 else code  # 2 is a block


async def _run_prompt(options: argparse.Namespace) -> int:
    if not options.prompt.strip():
        raise UsageError("--prompt is empty; give the agent's task")
    editor = HeadlessEditor(project_folder(options.project), options.prompt, options.allow)
    await connect(options.command_line, editor.reader, editor, *_own_line_of(options.command_line))
    result = editor.response.get("result") or {}
    if (reason := result.get("stopReason")) != "end_turn":
        error = editor.response.get("error") or {"message": f"it stopped with {reason}"}
        say(f"the agent failed: {error.get('message')}")
        return main.EXIT_FAILED
    print(editor.answer)
    outcome = ((result.get("_meta") or {}).get("turngate") or {}).get("outcome", "")
    if outcome == "not enforced" and options.strict:
        return main.EXIT_NOT_ENFORCED
    return main.EXIT_CODES[OUTCOMES.get(outcome, "completed")]


def _own_line_of(command: Sequence[str]) -> tuple[str, OwnLine]:
    """Return the host whose hooks an agent runs, or "", and what says for a folder why its own line holds."""
    names = {name for word in command for found in re.findall(_PROGRAM, word) for name in found}
    host = next((host for host in HOSTS.values() if names & {*host.acp_programs}), None)

    def own_line(folder: str) -> str:
        project = find_project(folder, FAMILIES["host"])
        if host and diagnose_files(host, Settings(), project, os.environ).runs_turngate:
            return f"{host.title} runs `turngate hook` itself in {folder}"
        return ""

    return host.name if host else "", own_line
