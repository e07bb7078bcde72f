"""A program in a terminal, as a person uses it, until a text appears there."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

from tests.support.terminal import SEQUENCES

from bench.hosts.room import Room, kill_group

ANSWERS = {b"\x1b[6n": b"\x1b[1;1R", b"\x1b[c": b"\x1b[?62c"}  # what a terminal is asked, and its answers


def watch(words: Sequence[str], room: Room, environment: Mapping[str, str], text: str, limit_s: float) -> str:
    """Return what was displayed, without blanks, as soon as the text is there, or at the time limit."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 150, 0, 0))
    process = subprocess.Popen(
        words,
        cwd=room.project,
        env={**environment, "TERM": "xterm-256color"},
        stdin=side,
        stdout=side,
        stderr=side,
        start_new_session=True,
    )
    os.close(side)
    try:
        return read_until(main, squeezed(text), time.monotonic() + limit_s)
    finally:
        kill_group(process.pid)
        process.wait()
        os.close(main)


def read_until(main: int, text: str, deadline: float) -> str:
    raw = b""
    while text not in (displayed := squeezed(SEQUENCES.sub("", raw.decode(errors="replace")))):
        ready, _, _ = select.select([main], [], [], max(0.0, deadline - time.monotonic()))
        try:
            piece = os.read(main, 65536) if ready else b""
        except OSError:  # the program has ended
            piece = b""
        if not piece:
            break
        raw += piece
        for asked, answer in ANSWERS.items():
            if asked in piece:
                os.write(main, answer)
    return displayed


def squeezed(text: str) -> str:
    """Remove blanks and frames: a program moves the cursor instead, and breaks lines anywhere."""
    return "".join(text.replace("┃", "").split())
