"""`turngate sessions`: list, show and remove earlier conversations."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from turngate.agent.session_store import list_sessions, prune_sessions
from turngate.cli.arguments import EXIT_ERRORS, LISTED_PROJECT_HINT, Parser, add_json_option
from turngate.cli.console.conversation_text import counted, format_table, format_time
from turngate.cli.console.progress import show_if_slow
from turngate.cli.project import project_folder, recorded_project
from turngate.cli.recorded_sessions import MAX_LISTED_IDS, find_session, load_history
from turngate.cli.review import check_person
from turngate.core.conversation.messages import Message, Reply, ToolResults, UserMessage
from turngate.core.text import one_line, printable, truncate
from turngate.errors import UsageError
from turngate.history.sessions import OWN_HOST
from turngate.project.files import LOCAL
from turngate.settings.load import load_layers
from turngate.state.paths import state_folder
from turngate.transcript.reader import message_of, read_records

MIN_ID_CHARS, MAX_ID_CHARS = 8, 64  # of an id in a narrow terminal
MAX_CELL_CHARS = 200  # of a project, gates or a message
CELL_CHARS = (80, 60, 40, 30, 24, 20, 16, 12, 8)  # in a narrow terminal
MAX_TOOL_CHARS = 200  # of the input and of the result of a tool


def declare(parser: Parser) -> None:
    parser.description = """\
List, show or remove earlier conversations of `turngate run`, including those started with -p, and list the
sessions of other agent programs whose stops Turngate has checked. Each is a folder below
~/.local/state/turngate (or TURNGATE_STATE) with the journal of its hooks and, for `turngate run`, the
transcript, which `turngate run --resume --session ID` continues. `turngate log ID` shows what the hooks did."""
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
    add(
        "--days",
        type=float,
        help="prune sessions older than this (default: `retentionDays` in the settings, or 30)",
    )
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


Row = dict[str, Any]


def _read_all() -> list[Row]:
    """Return the sessions of all programs, the newest first; `path`: of a conversation of `turngate run`, or ""."""
    found = dict[str, Row]()
    for seen in load_history().newest_first():
        about = {"host": seen.host, "project": seen.project, "gates": seen.gates, "first": seen.title}
        result = seen.results[-1] if seen.results else ""
        found[seen.id] = {"session_id": seen.id, "changed": seen.last, "size": 0, **about, "result": result}
    with show_if_slow("reading the sessions"):
        for each in list_sessions(state_folder()):
            known = {"gates": (), "result": "", **found.get(each.session_id, {})}
            found[each.session_id] = {**known, **vars(each), "host": OWN_HOST}
    return sorted(({"path": "", **row} for row in found.values()), key=lambda row: -row["changed"])


def _list(project: str | None, *, as_json: bool) -> None:
    folder = recorded_project(project) if project else None
    sessions = [session for session in _read_all() if folder in (None, session["project"])]
    if as_json:
        print(json.dumps(sessions, indent=2))
    elif sessions:
        print("\n".join(format_sessions(sessions)))
    else:
        where = f" of {folder}" if folder else ""
        print(f"there are no sessions{where} yet; `turngate run` starts one")


def format_sessions(sessions: Sequence[Row]) -> list[str]:
    """Return the lines of the table, in a terminal with ids and cells so short that each row is one line."""
    lines = list(_table(sessions, MAX_CELL_CHARS, MAX_CELL_CHARS))
    if not sys.stdout.isatty():
        return lines
    columns, ids = shutil.get_terminal_size().columns, {session["session_id"] for session in sessions}
    lengths = range(MIN_ID_CHARS, MAX_ID_CHARS)
    unique = next((n for n in lengths if len({each[:n] for each in ids}) == len(ids)), MAX_ID_CHARS)
    for limit in CELL_CHARS:
        if max(map(len, lines)) > columns:
            lines = list(_table(sessions, unique, limit))
    return [truncate(line, columns) for line in lines]


def _table(sessions: Sequence[Row], id_chars: int, cell_chars: int) -> Iterator[str]:
    home, projects = os.path.expanduser("~"), list[str]()
    for each in sessions:
        is_below = f"{each['project']}/".startswith(f"{home}/")
        text = printable("~" + each["project"][len(home) :] if is_below else each["project"])
        projects.append(text if len(text) <= cell_chars else "…" + text[len(text) - cell_chars + 1 :])
    columns = [
        ("CHANGED", [format_time(each["changed"], "%Y-%m-%d %H:%M") for each in sessions]),
        ("ID", [each["session_id"][:id_chars] for each in sessions]),
        ("HOST", [each["host"] for each in sessions]),
        ("RESULT", [each["result"] for each in sessions]),
        ("PROJECT", projects),
        ("GATES", [truncate(printable(", ".join(each["gates"])), cell_chars) for each in sessions]),
        ("ABOUT", [truncate(printable(each["first"]), cell_chars) for each in sessions]),
    ]
    return format_table([column for column in columns if any(column[1])], left=len(columns))


def _prune(days: float | None) -> None:
    if days is None:
        # A project, whose sessions are not the only ones, can only keep them longer.
        read = load_layers(project_folder(None), dialect="turngate", files=LOCAL)
        others = tuple(layer for layer in read.layers if layer.level not in ("project", "local"))
        days = max(each.merge().retention_days for each in (read, replace(read, layers=others)))
    with show_if_slow("removing old sessions"):
        listed = {session.session_id for session in list_sessions(state_folder())}
        removed = prune_sessions(state_folder(), days)
    sessions = sum(name in listed for name in removed)
    journals = len(removed) - sessions
    without = f", and {counted(journals, 'journal')} of hooks that ran without a conversation"
    print(f"removed {counted(sessions, 'session')} older than {days:g} days{without if journals else ''}")


def _show(session_id: str | None) -> None:
    if not session_id:
        raise UsageError("which session? `turngate sessions show ID`; `turngate sessions` lists them")
    paths = {session["session_id"]: session["path"] for session in _read_all()}
    found = find_session(session_id, paths)
    if found and not paths[found]:
        raise UsageError(
            f"the conversation of {found} is with its program; `turngate log {found}` shows what its hooks did"
        )
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
