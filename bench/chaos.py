"""`make chaos`: subagents that are redirected twice each, while their workers are killed again and again.

At the end each subagent has been announced once. None is lost, announced twice or redirected more often than asked.
`make chaos STORE=postgres`: the same with four workers on one PostgreSQL, which is killed as well,
behind a proxy that cuts their connections.
"""

import argparse
import os
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TypeVar

from tests.support.crash.cluster import SHORT_LEASE_S, SLOTS, WORKERS, ClusterTotals, run_cluster
from tests.support.crash.random_kills import FOREGROUND_EVERY, Progress, kill_at_random
from tests.support.crash.totals import Totals
from tests.support.crash.workers import REDIRECTS
from tests.support.servers.postgres import find_postgres

PROGRESS_INTERVAL_S = 1.0
MAX_PRINTED_PROBLEMS = 20


def main() -> int:
    options = parse_arguments()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory(prefix="turngate-chaos-") as folder:
        totals = KINDS[options.store](folder, options)
    print(totals, *totals.wrong[:MAX_PRINTED_PROBLEMS], sep="\n")
    if options.write:
        write_table(options.write, options.store, totals)
    return 0 if totals.is_correct else 1


def run_on_sqlite(folder: str, options: argparse.Namespace) -> Totals:
    progress = progress_printer(options.runs)
    return kill_at_random(folder, options.runs, batch=options.batch or 250, progress=progress)


def run_on_postgres(folder: str, options: argparse.Namespace) -> ClusterTotals:
    if (programs := find_postgres()) is None:
        sys.exit("PostgreSQL is not installed: `apt-get install postgresql`")
    progress = every_second(lambda totals: print(totals, flush=True))
    batch = options.batch or 50
    return run_cluster(programs, folder, options.runs, batch=batch, lease=options.lease, progress=progress)


KINDS: dict[str, Callable[[str, argparse.Namespace], Totals | ClusterTotals]] = {
    "sqlite": run_on_sqlite,
    "postgres": run_on_postgres,
}


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="number of subagents (default: %(default)s)")
    parser.add_argument("--store", choices=KINDS, default="sqlite", help="where the registry is")
    parser.add_argument(
        "--batch", type=int, help="subagents between two checks (default: 250, PostgreSQL: 50)"
    )
    parser.add_argument(
        "--lease",
        type=float,
        default=SHORT_LEASE_S,
        help="seconds; that of the product is 20 (default: %(default)s)",
    )
    parser.add_argument("--seed", type=int, help="seed of the random moments")
    parser.add_argument("--write", metavar="FILE", help="write the totals to FILE as Markdown")
    return parser.parse_args()


T = TypeVar("T")


def every_second(show: Callable[[T], None]) -> Callable[[T], None]:
    last = time.monotonic()

    def show_now_and_then(value: T) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_INTERVAL_S:
            last = time.monotonic()
            show(value)

    return show_now_and_then


def progress_printer(runs: int) -> Progress:
    started = time.monotonic()

    def print_progress(totals: Totals) -> None:
        print(
            f"{time.monotonic() - started:6.0f} s  {totals.runs:6} of {runs} runs  {totals.kills:5} kills  "
            f"lost {totals.lost}  twice {totals.twice}  wrong {len(totals.wrong)}",
            flush=True,
        )

    return every_second(print_progress)


HEADINGS = {
    "sqlite": "A file: two workers run at a time, and each is killed again and again.",
    "postgres": f"PostgreSQL: {WORKERS} workers with {SLOTS} slots are killed, or stopped for longer than the lease; the server is killed "
    "too, and all connections are cut. Workers and parents have logins with the rights of their role. A takeover lasts from a kill until no "
    "open run is the dead worker's.",
}


def write_table(path: str, store: str, totals: Totals | ClusterTotals) -> None:
    """Write the section of this store and lease; others stay."""
    counts: dict[str, object] = {**asdict(totals), "wrong": len(totals.wrong)}
    if isinstance(totals, ClusterTotals):
        counts = {**totals.counts()}
    counts["seconds"] = f"{totals.seconds:.1f}"
    rows = "\n".join(f"| {name.replace('_', ' ')} | {value} |" for name, value in counts.items())
    name = f"{store}, lease of {totals.lease:g} s" if isinstance(totals, ClusterTotals) else store
    section = (
        f"## {name}, {time.strftime('%Y-%m-%d')}\n\n"
        f"{os.cpu_count()} cores, Python {sys.version.split()[0]}. Each subagent is redirected {REDIRECTS} times; its parent waits "
        f"for one in {FOREGROUND_EVERY}. {HEADINGS[store]}\n\n| | |\n|---|---|\n{rows}\n"
    )
    before = Path(path).read_text(encoding="utf-8") if os.path.exists(path) else ""
    others = [
        each
        for each in re.findall(r"^## .*?(?=^## |\Z)", before, re.MULTILINE | re.DOTALL)
        if not each.startswith(f"## {name}, 20")
    ]
    sections = sorted(each.rstrip() + "\n" for each in (*others, section))
    Path(path).write_text("# `make chaos`\n\n" + "\n".join(reversed(sections)), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
