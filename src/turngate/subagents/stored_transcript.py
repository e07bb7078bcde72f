"""The transcript of a subagent on a worker, in rows of the registry: another worker continues it, and the session gets a copy."""

import os

from turngate.core.conversation.subagent_run import SubagentRun
from turngate.state.files import make_private_dir, open_regular_file
from turngate.subagents.registry import Registry
from turngate.subagents.registry.statements import Transition


class StoredTranscript:
    """`path`: the file on this machine. Its methods block, and raise RegistryError or OSError."""

    def __init__(self, registry: Registry, path: str) -> None:
        self._registry, self._path = registry, path
        self._size = 0  # of the part of the file that is stored

    def fetch(self, run: SubagentRun, *, exact: bool) -> None:
        """Let the file have what is stored. Unless it must be exact, what this machine has written after that stays."""
        stored = self._registry.read_transcript(run.chain).encode()
        self._size = len(stored)
        local = self._read(0)
        if stored and (local != stored if exact else not local.startswith(stored)):
            make_private_dir(os.path.dirname(self._path))
            with open(open_regular_file(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb") as file:
                file.write(stored)

    def transition(self, name: Transition, run: str, owner: str, **values: object) -> SubagentRun | None:
        """Write a transition, and in the same moment what the file has gained."""
        gained = self._read(self._size)
        if gained:
            values |= {"start": self._size, "part": gained.decode("utf-8", "replace")}
        changed = self._registry.transition(name, run, owner, **values)
        self._size += len(gained) if changed else 0
        return changed

    def _read(self, start: int) -> bytes:
        try:
            with open(open_regular_file(self._path, os.O_RDONLY), "rb") as file:
                file.seek(start)
                return file.read()
        except FileNotFoundError:
            return b""
