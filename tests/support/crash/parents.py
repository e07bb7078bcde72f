"""Describes a parent session with its subagents, and the files that its workers write."""

import os
from dataclasses import dataclass

from turngate.core.conversation.subagent_run import SubagentRun
from turngate.subagents.registry import Registry


@dataclass(frozen=True)
class ParentSpec:
    """A parent session. Parents that share a folder share the registry and recover each other's runs."""

    folder: str
    session: str
    subagents: int
    command_gate: bool = False  # the gate is a command hook instead of a plugin handler
    foreground_every: int = 0  # every n-th subagent is a tool call that the parent waits for
    log_plugins: bool = False  # calls of plugin handlers are logged
    failing_announcer: bool = False

    def create(self) -> "ParentSpec":
        """Create the project folder."""
        os.makedirs(self.project, exist_ok=True)
        return self

    @property
    def project(self) -> str:
        return os.path.join(self.folder, "project")

    @property
    def state(self) -> str:
        return os.path.join(self.folder, "state")

    @property
    def labels(self) -> list[str]:
        return [f"{self.session}-{number}" for number in range(self.subagents)]

    @property
    def foreground_labels(self) -> list[str]:
        return (
            self.labels[self.foreground_every - 1 :: self.foreground_every] if self.foreground_every else []
        )

    @property
    def plugin_log(self) -> str:
        return os.path.join(self.folder, "plugin_log")

    @property
    def request_log(self) -> str:
        return os.path.join(self.folder, "request_log")

    @property
    def recovery_log(self) -> str:
        return os.path.join(self.folder, "recovery_log")

    @property
    def death_log(self) -> str:
        return os.path.join(self.folder, "death_log")

    def read_runs(self) -> list[SubagentRun]:
        registry = Registry(self.state)
        try:
            return runs_of(registry, self)
        finally:
            registry.close()


def runs_of(registry: Registry, spec: ParentSpec) -> list[SubagentRun]:
    return registry._runs(
        "SELECT * FROM runs WHERE parent = :parent ORDER BY created, id", parent=spec.session
    )


def append_line(path: str, line: str) -> None:
    """Append with one write, so that a line of a killed process is whole or missing."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(fd, f"{line}\n".encode())
    os.close(fd)


def read_lines(path: str) -> list[str]:
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()
