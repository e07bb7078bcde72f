"""Starts `turngate`, or another module, as a process that has its libraries loaded already; loading takes seconds.

A server loads them once and forks for each program. Each program is a real process with its own arguments, folder,
environment, streams and ignored signals, and it ends as Python ends. Tests of the start of the command, and of what it
loads, start `tests.support.cli.TURNGATE` themselves.
"""

import atexit
import contextlib
import fcntl
import functools
import gc
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import turngate
from tests.support.paths import ROOT
from tests.support.timeouts import HANG_TIMEOUT_S, LIMITS_OF_DEAD_CONNECTIONS

# All of turngate but what needs a large library for a few tests.
LOADED = ("tests.support.crash.random_kills", "tests.support.crash.scenes")
FRAMEWORKS = ("claude_agent_sdk", "langchain", "openai_agents", "pydantic_ai", "strands")
NOT_LOADED = (
    *("turngate.__main__", "turngate.adapters.", "turngate.models.pydantic_ai"),
    *(f"turngate.{name}" for name in FRAMEWORKS),
)
MAX_PIPE_CHARS = 10_000  # a pipe holds 64 KiB
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
SERVER = "import sys; from tests.support.warm_cli import serve; serve(int(sys.argv[1]), sys.argv[2:])"


class Process:
    """A program that the server started; the part of `subprocess.Popen` that tests use, without streams."""

    def __init__(self, words: Sequence[str], cwd: Path | None, streams: Sequence[int], **more: Any) -> None:
        self.args = ["turngate", *words]
        self.returncode: int | None = None
        request = {
            "words": list(words),
            "cwd": str(cwd or Path.cwd()),
            "env": dict(os.environ),
            "ignored": [number for number in SIGNALS if signal.getsignal(number) is signal.SIG_IGN],
            **more,
        }
        self._keeper, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(_server(), [json.dumps(request).encode()], [*streams, theirs.fileno()])
        self.pid = int(self._keeper.recv(20))

    def poll(self) -> int | None:
        return self._ended(0)

    def wait(self, timeout: float = HANG_TIMEOUT_S) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def _ended(self, timeout: float) -> int | None:
        """Return the exit code, or None. The pid is not reused before the code has been read."""
        if self.returncode is None and select.select([self._keeper], [], [], timeout)[0]:
            self.returncode = int(self._keeper.recv(20))
            self._keeper.close()
        return self.returncode


class Program(Process):
    """A program with pipes for stdout and stderr."""

    def __init__(
        self,
        words: Sequence[str],
        cwd: Path | None = None,
        *,
        stdin: str = "",
        start_new_session: bool = False,
        module: str = "turngate",
    ) -> None:
        out, err = os.pipe(), os.pipe()
        self.stdout, self.stderr = open(out[0], encoding="utf-8"), open(err[0], encoding="utf-8")  # noqa: SIM115
        with _readable(stdin) as given:
            streams = [given.fileno(), out[1], err[1]]
            super().__init__(words, cwd, streams, session=start_new_session, module=module)
        os.close(out[1])
        os.close(err[1])

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


def _readable(text: str) -> BinaryIO:
    """Return a pipe that holds a text, a file for one that is too long for a pipe, or /dev/null without one."""
    if not text:
        return open(os.devnull, "rb")
    if len(text) > MAX_PIPE_CHARS:
        file = tempfile.TemporaryFile()  # noqa: SIM115
        file.write(text.encode())
        file.seek(0)
        return file
    read, write = os.pipe()
    with open(write, "w", encoding="utf-8") as pipe:
        pipe.write(text)
    return open(read, "rb")


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
    """Start a server. It ends with this process."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    with theirs:
        number = theirs.fileno()
        process = subprocess.Popen(
            [sys.executable, "-c", SERVER, str(number), *LOADED],
            cwd=ROOT,
            pass_fds=[number],
            stdin=subprocess.DEVNULL,
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours


# The server process


def serve(number: int, names: Sequence[str]) -> None:
    """Fork for each request; return only in the forked program, when it ends."""
    for name in [*names, *_own_modules()]:
        import_module(name)
    for name, limit in LIMITS_OF_DEAD_CONNECTIONS:
        setattr(import_module(name), limit, HANG_TIMEOUT_S)
    gc.collect()
    gc.freeze()
    requests = socket.socket(fileno=number)
    while True:
        data, streams, _, _ = socket.recv_fds(requests, 1 << 20, 4)
        _reap_keepers()
        if not data:
            return
        if os.fork() == 0:
            break
        for stream in streams:
            os.close(stream)
    requests.close()
    *streams, report = streams
    _keep(streams, socket.socket(fileno=report))
    _become(json.loads(data), streams)


def _own_modules() -> list[str]:
    """Return the modules that the command loads when it needs them, which takes longer than most of its work."""
    names = [module.name for module in pkgutil.walk_packages(turngate.__path__, "turngate.")]
    return [name for name in names if not name.startswith(NOT_LOADED)]


def _reap_keepers() -> None:
    """Collect the keepers that have ended, so that the CPU time of the programs is counted as ours."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


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
    os.waitpid(pid, 0)
    os._exit(0)


def _become(request: dict[str, Any], streams: Sequence[int]) -> None:
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    if request.get("session") or request.get("terminal"):
        os.setsid()
    if request.get("terminal"):  # it becomes the one that controls the program, as in a real window
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    for number in request["ignored"]:
        signal.signal(number, signal.SIG_IGN)
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    tempfile.tempdir = None
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["turngate", *request["words"]]
    sys.path[0] = request["cwd"]
    runpy.run_module(request.get("module", "turngate"), run_name="__main__", alter_sys=True)
