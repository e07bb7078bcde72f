"""The command in a pseudo-terminal, as a person uses it."""

import fcntl
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Self

from tests.support.timeouts import HANG_TIMEOUT_S, POLL_INTERVAL_S
from tests.support.warm_cli import Process

ESCAPE, CTRL_C, CTRL_D, ENTER, UP = "\x1b", "\x03", "\x04", "\r", "\x1b[A"

# The terminal becomes the one that controls the command, as in a real window.
OWN_TERMINAL = """
import fcntl, os, sys, termios
os.setsid()
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.executable, [sys.executable, "-m", "turngate", *sys.argv[1:]])
"""
SEQUENCES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>]")


class Terminal:
    """The command in a pseudo-terminal whose output a thread reads."""

    def __init__(self, *command: str, cwd: Path, env: dict[str, str] | None = None) -> None:
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 150, 0, 0))
        self.before = termios.tcgetattr(self.slave)
        self.raw = b""
        self.seen = 0  # how much of the text earlier expectations have used up
        self.process = self._start(command, cwd, env or {})
        self.closed = False
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _start(
        self, command: tuple[str, ...], cwd: Path, env: dict[str, str]
    ) -> "Process | subprocess.Popen[bytes]":
        environ = {**os.environ, "TERM": "xterm-256color", **env}
        if "PYTHONPATH" not in environ:
            return Process(command, cwd, [self.slave] * 3, env=environ, terminal=True)
        return subprocess.Popen(  # with other modules than those that are loaded
            [sys.executable, "-c", OWN_TERMINAL, *command],
            stdin=self.slave,
            stdout=self.slave,
            stderr=self.slave,
            cwd=cwd,
            env=environ,
        )

    def _read(self) -> None:
        while not self.closed:
            if select.select([self.master], [], [], 0.05)[0]:
                try:
                    self.raw += os.read(self.master, 65536)
                except OSError:  # the other end is closed
                    return

    @property
    def text(self) -> str:
        """Return the output without escape sequences; columns that the cursor skips are blanks."""
        shown = self.raw.decode("utf-8", "replace")
        shown = re.sub(r"\x1b\[(\d*)C", lambda jump: " " * int(jump[1] or 1), shown)
        return SEQUENCES.sub("", shown).replace("\r", "")

    def expect(self, text: str) -> None:
        """Wait until this is shown, after everything that was expected before."""

        def found() -> bool:
            return text in self.text[self.seen :]

        wait_until(found, lambda: f"{text!r} was not printed; since the last one:\n{self.text[self.seen :]}")
        self.seen = self.text.index(text, self.seen) + len(text)

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def say(self, message: str) -> None:
        self.type(message + ENTER)

    def end(self) -> int:
        """Wait for the end of the command and check that it restored the terminal."""
        code = self.process.wait(HANG_TIMEOUT_S)
        assert termios.tcgetattr(self.slave) == self.before
        return code

    def close(self) -> None:
        """Close the terminal after its reader has ended, because the descriptor may be reused."""
        if not self.closed:
            self.closed = True
            self.reader.join()
            os.close(self.slave)
            os.close(self.master)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.close()


def wait_until(condition: Callable[[], bool], complaint: Callable[[], str]) -> None:
    deadline = time.monotonic() + HANG_TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, complaint()
        time.sleep(POLL_INTERVAL_S)


def wait_for(path: Path) -> None:
    wait_until(path.exists, lambda: f"{path} was not written")


class Tmux:
    """A command in the window of a tmux server of its own, which shows what a screen shows."""

    def __init__(self, command: str, cwd: Path, *, columns: int) -> None:
        self.folder = tempfile.mkdtemp(prefix="turngate-")  # the name of a socket must be short
        self.command = ["tmux", "-S", f"{self.folder}/socket", "-f", "/dev/null"]
        self("new-session", "-d", "-s", "talk", "-x", str(columns), "-y", "50", "-c", str(cwd), command)

    def __call__(self, *words: str) -> str:
        done = subprocess.run([*self.command, *words], capture_output=True, text=True, check=False)
        return done.stdout

    def expect(self, wanted: str) -> None:
        wait_until(lambda: wanted in self.screen, lambda: f"{wanted!r} never came:\n{self.screen}")

    @property
    def screen(self) -> str:
        return self("capture-pane", "-p", "-t", "talk")

    def say(self, message: str) -> None:
        self("send-keys", "-t", "talk", "-l", message)
        self("send-keys", "-t", "talk", "Enter")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self("kill-server")
        shutil.rmtree(self.folder)
