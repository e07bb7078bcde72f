"""`turngate stats`: what each gate has done, from the journals of all sessions."""

import argparse
import json
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turngate.cli.arguments import EXIT_CODES_OF_OUTPUT, LISTED_PROJECT_HINT, Parser, add_json_option
from turngate.cli.console.conversation_text import counted, format_dollars, format_table
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.project import project_folder, recorded_project
from turngate.core.text import one_line, strip_controls, truncate
from turngate.errors import UsageError
from turngate.history.journals import journal_folders, read_journal
from turngate.history.stats import Days, Row, count_days, merge_days
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.paths import state_folder

TIME_HELP = "a number of hours, days or weeks, such as 12h (default: 30d)"
SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
MAX_GATE_CHARS = 40
MAX_WEEKS = 12  # in the plot
BARS = " ▁▂▃▄▅▆▇█"


def declare(parser: Parser) -> None:
    parser.description = """\
Show what the gates of this project did at the stops of agents, in all sessions of `turngate run` and of
other agent programs: how often each ran, passed and blocked, how long it took, and what its models cost. No
gate is run.

Columns: WOULD BLOCK counts blocks in the mode "observe"; KEPT, passes because the agent overrode the gate
with `turngate: keep`; NOT ENFORCED, runs that failed, timed out, waited or were skipped; OVERRIDDEN, turns that ended
although the gate blocked; WRONG, blocks that you marked with `turngate log --wrong`. The bars show
blocks per week, up to now. A column without numbers is left out."""
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
    add("--since", metavar="TIME", default="30d", help=TIME_HELP)
    add("--project", metavar="DIR", help="the project: a folder, or ssh://… as `turngate sessions` lists it")
    add("--all", action="store_true", help="all projects")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.all and options.project:
        raise UsageError("--all and --project cannot be used together")
    since = time.time() - seconds_of(options.since)
    here = recorded_project if options.project else project_folder
    project = None if options.all else here(options.project)
    counts = list[tuple[Days, int]]()
    with show_if_slow("reading the journals"), os_errors_as_usage_errors(state_folder()):
        for folder in journal_folders(state_folder()):
            journal = read_journal(folder, since)
            records = (each for each in journal.records if project in (None, each.get("project")))
            counts.append((count_days(records), journal.damaged))
        stats = merge_days([days for days, _ in counts], sum(damaged for _, damaged in counts))
    rows = stats["gates"]
    if unknown := [name for name in options.gates if name not in {row["gate"] for row in rows}]:
        known = ", ".join(row["gate"] for row in rows) or "none"
        raise UsageError(f"no gate {unknown[0]} ran in this time; those that did: {known}")
    stats["gates"] = shown = [row for row in rows if not options.gates or row["gate"] in options.gates]
    where = "" if project is None else f" in {strip_controls(project)}"
    if options.json:
        print(json.dumps({"project": project, **stats}, indent=2))
        return 0
    if stats["stops"]:
        cells = [(heading, [show(row[key]) for row in shown]) for heading, key, show in COLUMNS]
        table = format_table([column for column in cells if any(column[1])]) if shown else ()
        print("\n".join((_summary(stats, where), *([""] if shown else []), *table)))
    else:
        print(
            f"no agent has stopped{where} in the last {options.since}; `turngate doctor` says whether one would be checked"
        )
    if stats["damaged"]:
        print(f"! {counted(stats['damaged'], 'line')} of the journals could not be read", file=sys.stderr)
    return 0


def seconds_of(given: str) -> float:
    """Return the seconds of `--since`."""
    found = re.fullmatch(r"(\d{1,6})([hdw])", given)
    if not found:
        raise UsageError(
            f"--since {given}: expected a number of hours, days or weeks, such as 12h, 30d or 4w"
        )
    return int(found[1]) * SECONDS[found[2]]


# The text


def _summary(stats: Row, where: str) -> str:
    days = f", {stats['first']} to {stats['last']}"
    line = f"{counted(stats['stops'], 'stop')}{where} in {counted(stats['sessions'], 'session')}{days}: {stats['blocked']} blocked"
    if stats["overridden"]:
        line += f", {counted(stats['overridden'], 'turn')} ended although a gate blocked"
    if stats["cached"]:
        line += f", {100 * stats['cached'] / stats['stops']:.0f}% answered from the cache"
    return paint(line, "bold")


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
    ("GATE", "gate", lambda gate: truncate(one_line(strip_controls(gate)), MAX_GATE_CHARS)),
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
