"""Standard streams that may be closed, full or unable to encode a character, and colour at a terminal."""

import os
import sys


class SafeStream:
    """Wrap a text stream so that printing never raises.

    After a flush, `error` says why some output was not written, or is None. A write first flushes the stream `after`,
    so that lines appear in the order in which they were printed where both streams end up in one place.
    """

    def __init__(self, stream: object, after: "SafeStream | None" = None) -> None:
        self.stream = stream
        self.after = after
        self.error: str | None = None
        self.is_reported = False  # the command has told the user about the error
        self.reader_is_gone = False  # the error is that of a pipe without a reader

    def write(self, text: str) -> int:
        if self.after:
            self.after.flush()
        self._call("write", text.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        self._call("flush")

    @property
    def encoding(self) -> str:
        return getattr(self.stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return bool(self.stream is not None and self.stream.isatty())  # type: ignore[attr-defined]

    def fileno(self) -> int:
        return int(self.stream.fileno())  # type: ignore[attr-defined]

    def _call(self, method: str, *args: str) -> None:
        if self.stream is None:
            self.error = self.error or "it is closed"
            return
        try:
            getattr(self.stream, method)(*args)
        except (OSError, ValueError) as error:  # ValueError: I/O operation on closed file
            if self.error is None:
                self.error = getattr(error, "strerror", None) or "it is closed"
                self.reader_is_gone = isinstance(error, BrokenPipeError)
            if method == "flush":
                self._discard_buffer()

    def _discard_buffer(self) -> None:
        """Redirect the descriptor to /dev/null.

        Python flushes the buffer again at exit; a second failure there would replace our exit code.
        """
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        except (OSError, ValueError):
            self.stream = None


def stdout_error() -> str | None:
    """Flush stdout and return why some output was not written, or None."""
    sys.stdout.flush()
    return getattr(sys.stdout, "error", None)


def report_stdout_error(message: str) -> None:
    """Print in a command's own words that its output was lost; `main` then adds nothing."""
    print(message, file=sys.stderr)
    if isinstance(sys.stdout, SafeStream):
        sys.stdout.is_reported = True


# Colour. `turngate fire` loads this module anyway, and a further one would take time.

_SGR_CODES = {
    "good": "32",
    "bad": "31",
    "alert": "1;31",
    "notice": "33",
    "dim": "2",
    "bold": "1",
    "plain": "",
}


def has_colour(stream: object) -> bool:
    """Return whether a stream is a terminal that shows colour, and the user wants it: https://no-color.org."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return bool(stream is not None and stream.isatty())  # type: ignore[attr-defined]


def paint(text: str, style: str, stream: object = None) -> str:
    """Return the text in a colour if the stream (stdout) has colour."""
    code = _SGR_CODES[style]
    return f"\033[{code}m{text}\033[0m" if code and has_colour(stream or sys.stdout) else text
