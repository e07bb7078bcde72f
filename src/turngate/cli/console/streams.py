"""Standard streams: printing never raises, and no foreign text commands the terminal. Color at a terminal."""

import io
import os
import sys

# Encloses the sequences that Turngate itself prints. It is random, so no foreign text contains it.
_OWN_MARK = f"\x1b{os.urandom(8).hex()}\x1b"


class SafeStream:
    """Wrap a text stream so that printing never raises and no text commands the terminal.

    All output of the command line passes `write`. It removes control characters and marks that reverse the order of
    characters from everything except the sequences of `own_sequence`. JSON has them as escapes.

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
        self.write_raw(_clean(text))
        return len(text)

    def write_raw(self, text: str) -> None:
        if self.after:
            self.after.flush()
        self._call("write", text.encode(self.encoding, "replace").decode(self.encoding))

    def flush(self) -> None:
        self._call("flush")

    @property
    def encoding(self) -> str:
        return getattr(self.stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return bool(self.stream is not None and self.stream.isatty())  # type: ignore[attr-defined]

    def fileno(self) -> int:
        if self.stream is None:
            raise io.UnsupportedOperation("it is closed")  # what argparse expects since Python 3.14
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


class RawStream:
    """A SafeStream for a program that draws a screen: it writes control characters, and cleans texts itself."""

    def __init__(self, stream: object) -> None:
        self._stream = stream
        self.write = getattr(stream, "write_raw", None) or stream.write  # type: ignore[attr-defined]

    def __getattr__(self, name: str) -> object:
        return getattr(self._stream, name)


def own_sequence(text: str, stream: object) -> str:
    """Return a control sequence in the form in which the stream lets it pass."""
    return f"{_OWN_MARK}{text}{_OWN_MARK}" if isinstance(stream, SafeStream) else text


def _clean(text: str) -> str:
    if text.isprintable() or text.replace("\n", "").isprintable():
        return text
    from turngate.core.text import strip_controls  # noqa: PLC0415 # lazy: a fire without hooks does not load typing

    parts = text.split(_OWN_MARK)
    return "".join(part if index % 2 else strip_controls(part) for index, part in enumerate(parts))


def stdout_error() -> str | None:
    """Flush stdout and return why some output was not written, or None."""
    sys.stdout.flush()
    return getattr(sys.stdout, "error", None)


def report_stdout_error(message: str) -> None:
    """Print in a command's own words that its output was lost; `main` then adds nothing."""
    print(message, file=sys.stderr)
    if isinstance(sys.stdout, SafeStream):
        sys.stdout.is_reported = True


# Color. `turngate fire` loads this module anyway, and a further one would take time.

SGR_CODES = {"good": "32", "bad": "31", "alert": "1;31", "notice": "33"}
SGR_CODES |= {"dim": "2", "bold": "1", "user": "1", "plain": ""}


def has_color(stream: object) -> bool:
    """Return whether a stream is a terminal that shows color, and the user wants it: https://no-color.org."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb":
        return False
    return bool(stream is not None and stream.isatty())  # type: ignore[attr-defined]


def paint(text: str, style: str, stream: object = None) -> str:
    """Return the text in a color if the stream (stdout) has color."""
    code, stream = SGR_CODES[style], stream or sys.stdout
    return with_code(text, code, stream) if has_color(stream) else text


def with_code(text: str, code: str, stream: object) -> str:
    """Return the text with the parameters of an SGR sequence; none leave it as it is."""
    return own_sequence(f"\033[{code}m", stream) + text + own_sequence("\033[0m", stream) if code else text
