"""`turngate workers`: list the workers that are running."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from turngate.cli.arguments import EXIT_ERRORS, Parser, add_json_option
from turngate.core.text import printable, truncate

NO_WORKERS = "no worker is running; start one with `turngate worker`"
_WIDTHS = {"WORKER": 8, "HOST": 16, "VERSION": 8, "SLOTS": 5, "BEAT": 10}


def declare(parser: Parser) -> None:
    parser.description = """\
List the workers of the PostgreSQL registry, each with its machine, its version, how many subagents it runs at
once, when it was last seen alive, and what it offers: its project and its labels."""
    parser.epilog = f"""\
Examples:
  turngate workers           the workers that are alive
  turngate workers --json    the same for a program

Exit codes:
  0   printed
  64  wrong usage, or the registry cannot be used
  {EXIT_ERRORS}"""
    add_json_option(parser, "one JSON list")


def run(options: argparse.Namespace) -> int:
    from turngate.cli.commands.runs.summary import open_registry  # noqa: PLC0415 # lazy: not for --help

    with open_registry() as registry:
        workers = [_as_json(each) for each in registry.workers()] if registry else []
    if options.json:
        print(json.dumps(workers, indent=2))
    elif not workers:
        print(NO_WORKERS)
    else:
        print(_row([*_WIDTHS], "OFFERS"))
        for each in workers:
            texts = [each["worker"][:8], each["host"], each["version"], str(each["slots"])]
            print(_row([*texts, f"{each['beat_seconds']:.1f} s ago"], ", ".join(each["labels"])))
    return 0


def _row(cells: list[str], last: str) -> str:
    texts = [
        f"{truncate(printable(cell), width):<{width}}"
        for cell, width in zip(cells, _WIDTHS.values(), strict=True)
    ]
    return "  ".join([*texts, printable(last)])


def _as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    fixed = {name: row[name] for name in ("host", "version", "slots")}
    beat = round(row["beat"], 1)
    return {"worker": row["id"], **fixed, "beat_seconds": beat, "labels": json.loads(row["labels"])}
