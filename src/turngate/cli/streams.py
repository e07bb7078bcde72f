"""Standard streams that may be closed, full or unable to encode a character."""

import os


class SafeStream:
    """A stream that may be closed, full, gone or unable to write a letter: to print never raises.

    Whoever must know whether all of it arrived asks `lost`, after a flush.
    """

    def __init__(self, stream: object) -> None:
        self.stream = stream
        self.lost: str | None = None  # why something could not be written

    def write(self, text: str) -> int:
        self._try("write", text.encode(self.encoding, "replace").decode(self.encoding))
        return len(text)

    def flush(self) -> None:
        self._try("flush")

    @property
    def encoding(self) -> str:
        return getattr(self.stream, "encoding", None) or "utf-8"

    def isatty(self) -> bool:
        return bool(self.stream is not None and self.stream.isatty())  # type: ignore[attr-defined]

    def fileno(self) -> int:
        return int(self.stream.fileno())  # type: ignore[attr-defined]

    def _try(self, method: str, *arguments: str) -> None:
        if self.stream is None:
            self.lost = self.lost or "it is closed"
            return
        try:
            getattr(self.stream, method)(*arguments)
        except (OSError, ValueError) as error:  # ValueError: it is closed
            self.lost = self.lost or getattr(error, "strerror", None) or "it is closed"
            if method == "flush":
                self._to_nowhere()

    def _to_nowhere(self) -> None:
        """What is still in the buffer would fail again when Python ends, and take our exit code with it."""
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
        except (OSError, ValueError):
            self.stream = None
