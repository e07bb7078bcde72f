"""`turngate sessions`: earlier conversations."""

import argparse
import json
import time

from turngate.agent.session_store import list_sessions, prune
from turngate.cli.project import project_folder
from turngate.core.messages import Reply, ToolResults, UserMessage
from turngate.core.text import one_line
from turngate.errors import UsageError
from turngate.settings.load import load_settings
from turngate.state.paths import state_folder
from turngate.transcript.reader import message_of, read_records


def run(options: argparse.Namespace) -> int:
    match options.action:
        case "show":
            return _show(options)
        case "prune":
            days = load_settings(project_folder(".")).retention_days if options.days is None else options.days
            removed = prune(state_folder(), days)
            print(f"{len(removed)} session{'s' * (len(removed) != 1)} older than {days:g} days removed")
            return 0
        case _:
            return _list(options)


def _list(options: argparse.Namespace) -> int:
    known = list_sessions(state_folder())
    if options.json:
        print(json.dumps([vars(listed) for listed in known], indent=2))
        return 0
    if not known:
        print("there are no sessions yet; `turngate run` starts one")
    for listed in known:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(listed.changed))
        print(f"{when}  {listed.session_id}  {listed.first}")
    return 0


def _show(options: argparse.Namespace) -> int:
    if not options.session:
        raise UsageError("which session? `turngate sessions show ID`; `turngate sessions` lists them")
    known = {listed.session_id: listed.path for listed in list_sessions(state_folder())}
    path = known.get(options.session, "")
    shown = False
    for record in read_records(path):
        shown = True
        match message_of(record):
            case UserMessage(text, origin):
                print(f"{'you' if origin == 'user' else origin}: {text}")
            case Reply() as reply:
                for text in reply.texts:
                    print(f"agent: {text}")
                for use in reply.tool_uses:
                    print(f"  {use.name} {one_line(json.dumps(dict(use.input), ensure_ascii=False), 200)}")
            case ToolResults(results):
                for result in results:
                    print(f"  {'failed' if result.is_error else 'ok'}: {one_line(result.content, 200)}")
            case None:
                continue
    if not shown:
        raise UsageError(f"there is no session {options.session}; `turngate sessions` lists them")
    return 0
