"""The table of results: docs/reference/hosts-results.md."""

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.hosts.play import Row
from bench.hosts.program import Program
from bench.hosts.scenarios import SCENARIOS

HEAD = """\
# Results on the real programs

Written by `make hosts`. The [hosts](hosts.md) are installed from npm and run with an empty home folder, a local script plays their model,
and `turngate install` has added the line. They run headless unless a scenario says otherwise; in a terminal, they may show a notice
that they do not print here. *Requests* are those of the agent to its model.

"""
WORDS = {
    "requests": "{} requests",
    "subagent": "{} requests of the subagent",
    "stops": "Turngate asked {} times",
    "sent_back": "sent back {} times",
    "not_in_reason": "with the new failure alone: {}",
    "refused": "refused {} times",
    "own_hook": "the other hook ran {} times",
    "lost_fields": "lost fields: {}",
    "left": "processes that are left: {}",
    "doctor": "`turngate doctor` {}",
    "outside": "tried to reach {}",
    "notice": "notice: {}",
    "code": "exit code {}",
}


def page(before: str, programs: Sequence[Program], versions: Mapping[str, str], rows: Sequence[Row]) -> str:
    """Return the page with new sections for the programs with a version; the others stay as they are."""
    old = {part.split("\n")[0].rsplit(" ", 2)[0]: part.rstrip("\n") for part in before.split("\n## ")[1:]}
    sections = [
        section(program, versions[program.name], [row for row in rows if row.program == program.name])
        if program.name in versions
        else old.get(program.title)
        for program in programs
    ]
    return "\n## ".join([HEAD + explained(), *(f"{part}\n" for part in sections if part)])


def explained() -> str:
    rows = [f"| {scenario.name} | {scenario.shows} |\n" for scenario in SCENARIOS]
    return "".join(["| scenario | what has to happen |\n|---|---|\n", *rows])


def section(program: Program, version: str, rows: Sequence[Row]) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime())
    lines = [f"{program.title} {version} ({day})", "", "| scenario | result | seen |", "|---|---|---|"]
    lines += [
        f"| {row.scenario} | {'pass' if row.passed else 'FAIL'} | {described(row.compared)} |" for row in rows
    ]
    return "\n".join(lines)


def line(row: Row) -> str:
    """Return one line for the terminal, and what was expected and printed if it failed."""
    if row.passed:
        return f"pass  {row.program}: {row.scenario} ({described(row.compared)})"
    wrong = {key: value for key, value in row.expected.items() if row.seen.get(key) != value}
    seen = f"FAIL  {row.program}: {row.scenario} ({described(row.seen)})"
    return f"{seen}; expected: {described(wrong)}\n{row.output}"


def described(values: Mapping[str, Any]) -> str:
    """Say in words what was seen, in one order for all rows."""
    said = (WORDS[key].format(values[key]) for key in WORDS if key in values)
    return (
        re.sub(r"\b1 (request|time)s\b", r"1 \1", ", ".join(said))
        .replace("[]", "none")
        .replace(": True", ": yes")
        .replace(": False", ": no")
    )
