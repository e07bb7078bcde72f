"""Read a prompt from standard input."""

import sys

from turngate.errors import UsageError


def read_prompt_from_stdin() -> str:
    """Read the whole of stdin; bytes that are not valid text are replaced."""
    try:
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        return sys.stdin.read()
    except (AttributeError, OSError):  # stdin is closed or not readable
        raise UsageError(
            "- reads the prompt from stdin, which is closed; give the prompt as an argument"
        ) from None
