"""`turngate sessions`: list, show and remove earlier conversations."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from turngate.agent.session_store import SessionSummary, list_sessions, prune_sessions
from turngate.cli.arguments import EXIT_ERRORS, LISTED_PROJECT_HINT, Parser, add_json_option
from turngate.cli.console.conversation_text import counted, format_time
from turngate.cli.console.progress import show_if_slow
from turngate.cli.project import project_folder, recorded_project
from turngate.cli.review import check_person
from turngate.core.conversation.messages import Message, Reply, ToolResults, UserMessage
from turngate.core.text import one_line, printable, truncate
from turngate.errors import UsageError
from turngate.project.files import LOCAL
from turngate.settings.load import load_layers
from turngate.state.paths import state_folder
from turngate.transcript.reader import message_of, read_records

_Row = tuple[str, str, str, str]
_HEADINGS: _Row = ("CHANGED", "ID", "PROJECT", "FIRST MESSAGE")
MIN_ID_CHARS = 8
MIN_CELL_CHARS = 8  # of a project or a message, in a very narrow terminal
MAX_PROJECT_CHARS = 200  # of a path in the table
MAX_TOOL_CHARS = 200  # of the input and of the result of a tool


def declare(parser: Parser) -> None:
    parser.description = """\
List, show or remove earlier conversations, including those started with -p. Each is a folder below ~/.local/state/turngate
(or TURNGATE_STATE) with the transcript and the journal of its hooks. `turngate run --resume --session ID`
continues one; `turngate log ID` shows what its hooks did."""
    parser.epilog = f"""\
Examples:
  turngate sessions                   all of them, the newest first
  turngate sessions --project .       those of this project
  turngate sessions show 3fa9         one conversation; the beginning of its id is enough
  turngate sessions prune --days 7    remove those older than a week

Exit codes:
  0   done
  64  wrong usage, including an id that is unknown or ambiguous
  {EXIT_ERRORS}"""
    parser.ssh_hint = LISTED_PROJECT_HINT
    add = parser.add_argument
    actions = ["list", "show", "prune"]
    add("action", nargs="?", choices=actions, default="list", metavar="ACTION", help="list, show or prune")
    add("session", nargs="?", metavar="ID", help="the session or subagent to show: the beginning of its id")
    add(
        "--project",
        metavar="DIR",
        help="list only the sessions of this project: a folder, or ssh://… as this command lists it",
    )
    add("--days", type=float, help="prune sessions older than this (default: the setting, or 30)")
    add_json_option(parser, "one JSON list")


def run(options: argparse.Namespace) -> int:
    if options.action == "show":
        _show(options.session)
    elif options.action == "prune":
        check_person(os.environ, "removes sessions")
        _prune(options.days)
    else:
        _list(options.project, as_json=options.json)
    return 0


def _read_all() -> list[SessionSummary]:
    with show_if_slow("reading the sessions"):
        return list_sessions(state_folder())


def _list(project: str | None, *, as_json: bool) -> None:
    sessions = _read_all()
    if project:
        folder = recorded_project(project)
        sessions = [session for session in sessions if session.project == folder]
    if as_json:
        print(json.dumps([vars(session) for session in sessions], indent=2))
    elif sessions:
        print("\n".join(format_table(sessions)))
    else:
        where = f" of {recorded_project(project)}" if project else ""
        print(f"there are no sessions{where} yet; `turngate run` starts one")


def format_table(sessions: Sequence[SessionSummary]) -> Iterator[str]:
    rows = [_HEADINGS]
    for session in sessions:
        project = _truncate_left(printable(_below_home(session.project)), MAX_PROJECT_CHARS)
        rows.append(
            (format_time(session.changed, "%Y-%m-%d %H:%M"), session.session_id, project, session.first)
        )
    if sys.stdout.isatty():
        rows = _fit(rows, shutil.get_terminal_size().columns)
    widths = _widths(rows)
    for row in rows:
        yield "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()


def _widths(rows: Sequence[_Row]) -> list[int]:
    return [max(map(len, column)) for column in zip(*rows, strict=True)]


def _fit(rows: Sequence[_Row], columns: int) -> list[_Row]:
    """Shorten ids to unique beginnings, then projects from the left and messages, so that each row is one line."""
    changed, ids, projects, _ = _widths(rows)
    if sum(_widths(rows)) + 6 <= columns:
        return list(rows)
    names = [row[1] for row in rows[1:]]
    ids = next((n for n in range(MIN_ID_CHARS, ids) if len({name[:n] for name in names}) == len(names)), ids)
    room = max(2 * MIN_CELL_CHARS, columns - changed - ids - 6)
    projects = min(projects, room // 2)
    return [
        (when, name[:ids], _truncate_left(project, projects), truncate(first, room - projects))
        for when, name, project, first in rows
    ]


def _truncate_left(text: str, limit: int) -> str:
    return text if len(text) <= limit else "…" + text[len(text) - limit + 1 :]


def _below_home(path: str) -> str:
    home = os.path.expanduser("~")
    return "~" + path[len(home) :] if path == home or path.startswith(f"{home}{os.sep}") else path


def _retention_days(project: str) -> float:
    """Return how long sessions are kept. A project, whose sessions are not the only ones, can only keep them longer."""
    read = load_layers(project, dialect="turngate", files=LOCAL)
    others = tuple(layer for layer in read.layers if layer.level not in ("project", "local"))
    return max(each.merge().retention_days for each in (read, replace(read, layers=others)))


def _prune(days: float | None) -> None:
    if days is None:
        days = _retention_days(project_folder(None))
    with show_if_slow("removing old sessions"):
        listed = {session.session_id for session in list_sessions(state_folder())}
        removed = prune_sessions(state_folder(), days)
    sessions = sum(name in listed for name in removed)
    journals = len(removed) - sessions
    rest = (
        f", and {counted(journals, 'journal')} of hooks that ran without a conversation" if journals else ""
    )
    print(f"removed {counted(sessions, 'session')} older than {days:g} days{rest}")


def _show(session_id: str | None) -> None:
    if not session_id:
        raise UsageError("which session? `turngate sessions show ID`; `turngate sessions` lists them")
    paths = {session.session_id: session.path for session in _read_all()}
    found = find_session(session_id, paths)
    for record in read_records(paths[found] if found else find_subagent(session_id)[1]):
        _print_message(message_of(record))


def _print_message(message: Message | None) -> None:
    match message:
        case UserMessage(text, origin):
            print(f"{'you' if origin == 'user' else origin}: {text}")
        case Reply() as reply:
            for text in reply.texts:
                print(f"agent: {text}")
            for use in reply.tool_uses:
                args = json.dumps(dict(use.input), ensure_ascii=False)
                print(f"  {use.name} {truncate(args, MAX_TOOL_CHARS)}")
        case ToolResults(results):
            for result in results:
                state = "failed" if result.is_error else "ok"
                print(f"  {state}: {one_line(result.content, MAX_TOOL_CHARS)}")
        case None:  # a record that is not part of the conversation
            pass


MAX_LISTED_IDS = 10


def find_session(given: str, ids: Iterable[str]) -> str | None:
    """Return the session with this id, or the only one whose id starts so. None: there is none.

    Raises UsageError, which lists them, if there are several.
    """
    matches = sorted({each for each in ids if each.startswith(given)})
    if given in matches:
        return given
    if len(matches) > 1:
        lines = "".join(f"\n  {each}" for each in matches[:MAX_LISTED_IDS])
        more = f"\n  and {len(matches) - MAX_LISTED_IDS} more" if len(matches) > MAX_LISTED_IDS else ""
        raise UsageError(f"{given} matches {len(matches)} sessions; there are{lines}{more}")
    return matches[0] if matches else None


def find_subagent(given: str) -> tuple[str, str]:
    """Return the session and the transcript of the one subagent whose id starts so. Raises UsageError."""
    # lazy: loads the registry, which is needed only if no session has this id
    from turngate.cli.commands.runs.summary import all_subagents  # noqa: PLC0415

    summaries = [each for each in all_subagents() if each.matches(given)]
    if len(summaries) == 1:
        return summaries[0].last.parent, summaries[0].last.transcript
    if summaries:
        lines = "".join(f"\n  {each.id}  {each.title}" for each in summaries[:MAX_LISTED_IDS])
        raise UsageError(f"{given} matches {len(summaries)} subagents; there are{lines}")
    raise UsageError(f"there is no session {given}; `turngate sessions` lists them")
