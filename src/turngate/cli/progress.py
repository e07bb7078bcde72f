"""After a second people want to know what they are waiting for."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Sequence

from turngate.cli.terminal.format import clean

CLEAR = "\r\033[K"  # the line at a terminal


async def tell_progress(waited_for: Callable[[], Sequence[str]], otherwise: str = "") -> None:
    """One line on stderr, written over each second at a terminal, and else once for each wait.

    `otherwise`: what is said at a terminal while nothing is waited for.
    """
    tty = sys.stderr.isatty()
    waits, seconds, shown = False, 0, False
    try:
        while True:
            await asyncio.sleep(1)
            names = clean(", ".join(waited_for()))
            seconds = seconds + 1 if waits == bool(names) else 1
            what = f"waiting for {names}" if names else otherwise if tty else ""
            if tty and (what or shown):
                said = f"{what} … {seconds} s" if what else ""
                print(CLEAR + said[-_columns() :], end="", file=sys.stderr, flush=True)
                shown = bool(what)
            elif what and not waits:
                print(f"{what} …", file=sys.stderr, flush=True)
            waits = bool(names)
    finally:
        if shown:
            print(CLEAR, end="", file=sys.stderr, flush=True)


def _columns() -> int:
    return max(20, shutil.get_terminal_size().columns - 1)
