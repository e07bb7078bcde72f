"""`turngate log --blocks`, `--open`, `--wrong` and `--right`: the blocks of a project, and what a person says of them."""

import argparse
import json
from collections.abc import Iterator
from typing import Any

from turngate.cli.commands.log.format import lines_with_words
from turngate.cli.console.conversation_text import format_time
from turngate.cli.console.streams import paint
from turngate.cli.project import recorded_project
from turngate.cli.recorded_sessions import load_history, record_in_journal
from turngate.core.text import MAX_SHOWN_LINE_CHARS, one_line, printable, quote_name, strip_controls, truncate
from turngate.errors import UsageError

MAX_SHOWN_BLOCKS = 50
Block = dict[str, Any]


def mark_block(options: argparse.Namespace) -> int:
    """Record that the block with this id was wrong, or right."""
    given, is_wrong = options.wrong or options.right or "", options.wrong is not None
    found = [block for block in _blocks(None) if given and block["id"].startswith(given)]
    if len(found) != 1:
        problem = "is the beginning of several ids" if found else "is no id of a block"
        raise UsageError(f"{given!r} {problem}; `turngate log --blocks` lists them")
    (block,) = found
    mark = {"kind": "mark", "block": block["id"], "wrong": is_wrong, "why": options.why or ""}
    record_in_journal(block["session"], block["project"], mark)
    print(f"marked as {'wrong' if is_wrong else 'right'}: {_describe(block)}")
    return 0


def list_blocks(options: argparse.Namespace) -> int:
    """List the blocks of a project, or with --open the sessions that have ended with a gate still blocking."""
    project = recorded_project(options.project)
    found = sorted((_open_sessions if options.open else _blocks)(project), key=lambda each: each["time"])
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    for each in found[-MAX_SHOWN_BLOCKS:]:
        print(_describe(each))
    if not found:
        print(f"nothing {'is open' if options.open else 'was blocked'} in {strip_controls(project)}")
    elif len(found) > MAX_SHOWN_BLOCKS:
        print(f"… {len(found) - MAX_SHOWN_BLOCKS} earlier ones: add --json")
    elif options.open:
        print(paint(f"→ turngate gates accept {found[-1]['session']} --why …", "dim"))
    return 0


def _blocks(project: str | None) -> Iterator[Block]:
    """Yield the blocks of a project, or of all."""
    history = load_history(project)
    for session in history.newest_first():
        about = {"session": session.id, "project": session.project}
        for run in (run for stop in history.stops(session.id) for run in stop.runs if run.block):
            of_run = {"gate": run.gate, "reason": run.reason, "wrong": run.wrong, "why": run.why}
            yield {"id": run.block, "time": run.begun + run.seconds, **about, **of_run}


def _open_sessions(project: str) -> Iterator[Block]:
    for session in load_history(project).newest_first():
        if stop := session.open_stop:
            about = {"session": session.id, "project": session.project, "host": session.host}
            of_stop = {"time": stop.time, "blocked_by": stop.blocked_by, "title": session.title}
            yield {**about, **of_stop, "end": stop.end}


def _describe(found: Block) -> str:
    """Return the line of a block, or of a session."""
    when = format_time(found["time"])
    if "blocked_by" in found:
        title = truncate(printable(found["title"]), MAX_SHOWN_LINE_CHARS)
        names = strip_controls(", ".join(found["blocked_by"]))
        return f"{found['session']}  {when}  still blocked by {names}  {title}".rstrip()
    mark = {None: "", True: paint("wrong  ", "notice"), False: paint("right  ", "dim")}[found["wrong"]]
    lines = lines_with_words(strip_controls(found["reason"]))
    reason = " … ".join(one_line(line) for line in dict.fromkeys([*lines[:1], *lines[-1:]]))
    gate = quote_name(strip_controls(found["gate"]))
    return f"{found['id']}  {when}  {mark}{gate}  {truncate(reason, MAX_SHOWN_LINE_CHARS)}"
