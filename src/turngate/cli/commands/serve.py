"""`turngate serve`: a page about gates, sessions and stops, for a browser on this machine or as one file."""

import argparse
import contextlib
import functools
import json
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import turngate.serve
from turngate.cli.arguments import EXIT_ALL_SIGNALS, EXIT_ERRORS, LISTED_PROJECT_HINT, PROJECT_HELP, Parser
from turngate.cli.commands.runs.summary import all_subagents
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.signals import run_until_signal
from turngate.cli.project import recorded_project
from turngate.cli.review.entries import PENDING
from turngate.doctor.diagnosis import review_settings
from turngate.errors import UsageError
from turngate.history.journals import block_id
from turngate.history.sessions import History
from turngate.serve.server import Server, make_file
from turngate.serve.views import Views
from turngate.state.files import make_private_dir, os_errors_as_usage_errors
from turngate.state.journal import JOURNAL_FILE
from turngate.state.paths import TRANSCRIPT_FILE, session_folder, state_folder

PENDING_S = 10  # so long, the hooks that wait for approval are not looked up again
MAX_PORT = 65535
SAMPLE = "examples/history/sample.jsonl"  # in the repository
PRINTED = "open {}\n(Ctrl-C ends the server)"


def declare(parser: Parser) -> None:
    parser.description = """\
Show in a browser what the gates did: how often each blocked and how long it took, every session, and every stop with
the agent's answer, the gates, the verdict and the prompt with which the agent continued. New stops appear at once.
Only this machine can open the page, and only with the address that is printed. The page changes nothing."""
    parser.epilog = f"""\
Examples:
  turngate serve                     this project; open the address that is printed
  turngate serve --all               all projects of this machine
  turngate serve --demo              a sample history, to look around
  turngate serve --html gates.html   write a file instead, which needs no server

Exit codes:
  0   the file was written, or Ctrl-C ended the server
  64  wrong usage, such as a port that is in use
  {EXIT_ERRORS}
  {EXIT_ALL_SIGNALS.replace("130 interrupted, ", "")}"""
    parser.ssh_hint = LISTED_PROJECT_HINT
    add = parser.add_argument
    add("--port", type=int, default=0, help="the port (default: any free port)")
    add("--project", metavar="DIR", help=PROJECT_HELP)
    add("--all", action="store_true", help="all projects")
    add("--html", metavar="FILE", help="write the page with its data to this file; - prints it")
    add("--demo", action="store_true", help="show a sample history instead of your own")


def run(options: argparse.Namespace) -> int:
    if not 0 <= options.port <= MAX_PORT:
        raise UsageError(f"--port {options.port}: expected a number from 0 to {MAX_PORT}")
    if sum(map(bool, (options.all, options.project, options.demo))) > 1:
        raise UsageError("--all, --project and --demo cannot be used together")
    demo = tempfile.TemporaryDirectory(prefix="turngate-") if options.demo else contextlib.nullcontext()
    with os_errors_as_usage_errors(state_folder()), demo as folder:
        if folder:
            _write_sample(folder, time.time())
            views = Views(History(folder), lambda project: ["deploy"] * project.endswith("api"))
        else:
            shown = None if options.all else recorded_project(options.project)
            pending = lambda each: _read_pending(each, int(time.time() / PENDING_S))  # noqa: E731
            views = Views(History(state_folder(), shown), pending, _subagents, shown)
        if options.html is not None:
            _write_file(views, options.html)
            return 0
        server = Server(views).run(options.port, lambda url: print(PRINTED.format(url), flush=True))
        ended = run_until_signal(server)
    return 0 if ended is signal.SIGINT else 128 + int(ended or 0)


def _write_sample(state: str, now: float) -> None:
    """Write the sessions of the sample history to a state folder, as if its last stop was a minute ago."""
    path = Path(turngate.serve.__path__[0], "sample.jsonl")  # in the wheel
    path = path if path.exists() else Path(__file__).parents[4] / SAMPLE
    for line in path.read_text(encoding="utf-8").splitlines():
        session = json.loads(line)
        about = {"session_id": session["session"], "project": session["project"], "host": session["host"]}
        records = [{**each, **about, "time": now + each["time"]} for each in session["records"]]
        for mark in (each for each in records if each["kind"] == "mark"):
            mark["block"] = block_id(records[mark["block"]])
        title = {"type": "user", "message": {"role": "user", "content": session["title"]}}
        folder = Path(session_folder(state, session["session"]))
        make_private_dir(str(folder))
        for name, written in ((JOURNAL_FILE, records), (TRANSCRIPT_FILE, [title])):
            text = "".join(f"{json.dumps(each)}\n" for each in written)
            (folder / name).write_text(text, encoding="utf-8")


def _write_file(views: Views, path: str) -> None:
    with show_if_slow("reading the journals"):
        list(views.history.refresh())
        page = make_file(views)
    if path == "-":
        print(page)
        return
    try:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise UsageError(f"--html {path}: {error.strerror}") from None
    print(f"written   {path}", file=sys.stderr)


@functools.lru_cache(maxsize=64)
def _read_pending(project: str, _interval: int) -> tuple[str, ...]:
    with contextlib.suppress(UsageError):  # settings that cannot be read: `turngate check` says it
        hooks = review_settings(project, dialect="turngate").hooks if os.path.isdir(project) else ()
        return tuple(hook.key for hook in hooks if hook.status in PENDING)
    return ()


def _subagents(session: str) -> list[dict[str, Any]]:
    """Return the subagents of a session that the registry still has."""
    with contextlib.suppress(UsageError):
        own = (each for each in all_subagents() if each.last.parent == session)
        keys = ("agent", "parent", "label", "state")
        rows = ((each.last.agent_id, each.last.parent_agent, each.title, each.state) for each in own)
        return [dict(zip(keys, row, strict=True)) for row in rows]
    return []
