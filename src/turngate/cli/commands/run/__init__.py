"""`turngate run`: run an agent on a task under the project's stop hooks."""

import argparse
import os
import signal
import sys

from turngate.cli.commands.run.one_turn import run_print
from turngate.cli.commands.run.session import OpenSession, open_here, open_over_ssh
from turngate.cli.console.questions import read_prompt_from_stdin
from turngate.cli.project import check_one_project, project_folder, search_note
from turngate.core.constants import AGENT_MARKERS
from turngate.core.conversation.checkpoints import parse_answer
from turngate.errors import UsageError


def run(options: argparse.Namespace) -> int:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if it is inherited as ignored, exit codes are lost
    prompt = read_prompt_from_stdin() if options.prompt == "-" else options.prompt
    if options.print and not (prompt or "").strip():
        raise UsageError("-p needs a prompt; give it as an argument, or - to read it from stdin")
    if options.resume or options.session:
        _check_answer(prompt or "")
    open_session = _session_opener(options)
    if options.print:
        return run_print(open_session, prompt, options.output_format)
    from turngate.cli.commands.run.conversation import run_interactive  # noqa: PLC0415 # lazy: not for -p

    return run_interactive(open_session, prompt, options.output_format)


def _session_opener(options: argparse.Namespace) -> OpenSession:
    if options.ssh is not None:
        check_one_project(options.project, options.ssh)
        return open_over_ssh(options)
    project = project_folder(options.project, options.dialect)
    if options.output_format == "text" and (note := search_note(project, options.project)):
        print(note, file=sys.stderr)
    return open_here(options, project)


def _check_answer(prompt: str) -> None:
    """Raise UsageError for a yes from a process that a hook or an agent's tool has started: it could be at a checkpoint."""
    marker = next((name for name in AGENT_MARKERS if name in os.environ), None)
    if marker is not None and parse_answer(prompt) == "yes":
        raise UsageError(
            "a person answers yes at a checkpoint, in a terminal of their own, and this was started by a hook or an agent "
            f"({marker} is set)"
        )
