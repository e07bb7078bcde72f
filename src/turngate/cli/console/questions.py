"""What a person is asked at the terminal, and a prompt from stdin."""

import contextlib
import sys
import termios

from turngate.errors import UsageError


def can_ask() -> bool:
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())


def confirm(question: str) -> bool:
    """Ask, and return whether the answer is yes. Ctrl-D is no."""
    discard_typed_input()
    print(f"{question} [y]es, [n]o ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def discard_typed_input() -> None:
    """Discard what was typed before a question: it is not an answer to it."""
    with contextlib.suppress(OSError, termios.error):
        termios.tcflush(0, termios.TCIFLUSH)


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
