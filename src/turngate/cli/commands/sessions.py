"""`turngate sessions`: list, show and remove earlier conversations."""

import argparse
import json
import time

from turngate.agent.session_store import list_sessions, prune_sessions
from turngate.cli.project import project_folder
from turngate.core.messages import Message, Reply, ToolResults, UserMessage
from turngate.core.text import one_line, truncate
from turngate.errors import UsageError
from turngate.settings.load import load_settings
from turngate.state.paths import state_folder
from turngate.transcript.reader import message_of, read_records

MAX_TOOL_CHARS = 200  # of the input and of the result of a tool


def run(options: argparse.Namespace) -> int:
    match options.action:
        case "show":
            _show(options.session)
        case "prune":
            _prune(options.days)
        case _:
            _list(as_json=options.json)
    return 0


def _list(*, as_json: bool) -> None:
    sessions = list_sessions(state_folder())
    if as_json:
        print(json.dumps([vars(session) for session in sessions], indent=2))
        return
    if not sessions:
        print("there are no sessions yet; `turngate run` starts one")
    for session in sessions:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(session.changed))
        print(f"{when}  {session.session_id}  {session.first}")


def _prune(days: float | None) -> None:
    if days is None:
        days = load_settings(project_folder(None)).retention_days
    removed = prune_sessions(state_folder(), days)
    print(f"removed {len(removed)} session{'s' * (len(removed) != 1)} older than {days:g} days")


def _show(session_id: str | None) -> None:
    if not session_id:
        raise UsageError("which session? `turngate sessions show ID`; `turngate sessions` lists them")
    paths = {session.session_id: session.path for session in list_sessions(state_folder())}
    records = list(read_records(paths.get(session_id, "")))
    if not records:
        raise UsageError(f"there is no session {session_id}; `turngate sessions` lists them")
    for record in records:
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
