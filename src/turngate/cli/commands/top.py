"""`turngate top`: sessions whose agents have just stopped, and gates that run, once a second."""

import argparse
import asyncio
import json
import shutil
import sys
import time
from collections.abc import Iterator
from typing import Any

from turngate.cli.arguments import EXIT_CODES_OF_OUTPUT, Parser, add_json_option
from turngate.cli.console.conversation_text import counted, flat, format_limit, format_time
from turngate.cli.console.questions import can_ask
from turngate.cli.console.signals import run_until_signal
from turngate.cli.console.streams import own_sequence, paint
from turngate.core.text import truncate
from turngate.history.sessions import History
from turngate.history.stats import date_of, merge_days
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.paths import state_folder

DAY_S = 86_400  # what is older is not read
RECENT_S = 900  # a session is shown for so long after its last stop
INTERVAL_S = 1.0
STYLES = {"blocked": "bad", "allowed": "good", "cached": "good", "running": "notice"}
OPEN, HOME, CLOSE = "\033[?1049h\033[?25l", "\033[H\033[J", "\033[?25h\033[?1049l"


def declare(parser: Parser) -> None:
    parser.description = """\
Show the sessions of all projects in which an agent has stopped in the last 15 minutes, and the gates that have run for
more than a tenth of a second. The screen is updated every second; without a terminal, everything is printed once."""
    parser.epilog = f"""\
Examples:
  turngate top           watch; Ctrl-C ends it
  turngate top --json    once, for a program

{EXIT_CODES_OF_OUTPUT}"""
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    history = History(state_folder(), since=time.time() - DAY_S)
    if options.json:
        print(json.dumps(_read(history), indent=2, default=vars))
    elif can_ask():
        run_until_signal(_watch(history))
    else:
        print("\n".join(paint(text, style) for text, style in _lines(_read(history))))
    return 0


async def _watch(history: History) -> None:
    """Show what runs once a second, on a screen of its own."""
    try:
        print(own_sequence(OPEN, sys.stdout), end="")
        while True:
            columns, rows = shutil.get_terminal_size()
            lines = [paint(truncate(text, columns), style) for text, style in _lines(_read(history))]
            print(own_sequence(HOME, sys.stdout), "\n".join(lines[: rows - 1]), sep="", end="", flush=True)
            await asyncio.sleep(INTERVAL_S)
    finally:
        print(own_sequence(CLOSE, sys.stdout), end="", flush=True)


def _read(history: History) -> dict[str, Any]:
    with os_errors_as_usage_errors(state_folder()):
        list(history.refresh())
    now, sessions = time.time(), history.newest_first()
    shown = [each for each in sessions if each.running or now - each.last < RECENT_S]
    today = merge_days([{date: each.days[date]} for each in sessions if (date := date_of(now)) in each.days])
    keys = ("id", "host", "project", "title", "last", "results", "running")
    rows = [{key: getattr(each, key) for key in keys} for each in shown]
    return {"time": now, "stops": today["stops"], "blocked": today["blocked"], "sessions": rows}


def _lines(seen: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each line with its style."""
    now, sessions = seen["time"], seen["sessions"]
    running = counted(sum(len(each["running"]) for each in sessions), "gate")
    today = f"today {counted(seen['stops'], 'stop')}, {seen['blocked']} blocked"
    yield f"{format_time(now, '%H:%M:%S')}  {running} running, {today}", "bold"
    for each in sessions:
        result = each["results"][-1] if each["results"] else ""
        age = "now" if each["running"] else f"{max(0, now - each['last']):.0f} s ago"
        about = flat(f"{each['id'][:8]:8}  {each['host']:8}  {each['project']}  {each['title']}")
        yield f"{result:12} {age:>9}  {about}", STYLES.get(result, "notice")
        for run in each["running"]:
            line = f"{now - run.begun:7.0f} s  {flat(run.gate)}{format_limit(run.limit)}"
            yield f"{'':12} {line}", "plain"
    if not sessions:
        yield "no agent has stopped in the last 15 minutes", "dim"
