"""`make chaos`: subagents that are redirected twice each, while their workers are killed again and again.

At the end each subagent has been announced once. None is lost, announced twice or redirected more often than asked.
"""

import argparse
import os
import random
import sys
import tempfile
import time
from dataclasses import asdict

from tests.support.crash.random_kills import FOREGROUND_EVERY, Progress, kill_at_random
from tests.support.crash.totals import Totals
from tests.support.crash.workers import REDIRECTS

PROGRESS_INTERVAL_S = 1.0
MAX_PRINTED_PROBLEMS = 20


def main() -> int:
    options = parse_arguments()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory(prefix="turngate-chaos-") as folder:
        totals = kill_at_random(
            folder, options.runs, batch=options.batch, progress=progress_printer(options.runs)
        )
    print(totals, *totals.wrong[:MAX_PRINTED_PROBLEMS], sep="\n")
    if options.write:
        write_table(options.write, totals)
    return 0 if totals.is_correct else 1


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000, help="number of subagents (default: %(default)s)")
    parser.add_argument(
        "--batch", type=int, default=250, help="subagents between two checks (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, help="seed of the random moments")
    parser.add_argument("--write", metavar="FILE", help="write the totals to FILE as Markdown")
    return parser.parse_args()


def progress_printer(runs: int) -> Progress:
    started = last = time.monotonic()

    def print_progress(totals: Totals) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= PROGRESS_INTERVAL_S:
            last = now
            print(
                f"{now - started:6.0f} s  {totals.runs:6} of {runs} runs  {totals.kills:5} kills  "
                f"lost {totals.lost}  twice {totals.twice}  wrong {len(totals.wrong)}",
                flush=True,
            )

    return print_progress


def write_table(path: str, totals: Totals) -> None:
    counts = {**asdict(totals), "wrong": len(totals.wrong), "seconds": f"{totals.seconds:.1f}"}
    rows = "\n".join(f"| {name.replace('_', ' ')} | {value} |" for name, value in counts.items())
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f"# `make chaos` on {time.strftime('%Y-%m-%d')}\n\n"
            f"{os.cpu_count()} cores, Python {sys.version.split()[0]}. Each subagent is redirected {REDIRECTS} times; "
            f"its parent waits for one in {FOREGROUND_EVERY}. Two workers run at a time, and each is killed again and again.\n\n"
            f"| | |\n|---|---|\n{rows}\n"
        )


if __name__ == "__main__":
    sys.exit(main())
