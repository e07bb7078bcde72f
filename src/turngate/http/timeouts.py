"""How long a client waits for a server."""

from typing import NamedTuple

CONNECT_S = 30.0
FIRST_BYTE_S = 600.0
SILENCE_S = 300.0


class Timeouts(NamedTuple):
    """Seconds; None: no limit."""

    connect: float | None = CONNECT_S
    first_byte: float | None = FIRST_BYTE_S  # until the server begins to answer
    silence: float | None = SILENCE_S  # between two pieces of an answer


UNLIMITED = Timeouts(None, None, None)
