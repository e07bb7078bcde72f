"""A prompt that is given as `-`."""

import sys

from turngate.errors import UsageError


def read_prompt_from_stdin() -> str:
    try:
        sys.stdin.reconfigure(errors="replace")  # type: ignore[union-attr]
        return sys.stdin.read()
    except (AttributeError, OSError):  # there is none, or none to read from
        raise UsageError(
            "- reads the prompt from stdin, which is closed; give the prompt as an argument"
        ) from None
