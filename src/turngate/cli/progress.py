"""After a second people want to know what they are waiting for."""

import asyncio
import sys
from collections.abc import Callable, Sequence

CLEAR = "\r\033[K"  # the line at a terminal


async def tell_progress(waited_for: Callable[[], Sequence[str]], otherwise: str = "") -> None:
    """One line on stderr, written over each second at a terminal, and else once for each wait.

    `otherwise`: what is said at a terminal while nothing is waited for.
    """
    tty = sys.stderr.isatty()
    before, seconds, shown = "", 0, False
    try:
        while True:
            await asyncio.sleep(1)
            names = ", ".join(waited_for())
            what = f"waiting for {names}" if names else otherwise if tty else ""
            seconds = seconds + 1 if what == before else 1
            if tty and (what or shown):
                said = f"{what} … {seconds} s" if what else ""
                print(CLEAR + said, end="", file=sys.stderr, flush=True)
                shown = bool(what)
            elif what and what != before:
                print(f"{what} …", file=sys.stderr, flush=True)
            before = what
    finally:
        if shown:
            print(CLEAR, end="", file=sys.stderr, flush=True)
