"""What `turngate gate` and `turngate hook` have in common: agent programs read their exit code and their output.

2 is only ever a block, and everything that goes wrong here is exit code 1 with an empty stdout.
"""

import os
import sys
from _collections_abc import Callable  # `collections.abc` loads all of `collections`

from turngate.cli.console.streams import report_stdout_error, stdout_error
from turngate.errors import UsageError

EXIT_NOT_PASSED = 1


def run_hook_command(name: str, run: Callable[[list[str]], int], words: list[str]) -> int:
    """Run a command that an agent program has started; `name` is for messages."""
    try:
        return run(words) or _report_lost_answer(name)
    except UsageError as error:
        print(f"{name}: {error}; see `{name} --help`", file=sys.stderr)
    except Exception as error:
        if os.environ.get("TURNGATE_DEBUG"):
            raise
        message = " ".join(f"{type(error).__name__}: {error}".split())
        print(
            f"{name}: internal error: {message}; set TURNGATE_DEBUG=1 for the traceback",
            file=sys.stderr,
        )
    return EXIT_NOT_PASSED


def _report_lost_answer(name: str) -> int:
    """Return 1 if the answer could not be written, else 0."""
    error = stdout_error()
    if error:
        report_stdout_error(f"{name}: the answer could not be written to stdout ({error})")
    return EXIT_NOT_PASSED if error else 0
