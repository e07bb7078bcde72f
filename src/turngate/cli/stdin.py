"""Read a prompt from standard input."""

import sys

from turngate.errors import UsageError

MAX_PROMPT_CHARS = 10_000_000


def read_prompt_from_stdin() -> str:
    """Read the whole of stdin; bytes that are not valid text are replaced."""
    try:
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        text = sys.stdin.read(MAX_PROMPT_CHARS + 1)
    except (AttributeError, OSError):  # stdin is closed or not readable
        raise UsageError(
            "- reads the prompt from stdin, which is closed; give the prompt as an argument"
        ) from None
    if len(text) > MAX_PROMPT_CHARS:
        raise UsageError(
            f"the prompt on stdin has over {MAX_PROMPT_CHARS:,} characters; write it to a file, and name that"
        )
    return text
