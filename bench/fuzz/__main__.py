"""`make fuzz`: random inputs, and the invariants that must hold for each of them, until the time is over.

It prints for each target how many inputs were checked, how fast, the longest CPU time of one input, and the failures,
each with the command that repeats it. It exits with 1 if there is any.
"""

import argparse
import contextlib
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Iterator, Sequence

from bench.fuzz import answers, commands, expressions, files, gates, streams, tools
from bench.fuzz.target import Result, Target, TookTooLong, run_input

TARGETS: tuple[Target, ...] = (
    *answers.TARGETS,
    *expressions.TARGETS,
    *files.TARGETS,
    *streams.TARGETS,
    *tools.TARGETS,
    *commands.TARGETS,
    *gates.TARGETS,
)
SLICE_S = 1.0  # one target after the other, so that each gets the same time
MAX_MEMORY_BYTES = 4 * 1024**3
HANG_S = 600.0  # for one input, on a machine with much other work
MAX_PRINTED_FAILURES = 5  # of one target


def main() -> int:
    options = parse_arguments()
    targets = [target for target in TARGETS if not options.only or target.name in options.only.split(",")]
    if not targets:
        print(f"--only {options.only}: expected some of {', '.join(target.name for target in TARGETS)}")
        return 2
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    signal.signal(signal.SIGALRM, raise_too_long)
    seed = random.SystemRandom().randrange(10**12) if options.seed is None else options.seed
    print(
        f"{options.seconds:g} s, seed {seed}, Python {sys.version.split()[0]}, load {os.getloadavg()[0]:.1f}",
        flush=True,
    )
    results = fuzz(targets, seed, options.seconds, options.inputs)
    return report(targets, results)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument(
        "--seconds", type=float, default=600.0, help="for all targets together (default: %(default)g)"
    )
    parser.add_argument("--only", metavar="NAMES", help="only these targets, with commas")
    parser.add_argument("--seed", type=int, help="seed of the first input; the next one is larger by 1")
    parser.add_argument("--inputs", type=int, help="at most so many inputs for each target")
    return parser.parse_args()


def fuzz(targets: Sequence[Target], seed: int, seconds: float, inputs: int | None) -> list[Result]:
    """Give each target a slice of time after the other, until the time is over."""
    results = [Result() for _ in targets]
    deadline = time.monotonic() + seconds
    is_done = False
    while not is_done:
        for target, result in zip(targets, results, strict=True):
            until = min(deadline, time.monotonic() + SLICE_S)
            while inputs is None or result.inputs < inputs:
                with timer():
                    run_input(target, seed + result.inputs, result)
                if time.monotonic() >= until:
                    break
        is_done = time.monotonic() >= deadline or all(result.inputs == inputs for result in results)
    return results


@contextlib.contextmanager
def timer() -> Iterator[None]:
    signal.setitimer(signal.ITIMER_REAL, HANG_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def raise_too_long(*_: object) -> None:
    raise TookTooLong(f"it did not end within {HANG_S:g} s")


def report(targets: Sequence[Target], results: Sequence[Result]) -> int:
    print(f"{'target':<18} {'inputs':>9} {'per CPU s':>10} {'worst':>9}  failures")
    for target, result in zip(targets, results, strict=True):
        rate = result.inputs / result.cpu_s if result.cpu_s else 0.0
        worst = f"{result.worst_s * 1000:.0f} ms"
        print(f"{target.name:<18} {result.inputs:>9,} {rate:>10,.0f} {worst:>9}  {len(result.failures)}")
    failures = [failure for result in results for failure in result.failures[:MAX_PRINTED_FAILURES]]
    count = sum(len(result.failures) for result in results)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{sum(result.inputs for result in results):,} inputs, {count} failures, at most {peak} MiB of memory"
    )
    for failure in failures:
        print(f"\n{failure}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
