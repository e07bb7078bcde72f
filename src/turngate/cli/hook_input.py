"""What an agent program and `turngate hook` or `turngate gate` exchange: JSON on stdin, and an exit code.

Exit code 2 is only ever a block, and everything that goes wrong here is exit code 1 with an empty stdout.
"""

import json
import os
import select
import stat
import sys
from collections.abc import Callable

from turngate.cli.console.streams import report_stdout_error, stdout_error
from turngate.cli.main import EXIT_USAGE, EndedBySignal, describe_internal_error
from turngate.core.constants import reject_constant
from turngate.errors import UsageError

EXIT_NOT_PASSED = 1
SSH_HINT = "ask the hooks of a project there with `turngate gates run --ssh` or `turngate fire --ssh`"

MAX_INPUT_BYTES = 64 * 1024 * 1024
SILENCE_S = 3.0  # of a pipe that stays open, until it counts as empty

# What there was instead of a hook's input, for a person.
SILENT = f"stdin stayed open without a complete hook input for {SILENCE_S:g} s, so it was not waited for"
TOO_LONG = f"stdin has more than {MAX_INPUT_BYTES // 2**20} MiB, so it was not read as the input of a hook"
NOT_JSON = "stdin is not the JSON object of a hook, so it was not read"


def run_hook_command(name: str, run: Callable[[list[str]], int], words: list[str]) -> int:
    """Run a command that an agent program has started; `name` is for messages."""
    try:
        code = run(words)
        if code or not (lost := stdout_error()):
            return code
        report_stdout_error(f"{name}: the answer could not be written to stdout ({lost})")
    except EndedBySignal as ended:
        print(f"{name}: {ended}", file=sys.stderr)
        return ended.code
    except UsageError as error:
        from turngate.cli.arguments import has_ssh, not_over_ssh  # noqa: PLC0415 # lazy: only for a mistake

        why = not_over_ssh(name, SSH_HINT) if has_ssh(words) else f"{error}; see `{name} --help`"
        print(f"{name}: {why}", file=sys.stderr)
    except Exception as error:
        if os.environ.get("TURNGATE_DEBUG"):
            raise
        print(f"{name}: {describe_internal_error(error)}", file=sys.stderr)
    return EXIT_NOT_PASSED


def refuse_command(name: str, variable: str) -> int:
    """Tell an agent that the events of its session come from its program alone."""
    why = f"a command of the agent has given this event of its own session ({variable} is set)"
    print(
        f"{name}: {why}; only the agent program does that, so nothing was checked or counted", file=sys.stderr
    )
    return EXIT_USAGE


def read_object_from_stdin() -> tuple[dict[str, object] | None, str | None]:
    """Return any JSON object, or None and, unless stdin is empty, why there is none."""
    data, note = _read()
    if note == TOO_LONG or not data.strip():
        return None, note
    fields = _parse(data)
    return (fields, None) if isinstance(fields, dict) else (None, note or NOT_JSON)


def _read() -> tuple[bytes, str | None]:
    """Return what stdin holds; of a pipe that stays open, what it held when it fell silent."""
    try:
        if sys.stdin is None or sys.stdin.isatty():
            return b"", None
        fd = sys.stdin.fileno()
        is_file = stat.S_ISREG(os.fstat(fd).st_mode)
    except (OSError, ValueError):  # closed
        return b"", None
    parts: list[bytes] = []
    size = 0
    while size <= MAX_INPUT_BYTES:
        if not is_file and not select.select([fd], [], [], SILENCE_S)[0]:
            data = b"".join(parts)
            return data, None if _parse(data) is not None else SILENT
        try:
            part = os.read(fd, 1 << 20)
        except OSError:  # a folder, a terminal that is gone
            break
        if not part:
            break
        parts.append(part)
        size += len(part)
        if not parts[0].removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
            break
    return b"".join(parts), TOO_LONG if size > MAX_INPUT_BYTES else None


def _parse(data: bytes) -> object:
    """Return the JSON value, or None. A control character in a text is not worth an error."""
    try:
        text = data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
        return json.loads(text, strict=False, parse_constant=reject_constant)
    except (ValueError, RecursionError):
        return None
