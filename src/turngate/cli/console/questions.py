"""What a person is asked at the terminal, and a prompt from stdin."""

import argparse
import contextlib
import os
import select
import sys
import termios
import tty

from turngate.cli.console.streams import paint
from turngate.errors import UsageError


def can_ask() -> bool:
    return bool(sys.stdin and sys.stdin.isatty() and sys.stdout.isatty())


LINE_TIMEOUT_S = 1.0


def has_answer() -> bool:
    """Return whether stdin is not a terminal and has an answer, as in `echo y | …`."""
    if sys.stdin is None or sys.stdin.isatty():
        return False
    try:
        is_ready = select.select([sys.stdin], [], [], LINE_TIMEOUT_S)[0]
        return bool(is_ready and sys.stdin.buffer.peek(1))  # type: ignore[union-attr] # it is buffered
    except (OSError, ValueError):
        return False


def confirm(question: str) -> bool:
    """Ask, and return whether the answer is yes: one key, or a line of a stdin that is not a terminal."""
    if not sys.stdin.isatty():
        print(f"{question} [y]es, [n]o ", flush=True)
        return sys.stdin.readline().strip().lower() in ("y", "yes")
    before = termios.tcgetattr(0)
    tty.setcbreak(0, termios.TCSAFLUSH)  # what was typed before is not an answer
    try:
        print(paint(f"{question} [y]es, [n]o ", "bold"), end="", flush=True)
        # Enter, Escape, Ctrl-D and the end of the input are no; other keys are no answer.
        while (key := os.read(0, 1)) not in b"yYnN\r\n\x1b\x04":
            pass
        answer = key in (b"y", b"Y")
    finally:
        termios.tcsetattr(0, termios.TCSAFLUSH, before)
    print("yes" if answer else "no")
    return answer


def may_write(question: str, options: argparse.Namespace) -> bool:
    """Return whether to write what was printed: `--dry-run` and `--yes` answer, or a person does."""
    if options.dry_run:
        print("nothing was written (--dry-run)")
        return False
    if options.yes:
        return True
    if not can_ask() and not has_answer():
        raise UsageError("there is no terminal to ask at; add --yes to write what is printed above")
    if confirm(question):
        return True
    print("nothing was written")
    return False


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
