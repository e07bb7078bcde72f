"""`turngate stats`: what each gate has done, from the journals of all sessions."""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from turngate.cli.arguments import EXIT_ERRORS, LISTED_PROJECT_HINT, Parser, add_json_option
from turngate.cli.console.conversation_text import counted, format_dollars
from turngate.cli.console.progress import show_if_slow
from turngate.cli.console.streams import paint
from turngate.cli.project import recorded_project
from turngate.core.text import one_line, strip_controls, truncate
from turngate.errors import UsageError
from turngate.history.journals import Record, journal_folders, read_journal
from turngate.history.stats import GateStats, Stats, collect_stats
from turngate.state.files import os_errors_as_usage_errors
from turngate.state.paths import state_folder

TIME_HELP = "a number of hours, days or weeks, such as 12h (default: 30d)"
SECONDS = {"h": 3600, "d": 86_400, "w": 7 * 86_400}
MAX_GATE_CHARS = 40
MAX_WEEKS = 12  # in the plot
BARS = " ▁▂▃▄▅▆▇█"


def declare(parser: Parser) -> None:
    parser.description = """\
Show what the gates of this project did at the stops of agents, in all sessions of `turngate run` and of other agent
programs: how often each ran, passed and blocked, how long it took, and what its models cost. Nothing is run.

Columns: WOULD BLOCK counts blocks in the mode "observe"; KEPT, passes because the agent overrode the gate
with `turngate: keep`; NOT ENFORCED, runs that failed, timed out, waited or were skipped; OVERRIDDEN, turns that ended
although the gate blocked; WRONG, blocks that you marked with `turngate log --wrong`. The bars are blocks per week, up to now. A column without numbers is left out."""
    parser.epilog = f"""\
Examples:
  turngate stats                  this project, the last 30 days
  turngate stats --since 12h      since last night; also d for days, w for weeks
  turngate stats --all            all projects on this machine
  turngate stats tests lint       only these gates
  turngate stats --json           for a program, with the numbers of each week

Exit codes:
  0   printed
  64  wrong usage
  {EXIT_ERRORS}"""
    parser.ssh_hint = LISTED_PROJECT_HINT
    add = parser.add_argument
    add("gates", nargs="*", metavar="GATE", help="only these gates or hooks, by name")
    add(
        "--since",
        metavar="TIME",
        default="30d",
        help=TIME_HELP,
    )
    add("--project", metavar="DIR", help="the project: a folder, or ssh://… as `turngate sessions` lists it")
    add("--all", action="store_true", help="all projects")
    add_json_option(parser)


def run(options: argparse.Namespace) -> int:
    if options.all and options.project:
        raise UsageError("--all and --project cannot be used together")
    since = time.time() - seconds_of(options.since)
    project = None if options.all else recorded_project(options.project) if options.project else _here()
    with show_if_slow("reading the journals"):
        stats = collect_stats(_sessions(since, project))
    shown = [gate for gate in stats.gates if not options.gates or gate.gate in options.gates]
    if unknown := [name for name in options.gates if name not in {gate.gate for gate in stats.gates}]:
        known = ", ".join(gate.gate for gate in stats.gates) or "none"
        raise UsageError(f"no gate {unknown[0]} ran in this time; those that did: {known}")
    if options.json:
        print(json.dumps(_as_json(stats, shown, project), indent=2))
        return 0
    where = "" if project is None else f" in {strip_controls(project)}"
    if stats.stops:
        print("\n".join((_summary(stats, where), *(["", *_table(shown)] if shown else []))))
    else:
        print(
            f"no agent has stopped{where} in the last {options.since}; `turngate doctor` says whether one would be checked"
        )
    if stats.damaged:
        print(f"! {counted(stats.damaged, 'line')} of the journals could not be read", file=sys.stderr)
    return 0


def seconds_of(given: str) -> float:
    """Return the seconds of `--since`."""
    found = re.fullmatch(r"(\d{1,6})([hdw])", given)
    if not found:
        raise UsageError(
            f"--since {given}: expected a number of hours, days or weeks, such as 12h, 30d or 4w"
        )
    return int(found[1]) * SECONDS[found[2]]


def _here() -> str:
    from turngate.cli.project import project_folder  # noqa: PLC0415 # lazy: not with --all

    return project_folder(None)


def _sessions(since: float, project: str | None) -> Iterator[tuple[Sequence[Record], int]]:
    with os_errors_as_usage_errors(state_folder()):
        for folder in journal_folders(state_folder()):
            journal = read_journal(folder, since)
            yield (
                [each for each in journal.records if project in (None, each.get("project"))],
                journal.damaged,
            )


def _as_json(stats: Stats, gates: Sequence[GateStats], project: str | None) -> dict[str, Any]:
    rows = [
        {**vars(gate), "weeks": {name: vars(week) for name, week in gate.weeks.items()}} for gate in gates
    ]
    return {"project": project, **vars(stats), "gates": rows}


# The text


def _summary(stats: Stats, where: str) -> str:
    days = "" if stats.first is None or stats.last is None else f", {_day(stats.first)} to {_day(stats.last)}"
    line = f"{counted(stats.stops, 'stop')}{where} in {counted(stats.sessions, 'session')}{days}: {stats.blocked} blocked"
    if stats.overridden:
        line += f", {counted(stats.overridden, 'turn')} ended although a gate blocked"
    if stats.cached:
        line += f", {100 * stats.cached / stats.stops:.0f}% answered from the cache"
    return paint(line, "bold")


def _day(when: float) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(when))


def _table(gates: Sequence[GateStats]) -> Iterator[str]:
    weeks = _last_weeks()
    plots = {gate.gate: _plot(gate, weeks) for gate in gates}
    columns: list[tuple[str, list[str]]] = [
        ("GATE", [truncate(one_line(strip_controls(gate.gate)), MAX_GATE_CHARS) for gate in gates]),
        ("RUNS", [str(gate.runs) for gate in gates]),
        ("PASSED", [str(gate.passed) for gate in gates]),
        ("BLOCKED", [str(gate.blocked) for gate in gates]),
        ("WOULD BLOCK", _numbers(gate.would_block for gate in gates)),
        ("KEPT", _numbers(gate.kept for gate in gates)),
        ("NOT ENFORCED", _numbers(gate.not_enforced for gate in gates)),
        ("OVERRIDDEN", _numbers(gate.overridden for gate in gates)),
        ("WRONG", _numbers(gate.wrong for gate in gates)),
        ("MEDIAN", [_duration(gate.median_seconds) for gate in gates]),
        ("95 %", [_duration(gate.p95_seconds) for gate in gates]),
        ("TOKENS", _numbers(gate.tokens for gate in gates)),
        ("COST", ["" if gate.cost_usd is None else format_dollars(gate.cost_usd) for gate in gates]),
        ("BLOCKED PER WEEK", [plots[gate.gate] for gate in gates]),
    ]
    columns = [(heading, cells) for heading, cells in columns if any(cell.strip() for cell in cells)]
    widths = [max(len(heading), *map(len, cells)) for heading, cells in columns]
    rows = zip(*(cells for _, cells in columns), strict=True)
    for row in ([heading for heading, _ in columns], *rows):
        first, *others = zip(row, widths, strict=True)
        yield "  ".join((f"{first[0]:<{first[1]}}", *(f"{cell:>{width}}" for cell, width in others))).rstrip()


def _numbers(values: Iterable[int]) -> list[str]:
    """Return the cells of a column that is left out if all are 0."""
    numbers = list(values)
    return [str(number) if any(numbers) else "" for number in numbers]


def _duration(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"


def _last_weeks() -> list[str]:
    now = time.time()
    return [time.strftime("%G-W%V", time.localtime(now - back * SECONDS["w"])) for back in range(MAX_WEEKS)][
        ::-1
    ]


def _plot(gate: GateStats, weeks: Sequence[str]) -> str:
    """Return one bar for each week; the highest is that of the week with most blocks."""
    counts = [gate.weeks[week].blocked if week in gate.weeks else 0 for week in weeks]
    highest = max(counts)
    return "".join(BARS[-(-count * (len(BARS) - 1) // highest)] for count in counts) if highest else ""
