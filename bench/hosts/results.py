"""The table of results: docs/hosts-results.md."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.hosts.play import Row
from bench.hosts.program import Program

HEAD = """\
# Results on the real programs

Written by `make hosts`: each program runs headless with an empty home, its model is a script on loopback, and its hook
is `turngate hook`. [Hosts](hosts.md) explains what each program can and cannot do. In the column of what was seen,
*requests* are those of the agent to its model, *subagent* those of its subagent, *stops* how many times Turngate was
asked at the event with the gate, *sent back* how many times the reason of the gate is in the last request, *code* the exit code of the program,
and *notice* where its user reads what Turngate reports.
"""


def page(before: str, programs: Sequence[Program], versions: Mapping[str, str], rows: Sequence[Row]) -> str:
    """Return the page with new sections for the programs with a version; the others stay as they are."""
    old = {part.split("\n")[0].rsplit(" ", 2)[0]: part.rstrip("\n") for part in before.split("\n## ")[1:]}
    sections = [
        section(program, versions[program.name], [row for row in rows if row.program == program.name])
        if program.name in versions
        else old.get(program.title)
        for program in programs
    ]
    return "\n## ".join([HEAD, *(f"{part}\n" for part in sections if part)])


def section(program: Program, version: str, rows: Sequence[Row]) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime())
    lines = [f"{program.title} {version} ({day})", "", "| scenario | result | seen |", "|---|---|---|"]
    lines += [
        f"| {row.scenario} | {'pass' if row.passed else 'FAIL'} | {described(row.seen)} |" for row in rows
    ]
    return "\n".join(lines)


def line(row: Row) -> str:
    """Return one line for the terminal, and what was expected and printed if it failed."""
    if row.passed:
        return f"pass  {row.program}: {row.scenario} ({described(row.seen)})"
    wrong = {key: value for key, value in row.expected.items() if row.seen.get(key) != value}
    return f"FAIL  {row.program}: {row.scenario} ({described(row.seen)}); expected {described(wrong)}\n{row.output}"


def described(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in values.items())
