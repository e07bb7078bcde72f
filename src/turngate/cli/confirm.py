"""A question to the person at the terminal."""

import contextlib
import sys
import termios


def can_ask() -> bool:
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())


def confirm(question: str) -> bool:
    """Ask, and return whether the answer is yes. Ctrl-D is no."""
    with contextlib.suppress(OSError, termios.error):
        # What was typed before the question is not an answer to it.
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
    print(f"{question} [y]es, [n]o ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
