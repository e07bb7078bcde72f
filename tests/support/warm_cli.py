"""Starts `turngate` as a process that has its libraries loaded already; loading them takes seconds.

A server loads them once and forks for each program. Each program is a real process with its own arguments, folder,
environment and streams, and it ends as Python ends. Use it for tests that ask a model over a connection; tests of
the start of the command use `tests.support.cli`.
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
from tests.support.timeouts import HANG_TIMEOUT_S

LOADED = (
    "turngate.cli.commands.run",
    "turngate.models.live",
    "pydantic_ai.models.anthropic",
    "pydantic_ai.providers.anthropic",
)
SERVER = "import sys; from tests.support.warm_cli import serve; serve(int(sys.argv[1]))"


class Program:
    """The part of `subprocess.Popen` that tests use, with pipes for stdout and stderr."""

    def __init__(
        self, words: Sequence[str], cwd: Path | None = None, *, start_new_session: bool = False
    ) -> None:
        self.args = ["turngate", *words]
        self.returncode: int | None = None
        out, err = os.pipe(), os.pipe()
        self.stdout, self.stderr = open(out[0], encoding="utf-8"), open(err[0], encoding="utf-8")  # noqa: SIM115
        request = {
            "words": list(words),
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ),
            "session": start_new_session,
        }
        self._keeper, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs, open(os.devnull, "rb") as nothing:
            streams = [nothing.fileno(), out[1], err[1], theirs.fileno()]
            socket.send_fds(_server(), [json.dumps(request).encode()], streams)
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

    def communicate(self, timeout: float = HANG_TIMEOUT_S) -> tuple[str, str]:
        """Read the rest of both streams and wait for the end."""
        with ThreadPoolExecutor(2) as readers:
            out, err = readers.submit(_rest, self.stdout), readers.submit(_rest, self.stderr)
            try:
                output = out.result(timeout), err.result(timeout)
            except TimeoutError:
                self.kill()
                raise
        self.wait(timeout)
        return output

    def _ended(self, timeout: float) -> int | None:
        """Return the exit code, or None. The pid is not reused before the code has been read."""
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
    words: Sequence[str], cwd: Path | None = None, timeout: float = HANG_TIMEOUT_S
) -> subprocess.CompletedProcess[str]:
    program = Program(words, cwd)
    out, err = program.communicate(timeout)
    return subprocess.CompletedProcess(program.args, program.wait(timeout), out, err)


@functools.cache
def _server() -> socket.socket:
    """Start the server. It ends with this process."""
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


# The server process


def serve(number: int) -> None:
    """Fork for each request; return only in the forked program, when it ends."""
    for name in LOADED:
        import_module(name)
    gc.collect()
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the exit codes of keepers are not read
    requests = socket.socket(fileno=number)
    while True:
        data, streams, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        if not data:
            return
        if os.fork() == 0:
            break
        for stream in streams:
            os.close(stream)
    requests.close()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    *streams, report = streams
    _keep(streams, socket.socket(fileno=report))
    _become(json.loads(data), streams)


def _keep(streams: Sequence[int], report: socket.socket) -> None:
    """Fork the program and send its pid and exit code. Returns only in the program."""
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


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if request["session"]:
        os.setsid()
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["turngate", *request["words"]]
    sys.path[0] = request["cwd"]
    runpy.run_module("turngate", run_name="__main__", alter_sys=True)
