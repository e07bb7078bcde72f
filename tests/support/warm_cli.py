"""`turngate` as a process of its own that has its libraries loaded already; to load them takes seconds each time.

A server loads them once and forks whenever a program is asked for. Each is a real process with words, folder,
environment and streams of its own, and it ends as Python ends. It is for tests that ask a model over a connection;
how the command starts is shown by tests that start it afresh.
"""

import atexit
import functools
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.paths import ROOT

LOADED = (
    "turngate.cli.commands.run",
    "turngate.models.live",
    "pydantic_ai.models.anthropic",
    "pydantic_ai.providers.anthropic",
)
SERVER = "import sys; from tests.support.warm_cli import serve; serve(int(sys.argv[1]))"


class Program:
    """What tests want of `subprocess.Popen`, with pipes for stdout and stderr."""

    def __init__(
        self, words: Sequence[str], cwd: Path | None = None, *, start_new_session: bool = False
    ) -> None:
        self.args = ["turngate", *words]
        self.returncode: int | None = None
        out, err = os.pipe(), os.pipe()
        self.stdout, self.stderr = open(out[0], encoding="utf-8"), open(err[0], encoding="utf-8")  # noqa: SIM115
        asked = {
            "words": list(words),
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ),
            "session": start_new_session,
        }
        self._keeper, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, open(os.devnull, "rb") as nothing:
            given = [nothing.fileno(), out[1], err[1], theirs.fileno()]
            socket.send_fds(_server(), [json.dumps(asked).encode()], given)
        os.close(out[1])
        os.close(err[1])
        self.pid = int(self._keeper.recv(20))

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float = 60.0) -> tuple[str, str]:
        """What is still to come of both streams, until the end."""
        with ThreadPoolExecutor(2) as readers:
            out, err = readers.submit(_rest, self.stdout), readers.submit(_rest, self.stderr)
            try:
                said = out.result(timeout), err.result(timeout)
            except TimeoutError:
                self.kill()
                raise
        self.wait(timeout)
        return said

    def _ended(self, timeout: float) -> int | None:
        """Until we have read how it ended its number is not given to another process."""
        if self.returncode is None and select.select([self._keeper], [], [], timeout)[0]:
            self.returncode = int(self._keeper.recv(20))
            self._keeper.close()
        return self.returncode


def _rest(stream: Any) -> str:
    if stream.closed:
        return ""
    with stream:
        return str(stream.read())


def run(
    words: Sequence[str], cwd: Path | None = None, timeout: float = 60.0
) -> subprocess.CompletedProcess[str]:
    program = Program(words, cwd)
    out, err = program.communicate(timeout)
    return subprocess.CompletedProcess(program.args, program.wait(timeout), out, err)


@functools.cache
def _server() -> socket.socket:
    """Where programs are asked for; it ends with whoever runs the tests."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    with theirs:
        number = theirs.fileno()
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(number)], cwd=ROOT, pass_fds=[number], stdin=subprocess.DEVNULL
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# In the server


def serve(number: int) -> None:
    """Comes back in each program, and does what it does as the last thing."""
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how a keeper ended
    asking = socket.socket(fileno=number)
    while True:
        data, streams, _, _ = socket.recv_fds(asking, 1 << 20, 4)
        if not data:
            return
        if os.fork() == 0:
            break
        for stream in streams:
            os.close(stream)
    asking.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, report = streams
    _keep(streams, socket.socket(fileno=report))
    _become(json.loads(data), streams)


def _keep(streams: Sequence[int], report: socket.socket) -> None:
    """The parent of a program: says its number and how it ended. Only the program comes back."""
    pid = os.fork()
    if pid == 0:
        report.close()
        return
    for stream in streams:
        os.close(stream)
    report.send(b"%d" % pid)
    ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    code = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
    report.send(b"%d" % code)
    report.recv(1)  # until it was read
    os._exit(0)


def _become(asked: dict[str, Any], streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if asked["session"]:
        os.setsid()
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["turngate", *asked["words"]]
    sys.path[0] = asked["cwd"]
    runpy.run_module("turngate", run_name="__main__", alter_sys=True)
