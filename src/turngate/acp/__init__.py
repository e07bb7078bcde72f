"""The proxy between an editor and an agent that speak the Agent Client Protocol (ACP)."""

import sys


def say(text: str) -> None:
    """Print a line to stderr, which editors keep as the log of the agent."""
    print(f"turngate acp: {text}", file=sys.stderr, flush=True)
