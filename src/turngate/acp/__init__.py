"""The proxy between an editor and an agent that speak the Agent Client Protocol (ACP)."""

import contextlib
import sys


def say(text: str) -> None:
    log(f"turngate acp: {text}\n")


def log(text: str) -> None:
    """Write to stderr, which editors keep as the agent's log; an editor that has closed it wants none."""
    with contextlib.suppress(OSError, ValueError):
        if sys.stderr:
            sys.stderr.write(text)
            sys.stderr.flush()
