"""`turngate stats`: what each gate has done, from the journals of all sessions."""

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from turngate.aio.processes import map_in_processes
from turngate.cli.arguments import EXIT_CODES_OF_OUTPUT, LISTED_PROJECT_HINT, Parser, add_json_option
from turngate.cli.console.conversation_text import counted, format_dollars, format_table
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.project import recorded_project
from turngate.core.text import printable, strip_controls, truncate
from turngate.errors import UsageError
from turngate.history.journals import journal_folders, journal_stamp
from turngate.history.stats import Row, count_journal, merge_days
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.paths import state_folder

SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
MUCH_BYTES = 20_000_000  # of journals, which are read by several processes
MAX_GATE_CHARS = 40
MAX_WEEKS = 12  # in the plot
BARS = " ▁▂▃▄▅▆▇█"


def declare(parser: Parser) -> None:
    parser.description = """\
Show what the gates of this project did at the stops of agents, in all sessions of `turngate run` and of other agent
programs: how often each ran, passed and blocked, how long it took, and what its models cost. No gate is run.

WOULD BLOCK counts blocks in the mode "observe"; KEPT, passes because the agent overrode the gate with `turngate: keep`;
NOT ENFORCED, runs that failed, timed out, waited or were skipped; OVERRIDDEN, turns that ended although the gate
blocked; WRONG, blocks that you marked with `turngate log --wrong`. A column without numbers is left out."""
    parser.epilog = f"""\
Examples:
  turngate stats                  this project, the last 30 days
  turngate stats --since 12h      since last night; also d for days, w for weeks
  turngate stats --all            all projects on this machine
  turngate stats tests lint       only these gates
  turngate stats --json           for a program, with the numbers of each week

{EXIT_CODES_OF_OUTPUT}"""
    parser.ssh_hint = LISTED_PROJECT_HINT
    add = parser.add_argument
    add("gates", nargs="*", metavar="GATE", help="only these gates or hooks, by name")
    add_since_option(parser)
    add("--project", metavar="DIR", help="the project: a folder, or ssh://… as `turngate sessions` lists it")
    add("--all", action="store_true", help="all projects")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.all and options.project:
        raise UsageError("--all and --project cannot be used together")
    since, project = since_time(options.since), None if options.all else recorded_project(options.project)
    with show_if_slow("reading the journals"), os_errors_as_usage_errors(state_folder()):
        folders = journal_folders(state_folder())
        is_much = sum(journal_stamp(folder)[1] for folder in folders) > MUCH_BYTES
        calls = [(folder, since, project) for folder in folders]
        counts = list(map_in_processes(count_journal, calls, is_much=is_much))
    stats = merge_days([days for days, _ in counts], sum(damaged for _, damaged in counts))
    known = {row["gate"]: row for row in stats["gates"]}
    if unknown := [name for name in options.gates if name not in known]:
        names = ", ".join(known) or "none"
        raise UsageError(f"no gate {unknown[0]} ran in this time; those that did: {names}")
    stats["gates"] = [row for name, row in known.items() if name in (options.gates or known)]
    if options.json:
        print(json.dumps({"project": project, **stats}, indent=2))
    else:
        print(
            "\n".join(
                _lines(stats, "" if project is None else f" in {strip_controls(project)}", options.since)
            )
        )
    if stats["damaged"] and not options.json:
        print(f"! {counted(stats['damaged'], 'line')} of the journals could not be read", file=sys.stderr)
    return 0


def _lines(stats: Row, where: str, since: str) -> Iterator[str]:
    if not (stops := stats["stops"]):
        yield f"no agent has stopped{where} in the last {since}; `turngate doctor` says whether one would be checked"
        return
    sessions, days = counted(stats["sessions"], "session"), f"{stats['first']} to {stats['last']}"
    line = f"{counted(stops, 'stop')}{where} in {sessions}, {days}: {stats['blocked']} blocked"
    if stats["overridden"]:
        line += f", {counted(stats['overridden'], 'turn')} ended although a gate blocked"
    if stats["cached"]:
        line += f", {100 * stats['cached'] / stops:.0f}% answered from the cache"
    yield paint(line, "bold")
    if stats["gates"]:
        cells = [(heading, [show(row[key]) for row in stats["gates"]]) for heading, key, show in COLUMNS]
        yield from ("", *format_table([column for column in cells if any(column[1])]))


def add_since_option(parser: Parser) -> None:
    text = "a number of hours, days or weeks, such as 12h (default: 30d)"
    parser.add_argument("--since", metavar="TIME", default="30d", help=text)


def since_time(given: str) -> float:
    """Return when the time of `--since` began."""
    found = re.fullmatch(r"(\d{1,6})([hdw])", given)
    if not found:
        raise UsageError(
            f"--since {given}: expected a number of hours, days or weeks, such as 12h, 30d or 4w"
        )
    return time.time() - int(found[1]) * SECONDS[found[2]]


def _number(value: int) -> str:
    return str(value or "")


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def _plot(weeks: Mapping[str, Mapping[str, int]]) -> str:
    """Return one bar for each week up to now; the highest is that of the week with most blocks."""
    back = range(MAX_WEEKS - 1, -1, -1)
    names = [time.strftime("%G-W%V", time.localtime(time.time() - each * SECONDS["w"])) for each in back]
    counts = [weeks.get(name, {}).get("blocked", 0) for name in names]
    highest = max(counts)
    return "".join(BARS[-(-count * (len(BARS) - 1) // highest)] for count in counts) if highest else ""


# The heading of each column, the value of a row, and what is shown of it.
COLUMNS: Sequence[tuple[str, str, Callable[[Any], str]]] = (
    ("GATE", "gate", lambda gate: truncate(printable(gate), MAX_GATE_CHARS)),
    ("RUNS", "runs", str),
    ("PASSED", "passed", str),
    ("BLOCKED", "blocked", str),
    ("WOULD BLOCK", "would_block", _number),
    ("KEPT", "kept", _number),
    ("NOT ENFORCED", "not_enforced", _number),
    ("OVERRIDDEN", "overridden", _number),
    ("WRONG", "wrong", _number),
    ("MEDIAN", "median_seconds", _duration),
    ("95 %", "p95_seconds", _duration),
    ("TOKENS", "tokens", _number),
    ("COST", "cost_usd", lambda cost: "" if cost is None else format_dollars(cost)),
    ("BLOCKED PER WEEK", "weeks", _plot),
)
