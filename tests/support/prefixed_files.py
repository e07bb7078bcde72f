"""Another machine whose files are below a folder of this one: the port `Files` without a connection."""

import os
from collections.abc import Callable, Iterable, Mapping
from io import BufferedReader
from pathlib import Path
from typing import TypeVar

from turngate.project.files import LOCAL, Files, FileVersion, LocalFiles, MachineUnreachable
from turngate.project.link_safe_files import open_file
from turngate.shells.ssh.files import Snapshot

MACHINE = "ssh://me@build"
T = TypeVar("T")


class PrefixedFiles(Files):
    """Links are followed as that machine would: an absolute one begins at `root`."""

    def __init__(self, root: Path | str, home: str, environ: Mapping[str, str] | None = None) -> None:
        self.machine, self.root, self.home = MACHINE, str(root), home
        self._links = _PrefixedLinks(str(root))
        self.environ = environ if environ is not None else {"HOME": home, "PATH": "/usr/bin:/bin"}
        self.questions: list[tuple[str, str]] = []
        self.limit: int | None = None  # after so many questions the connection is lost

    def on_this_machine(self, path: Path | str) -> Path:
        return Path(f"{self.root}{path}")

    def stat(self, path: str) -> os.stat_result:
        return self._ask(os.stat, self._follow(path), path)

    def lstat(self, path: str) -> os.stat_result:
        return self._ask(os.lstat, self._follow_folder(path), path)

    def readlink(self, path: str) -> str:
        return self._ask(os.readlink, self._follow_folder(path), path)

    def listdir(self, path: str) -> list[str]:
        return self._ask(os.listdir, self._follow(path), path)

    def scan(self, path: str) -> dict[str, os.stat_result]:
        return self._ask(LOCAL.scan, self._follow(path), path)

    def is_executable(self, path: str) -> bool:
        return self._ask(lambda real: os.access(real, os.X_OK), self._follow(path), path, "is_executable")

    def read(self, path: str, max_bytes: int) -> bytes:
        def read_part(real: str) -> bytes:
            with open(real, "rb") as file:
                return file.read(max_bytes)

        return self._ask(read_part, self._follow(path), path, "read")

    def resolve(self, path: str) -> str:
        return self._ask(self._links.resolve, path, path)

    def open(self, path: str) -> tuple[BufferedReader, FileVersion]:
        return self._ask(open_file, self._follow(path), path)

    def snapshot(self, places: Iterable[str] = ()) -> Files:  # noqa: ARG002 - each file is asked for
        return Snapshot(self, {})

    def _ask(self, function: Callable[[str], T], real: str, path: str, name: str | None = None) -> T:
        assert path.startswith("/"), f"{path} is not a path of any machine"
        if self.limit is not None and len(self.questions) >= self.limit:
            raise MachineUnreachable("the connection to build was lost")
        self.questions.append((name or function.__name__, path))
        return function(real)

    def _follow(self, path: str) -> str:
        return self.root + self._links.resolve(path)

    def _follow_folder(self, path: str) -> str:
        folder, name = os.path.split(path.rstrip("/"))
        return os.path.join(self._follow(folder or "/"), name)


class _PrefixedLinks(LocalFiles):
    def __init__(self, root: str) -> None:
        self._root = root

    def readlink(self, path: str) -> str:
        return os.readlink(self._root + path)
