"""`turngate workers`: list the workers that are running."""

import argparse
import json
from collections.abc import Mapping
from typing import Any

from turngate.cli.arguments import EXIT_ERRORS, Parser, add_json_option
from turngate.core.text import printable, truncate

NO_WORKERS = "no worker is running; start one with `turngate worker`"
MAX_HOST_CHARS = 24


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
    # lazy: not for --help
    from turngate.cli.commands.runs.summary import open_registry  # noqa: PLC0415
    from turngate.cli.console.conversation_text import format_table  # noqa: PLC0415

    with open_registry() as registry:
        workers = [_as_json(each) for each in registry.workers()] if registry else []
    if options.json:
        print(json.dumps(workers, indent=2))
    elif not workers:
        print(NO_WORKERS)
    else:
        columns = {
            "WORKER": [each["worker"][:8] for each in workers],
            "HOST": [truncate(printable(each["host"]), MAX_HOST_CHARS) for each in workers],
            "VERSION": [printable(each["version"]) for each in workers],
            "SLOTS": [str(each["slots"]) for each in workers],
            "BEAT": [f"{each['beat_seconds']:.1f} s ago" for each in workers],
            "OFFERS": [printable(", ".join(each["labels"])) for each in workers],
        }
        print("\n".join(format_table([*columns.items()], left=len(columns))))
    return 0


def _as_json(row: Mapping[str, Any]) -> dict[str, Any]:
    fixed = {name: row[name] for name in ("host", "version", "slots")}
    beat = round(row["beat"], 1)
    return {"worker": row["id"], **fixed, "beat_seconds": beat, "labels": json.loads(row["labels"])}
