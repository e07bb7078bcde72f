"""Run the agent of `turngate acp` for an editor, or for one prompt."""

import argparse
import asyncio
import os
import re
import signal
from collections.abc import Sequence
from io import FileIO

from turngate.acp import say
from turngate.acp.connection import connect
from turngate.acp.headless import HeadlessEditor
from turngate.acp.proxy import READ_BYTES, OwnLine
from turngate.cli import main
from turngate.cli.console.signals import run_until_signal
from turngate.cli.project import find_project, project_folder
from turngate.core.constants import FAMILIES
from turngate.core.settings import Settings
from turngate.doctor.hosts.diagnosis import diagnose_files
from turngate.errors import UsageError
from turngate.hosts.all_hosts import HOSTS
from turngate.state.paths import state_folder

_CODES = {
    "capped": main.EXIT_BLOCKED,
    "stalled": main.EXIT_BLOCKED,
    "halted": main.EXIT_HALTED,
    "checkpoint": main.EXIT_WAITING,
}
_PACKAGE = r"node_modules/(?:@[^/]+/)?([^/]+)"  # in the path of a program from npm


def run_agent(options: argparse.Namespace) -> int:
    if options.prompt is not None:
        ended = run_until_signal(_run_prompt(options))
    else:
        # Not `sys.stdout`, which reports errors of its own.
        with open(0, "rb", 0, closefd=False) as stdin, open(1, "wb", 0, closefd=False) as stdout:
            ended = run_until_signal(_run_for_editor(options.command_line, stdin, stdout), for_host=True)
    return 128 + ended if isinstance(ended, signal.Signals) else ended


async def _run_for_editor(command: Sequence[str], stdin: FileIO, stdout: FileIO) -> int:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(limit=READ_BYTES)
    try:
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), stdin)
        transport, protocol = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, stdout)
    except ValueError:
        raise UsageError("an editor starts it, with pipes as stdin and stdout; see --prompt") from None
    writer = asyncio.StreamWriter(transport, protocol, None, loop)
    code = await connect(command, (reader, writer), state_folder(), *_own_line_of(command))
    return main.EXIT_PROBLEMS if code == 2 else code  # 2 is a block


async def _run_prompt(options: argparse.Namespace) -> int:
    if not options.prompt.strip():
        raise UsageError("--prompt is empty; give the agent's task")
    command = options.command_line
    editor = HeadlessEditor(project_folder(options.project), options.prompt, options.allow)
    await connect(command, (editor.reader, editor), state_folder(), *_own_line_of(command))
    reason = editor.result.get("stopReason")
    if editor.error or reason != "end_turn":
        say(f"the agent failed: {editor.error or f'it stopped with {reason}'}")
        return main.EXIT_FAILED
    print(editor.answer)
    outcome = ((editor.result.get("_meta") or {}).get("turngate") or {}).get("outcome", "")
    if outcome == "not enforced" and options.strict:
        return main.EXIT_NOT_ENFORCED
    return _CODES.get(outcome, main.EXIT_ALLOWED)


def _own_line_of(command: Sequence[str]) -> tuple[str, OwnLine]:
    """Return the host whose hooks an agent runs, or "", and what says for a folder why its own line holds."""
    names = {os.path.basename(word).partition("@")[0] for word in command}
    names |= {name for word in command for name in re.findall(_PACKAGE, word)}
    host = next((host for host in HOSTS.values() if names & {*host.acp_programs}), None)

    def own_line(folder: str) -> str:
        project = find_project(folder, FAMILIES["host"])
        if host and diagnose_files(host, Settings(), project, os.environ).runs_turngate:
            return f"{host.title} runs `turngate hook` itself in {folder}"
        return ""

    return host.name if host else "", own_line
