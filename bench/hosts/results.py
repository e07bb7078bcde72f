"""The table of results: docs/hosts-results.md."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from bench.hosts.play import Row
from bench.hosts.program import Program

HEAD = """\
# Results on the real programs

Written by `make hosts` on {date}: each program runs headless with an empty home, its model is a script on
loopback, and its hook is `turngate hook`. [Hosts](hosts.md) explains what each program can and cannot do.

"""


def page(programs: Sequence[Program], versions: Mapping[str, str], rows: Sequence[Row]) -> str:
    lines = [HEAD.format(date=time.strftime("%Y-%m-%d", time.gmtime()))]
    for program in programs:
        lines.append(f"## {program.title} {versions[program.name]}\n\n")
        lines.append("| scenario | result | seen |\n|---|---|---|\n")
        lines += [
            f"| {row.scenario} | {'pass' if row.passed else 'FAIL'} | {described(row.seen)} |\n"
            for row in rows
            if row.program == program.name
        ]
        lines.append("\n")
    return "".join(lines).rstrip("\n") + "\n"


def line(row: Row) -> str:
    """Return one line for the terminal, and what was expected and printed if it failed."""
    if row.passed:
        return f"pass  {row.program}: {row.scenario} ({described(row.seen)})"
    wrong = {key: value for key, value in row.expected.items() if row.seen.get(key) != value}
    return f"FAIL  {row.program}: {row.scenario} ({described(row.seen)}); expected {described(wrong)}\n{row.output}"


def described(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in values.items())
