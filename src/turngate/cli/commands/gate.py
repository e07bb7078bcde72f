"""`turngate gate`: check one ready-made gate, as a hook command or for a person.

Agent programs read its exit code, so it has rules of its own: 2 is only ever a block, and everything that goes wrong
here is exit code 1 with an empty stdout.
"""

import os
import sys

from turngate.errors import UsageError

EXIT_NOT_PASSED = 1


def run(words: list[str]) -> int:
    """Check the gate that the words after `turngate gate` name."""
    try:
        if _asks_for_help(words):
            from turngate.cli.gate_help import print_help  # noqa: PLC0415 # lazy: loads all gates

            print_help(words)
            sys.exit()
        from turngate.cli.commands.gate_engine import check_gate  # noqa: PLC0415 # lazy: loads asyncio

        return check_gate(words)
    except UsageError as error:
        print(f"turngate gate: {error}; see `turngate gate --help`", file=sys.stderr)
    except Exception as error:
        if os.environ.get("TURNGATE_DEBUG"):
            raise
        print_internal_error(error)
    return EXIT_NOT_PASSED


def print_internal_error(error: object) -> None:
    message = " ".join(f"{type(error).__name__}: {error}".split())
    print(
        f"turngate gate: internal error: {message}; set TURNGATE_DEBUG=1 for the traceback", file=sys.stderr
    )


def _asks_for_help(words: list[str]) -> bool:
    own = words[: words.index("--")] if "--" in words else words
    return not words or "--help" in own or "-h" in own
