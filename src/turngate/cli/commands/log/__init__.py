"""`turngate log`: print the hook runs, verdicts, ends of turns and warnings in the journal of a session."""

import argparse
import contextlib
import functools
import itertools
import json
import math
import os
import sys
import time
from collections.abc import Iterator
from typing import Any, BinaryIO

from turngate.agent.session_store import list_sessions
from turngate.cli.arguments import EXIT_ERRORS_AND_SIGNALS, LISTED_PROJECT_HINT, Parser
from turngate.cli.commands.log.blocks import list_blocks, mark_block
from turngate.cli.commands.log.format import JsonLines, TextLines
from turngate.cli.commands.log.otlp import send_turns
from turngate.cli.commands.sessions import find_subagent
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.streams import stdout_error
from turngate.cli.project import project_folder, recorded_project
from turngate.cli.recorded_sessions import find_session
from turngate.cli.review import check_person
from turngate.errors import UsageError
from turngate.history.journals import journal_stamp, read_journal
from turngate.state.files import open_regular_file, os_errors_as_usage_errors
from turngate.state.journal import JOURNAL_FILE, MAX_JOURNAL_BYTES, OLDER_JOURNAL_FILE
from turngate.state.paths import session_folder, state_folder


def declare(parser: Parser) -> None:
    parser.description = """\
Show what the hooks of a session did: every hook run, every verdict, every turn that did not end as
"allowed" (capped, stalled, halted, interrupt …), and every warning about plugins and subagents. Headings give the date,
the project and the session. `turngate stats` counts across all sessions."""
    parser.epilog = f"""\
Examples:
  turngate log                     the session of this project whose hooks ran most recently
  turngate log 3fa9                another session; the beginning of its id is enough
  turngate log --project ../api    another project
  turngate log --follow            print new lines, also of sessions that begin later, until Ctrl-C
  turngate log -v                  with every line of every reason
  turngate log --json              one JSON object per line, with all that is known about a run
  turngate log --blocks            every block in this project, with its id
  turngate log --open              sessions that ended with a gate still blocking, and how to accept one
  turngate log --otlp http://localhost:4318 --follow
                                   send each turn to a collector as it ends
  turngate log --wrong 3fa9c1d2 --why "the test is flaky"
                                   count this block as wrong in `turngate stats`

Exit codes:
  0   printed
  64  wrong usage, an id that is unknown or ambiguous, or no hook has run yet
  {EXIT_ERRORS_AND_SIGNALS}"""
    parser.ssh_hint = LISTED_PROJECT_HINT
    add = parser.add_argument
    add(
        "id",
        nargs="?",
        metavar="ID",
        help="the beginning of the id of a session, or of a subagent in it (default: the session\n"
        "of this project whose hooks ran most recently or, if none ran here, of any project)",
    )
    add("--session", metavar="ID", help="the same as ID")
    add(
        "--project",
        metavar="DIR",
        help="show only what the hooks of this project did: a folder, or ssh://… as `turngate sessions` lists it",
    )
    add("--follow", action="store_true", help="wait for new lines; without ID, also of other sessions")
    add("-v", "--verbose", action="store_true", help="show every line of every reason")
    add("--json", action="store_true", help="print one JSON object per line")
    add("--otlp", metavar="URL", help="send each turn to an OpenTelemetry collector instead of printing it")
    marks = parser.add_mutually_exclusive_group()
    marks.add_argument("--blocks", action="store_true", help="list the blocks of the project, with ids")
    marks.add_argument(
        "--open", action="store_true", help="list sessions that ended with a gate still blocking"
    )
    marks.add_argument("--wrong", metavar="BLOCK", help="mark a block as wrong, by the beginning of its id")
    marks.add_argument("--right", metavar="BLOCK", help="mark a block as right: the opposite of --wrong")
    add("--why", metavar="TEXT", help="with --wrong or --right: the reason, for your own records")


Lines = JsonLines | TextLines
FOLLOW_INTERVAL_S = 0.2
SEARCH_EVERY = 5  # intervals, for other sessions
MAX_LINE_BYTES = 4 * MAX_JOURNAL_BYTES
KEY_BYTES = 64  # of the first line of a journal, which has the time


def run(options: argparse.Namespace) -> int:
    if options.why is not None and options.wrong is None and options.right is None:
        raise UsageError("--why needs --wrong or --right")
    if options.wrong is not None or options.right is not None:
        check_person(os.environ, "marks blocks")
        return mark_block(options)
    if options.blocks or options.open:
        return list_blocks(options)
    given = options.session if options.id is None else options.id
    if options.session not in (None, given):
        raise UsageError(f"two sessions are given, {given} and --session {options.session}; give one of them")
    with show_if_slow("searching the journals"):
        folder, project = _select_or_wait(given, options.project, waits=options.follow)
        newer = None if given else _newer_without_hooks(folder, project)
    if newer:
        print(
            f"no hook ran in the newest session, {newer}; this is the session whose hooks ran last "
            "(`turngate check` reports what is configured)",
            file=sys.stderr,
        )
    if options.otlp is not None:
        others = options.follow and given is None
        return send_turns(options.otlp, folder, project, follow=options.follow, others=others)
    lines = JsonLines() if options.json else TextLines(verbose=options.verbose)
    if options.follow:
        return _follow(folder, project, lines, only=given is not None)
    if not _print_new(JournalTail(folder), project, lines, running=True) and not options.json:
        where = f"session {os.path.basename(folder)}{f' in {project}' if project else ''}"
        print(f"no hook ran in {where}; `turngate check` reports what is configured")
    return 0


def _print_new(tail: "JournalTail", project: str | None, lines: Lines, *, running: bool = False) -> bool:
    """Print the records that were written since the last call, then the runs that did not end or, with `running`, still run.

    Return whether there were any records.
    """
    is_empty = True
    for record in tail.new_records():
        if project in (None, record.get("project")):
            is_empty = False
            tail.skipped += not _print_record(record, lines)
    for record in lines.unfinished(running=running):
        _print_record(record, lines)
    tail.report_skipped()
    return not is_empty


def _follow(folder: str, project: str | None, lines: Lines, *, only: bool) -> int:
    """Print a session until its reader has left; unless `only`, also others as soon as they go on or begin."""
    tails = {folder: JournalTail(folder)}
    before = {} if only else {path: _size(path) for path in _by_last_change()}
    for number in itertools.count():
        for tail in tails.values():
            _print_new(tail, project, lines)
        if stdout_error():
            return 0
        time.sleep(FOLLOW_INTERVAL_S)
        if only or number % SEARCH_EVERY:
            continue
        with contextlib.suppress(UsageError):
            for path in _by_last_change():
                has_changed = path not in tails and before.get(path) != _size(path)
                if has_changed and (project is None or _mentions(path, project)):
                    tails[path] = JournalTail(path, skip=before.get(path, 0))
    return 0


def _size(folder: str) -> int:
    with contextlib.suppress(OSError):
        return os.path.getsize(os.path.join(folder, JOURNAL_FILE))
    return 0


def _print_record(record: dict[str, Any], lines: Lines) -> bool:
    """Print the lines of a record. Return False if it is not one that a journal holds."""
    try:
        texts = list(lines.format(record))
    except (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, OSError):
        return False
    for text in texts:
        print(text)
    return True


# Which session


class _NothingRan(UsageError):
    """Raised where no hook has run yet."""


def _select_or_wait(session: str | None, project: str | None, *, waits: bool) -> tuple[str, str | None]:
    """Select a session. If no hook has run yet, wait for the first one."""
    is_first = True
    while True:
        try:
            return _select(session, project)
        except _NothingRan as error:
            if not waits:
                raise
            if is_first:
                print(f"{str(error).partition(';')[0]}; waiting for the first …", file=sys.stderr, flush=True)
            is_first = False
        time.sleep(FOLLOW_INTERVAL_S)


def _select(session: str | None, project: str | None) -> tuple[str, str | None]:
    """Return the folder of a session, and the project whose records are shown; None: of every project.

    Without a session and a project: the session of the current folder's project whose hooks ran last, if there is one.
    """
    given = recorded_project(project) if project else None
    if session is not None and not session.strip():
        raise UsageError("the id is empty; give the beginning of an id: `turngate sessions` lists them")
    if session:
        found = find_session(session, _names()) or find_subagent(session)[0]
        return session_folder(state_folder(), found), given
    folders = _by_last_change()
    wanted = given
    if not given:
        with contextlib.suppress(UsageError):  # the current folder was removed
            wanted = project_folder(None)
    newest = next((folder for folder in folders if wanted and _mentions(folder, wanted)), None)
    if newest:
        return newest, wanted
    if given:
        command = f"turngate fire Stop {'--project' if os.path.isabs(given) else '--ssh'} {given}"
        raise _NothingRan(f"no hook has run in {given} yet; `{command}` runs them once")
    return folders[0], None


def _names() -> list[str]:
    sessions = os.path.join(state_folder(), "sessions")
    with os_errors_as_usage_errors(sessions):
        return os.listdir(sessions) if os.path.isdir(sessions) else []


def _by_last_change() -> list[str]:
    """Return the folders of all sessions that have a journal, the one that changed last first."""
    folders = (session_folder(state_folder(), name) for name in _names())
    changed = {folder: when for folder in folders if (when := journal_stamp(folder)[0])}
    if not changed:
        raise _NothingRan("no hook has run yet; `turngate fire Stop` runs the project's hooks once")
    return sorted(changed, key=changed.__getitem__, reverse=True)


def _mentions(folder: str, project: str) -> bool:
    return bool(read_journal(folder, project=project).records)


def _newer_without_hooks(folder: str, project: str | None) -> str | None:
    """Return the project's newest session if it changed after the journal in this folder and has no journal."""
    changed = journal_stamp(folder)[0]
    for session in list_sessions(state_folder()):  # newest first
        if session.changed <= changed:
            break
        if project in (None, session.project):
            return None if journal_stamp(os.path.dirname(session.path))[0] else session.session_id
    return None


# The journal


class JournalTail:
    """Reads a journal as it grows: every complete line once, also when the newest file becomes the older one.

    A line that is too long or not a JSON object is counted in `skipped`.
    """

    def __init__(self, folder: str, *, skip: int = 0) -> None:
        """Begin `skip` bytes after the start of the newest file; 0: at the start of the older one."""
        self._paths = [os.path.join(folder, name) for name in (OLDER_JOURNAL_FILE, JOURNAL_FILE)]
        self._read = dict[bytes, int]()  # bytes of a file, by how its first line begins
        self.skipped = 0
        for path, size in zip(self._paths, (math.inf, skip), strict=True) if skip else ():
            with contextlib.suppress(OSError), open(open_regular_file(path, os.O_RDONLY), "rb") as file:
                self._read[file.readline(KEY_BYTES)] = int(min(size, os.fstat(file.fileno()).st_size))

    def report_skipped(self) -> None:
        """Print how many lines were skipped since the last report."""
        if self.skipped:
            lines = "1 line" if self.skipped == 1 else f"{self.skipped} lines"
            print(f"! {lines} of the journal could not be read: {self._paths[1]}", file=sys.stderr)
            self.skipped = 0

    def new_records(self) -> Iterator[dict[str, Any]]:
        """Yield the records that were written since the last call."""
        for path in self._paths:
            with contextlib.suppress(OSError), open(open_regular_file(path, os.O_RDONLY), "rb") as file:
                key = file.readline(KEY_BYTES)
                file.seek(self._read.get(key, 0))
                for line in self._complete_lines(file, key):
                    try:
                        record = json.loads(line)
                    except (
                        ValueError,
                        RecursionError,
                    ):  # such as the partial line of a process that was killed
                        record = None
                    if isinstance(record, dict):
                        yield record
                    else:
                        self.skipped += bool(line.strip())

    def _complete_lines(self, file: BinaryIO, key: bytes) -> Iterator[bytes]:
        """Yield the complete lines from here on; in place of one that is too long, a dash."""
        is_too_long, self._read[key] = False, file.tell()
        for part in iter(functools.partial(file.readline, MAX_LINE_BYTES), b""):
            if part.endswith(b"\n"):
                self._read[key] = file.tell()
                yield b"-" if is_too_long else part
            is_too_long = not part.endswith(b"\n")
