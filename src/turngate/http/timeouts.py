"""How long a client waits for a server."""

from typing import NamedTuple

FIRST_BYTE_S = 600.0
SILENCE_S = 300.0


class Timeouts(NamedTuple):
    """Seconds."""

    first_byte: float = FIRST_BYTE_S  # until the server begins to answer
    silence: float = SILENCE_S  # between two pieces of an answer
