"""An empty home and project for one run of a program, and the process in it."""

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.hosts.outside import serve_outside

KILL_LIMIT_S = 60.0  # until the processes of a run have ended
INTERRUPTED_S = 5.0  # after which nothing of a gate may be left
TIME_LIMIT_S = 300.0  # of one run, on a machine with much other work


@dataclass(frozen=True)
class Room:
    """With the root removed from the front of a path, what is recorded names /home/user/project."""

    root: Path
    proxy: str = "http://127.0.0.1:9"  # lets nothing through to what is beyond loopback
    tried: Sequence[str] = ()  # what was asked of the proxy

    @property
    def home(self) -> Path:
        return self.root / "home" / "user"

    @property
    def project(self) -> Path:
        return self.home / "project"

    @property
    def bin(self) -> Path:
        """Return the folder that is first on PATH; `turngate` in it records what hooks get and answer."""
        return self.root / "bin"

    @property
    def user_program(self) -> Path:
        """Return the link to Turngate in the folder of the user, whose path `install --user` writes."""
        return self.home / ".local" / "bin" / "turngate"

    @property
    def records(self) -> Path:
        return self.root / "records"

    @property
    def own_hook_runs(self) -> Path:
        """Return the file with one line for each run of a hook that is not Turngate's."""
        return self.root / "own-hook-runs"

    def write(self, path: str, content: str | Mapping[str, Any]) -> Path:
        """Write a file below home, JSON if it is not a text."""
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content, indent=2) + "\n")
        return file


@dataclass(frozen=True)
class Ended:
    code: int | None  # None: it was killed at the time limit
    stdout: str
    stderr: str
    displayed: str = ""  # in a terminal, without blanks
    left: Sequence[str] | None = None  # the command lines of processes that are left after an interrupt


@contextlib.contextmanager
def open_room() -> Iterator[Room]:
    with (
        serve_outside() as outside,
        tempfile.TemporaryDirectory(prefix="turngate-hosts-", ignore_cleanup_errors=True) as root,
    ):
        room = Room(Path(root), outside.url, outside.tried)
        for folder in (room.project, room.bin, room.records):
            folder.mkdir(parents=True)
        run(["git", "init", "-q"], room, base_environment(room))
        try:
            yield room
        finally:
            kill_processes_of(room)


def base_environment(room: Room, *folders: Path) -> dict[str, str]:
    """Return the variables of every program: its own home, no network but loopback, these folders on PATH."""
    path = ":".join([str(room.bin), *map(str, folders), *folders_without("turngate")])
    proxies = {name: room.proxy for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")}
    local = {name: "127.0.0.1,localhost" for name in ("NO_PROXY", "no_proxy")}
    return {
        "HOME": str(room.home),
        "PATH": path,
        "SHELL": "/bin/sh",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "DO_NOT_TRACK": "1",
        **proxies,
        **local,
    }


def folders_without(program: str) -> list[str]:
    """Return the folders of PATH that do not have the program: only that of the room is to be found."""
    folders = os.environ.get("PATH", "/usr/bin:/bin").split(":")
    return [folder for folder in folders if not os.path.exists(os.path.join(folder, program))]


def run(
    words: Sequence[str],
    room: Room,
    environment: Mapping[str, str],
    limit_s: float = TIME_LIMIT_S,
    *,
    folder: Path | None = None,
    interrupt_at: Path | None = None,
) -> Ended:
    """Run it in a folder, by default the project, in a process group of its own, which is killed at the end.

    It is interrupted when the file `interrupt_at` is there.
    """
    process = subprocess.Popen(
        words,
        cwd=folder or room.project,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    left = None
    try:
        if interrupt_at:
            left = interrupt(process.pid, interrupt_at, room, time.monotonic() + limit_s)
            kill_group(process.pid)
        stdout, stderr = process.communicate(timeout=limit_s)
        return Ended(process.returncode, stdout, stderr, left=left)
    except subprocess.TimeoutExpired:
        kill_group(process.pid)
        stdout, stderr = process.communicate()
        return Ended(None, stdout, stderr)
    finally:
        kill_group(process.pid)


def interrupt(group: int, when: Path, room: Room, deadline: float) -> list[str] | None:
    """Press Ctrl-C when the file is there; return the command lines of the processes of the room some seconds later."""
    while not when.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    if not when.exists():
        return None
    os.killpg(group, signal.SIGINT)
    time.sleep(INTERRUPTED_S)
    return [content_of(process / "cmdline").decode().replace("\0", " ") for process in processes_of(room)]


def kill_group(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def kill_processes_of(room: Room) -> None:
    """Kill those that have left the process group: they are known by their home."""
    deadline = time.monotonic() + KILL_LIMIT_S
    while time.monotonic() < deadline:  # others may be started meanwhile
        found = processes_of(room)
        if not found:
            return
        for process in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process.name), signal.SIGKILL)
        time.sleep(0.05)


def processes_of(room: Room) -> list[Path]:
    home = f"HOME={room.home}".encode()
    processes = Path("/proc").glob("[0-9]*")
    return [process for process in processes if home in content_of(process / "environ").split(b"\0")]


def content_of(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError:  # the process has ended, or belongs to another user
        return b""
