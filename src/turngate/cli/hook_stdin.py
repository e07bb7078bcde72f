"""The input of a hook on stdin: a JSON object of an agent program, or nothing. Never waits forever."""

import os
import stat
import sys

try:
    from _json import make_scanner
except ImportError:  # another implementation of Python
    from json.scanner import make_scanner

MAX_INPUT_BYTES = 64 * 1024 * 1024
SILENCE_S = 3.0  # of a pipe that stays open, until it counts as empty

# What there was instead of a hook's input, for a person.
SILENT = f"stdin stayed open without a complete hook input for {SILENCE_S:g} s, so it was not waited for"
TOO_LONG = f"stdin has more than {MAX_INPUT_BYTES // 2**20} MiB, so it was not read as the input of a hook"
NOT_JSON = "stdin is not the JSON object of a hook, so it was not read"


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
        if not is_file and not _has_data(fd):
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


def _has_data(fd: int) -> bool:
    import select  # noqa: PLC0415 # lazy: not needed for a file

    return bool(select.select([fd], [], [], SILENCE_S)[0])


def _parse(data: bytes) -> object:
    """Return the JSON value, or None. `json` loads re, which takes as long as the rest of a cached answer."""
    try:
        text = data.decode("utf-8", "replace").lstrip("\ufeff \t\r\n")
        value, end = make_scanner(_JsonOptions())(text, 0)  # type: ignore[arg-type]
    except (ValueError, RecursionError, StopIteration, SystemError):
        return (
            None  # SystemError: the scanner in C needs `json.decoder` for its own error, which is not loaded
        )
    return None if text[end:].strip() else value


def _reject_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON value")


class _JsonOptions:
    """What the scanner of `json` reads from a `json.JSONDecoder`."""

    strict = False  # a control character in a text is not worth an error
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = staticmethod(_reject_constant)
    memo: dict[str, str] = {}  # noqa: RUF012 - the scanner clears it
