"""The machines that one suite runs on: this one, and one that is reached over SSH."""

import asyncio
import os
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pytest

from tests.support.builders import settings, stop_event
from tests.support.servers.mount_namespace import NO_NAMESPACE
from tests.support.servers.ssh import HOST, SSHD, SshServer
from turngate.core.dialect import TURNGATE, Dialect
from turngate.core.hooks.kinds import Hook
from turngate.core.verdict.verdict import Verdict
from turngate.engine import ask_hooks
from turngate.ports import Shell, Store, World
from turngate.shells.local import LocalShell

T = TypeVar("T")


class Machine(Protocol):
    """Where the project of a test is, and its hooks run."""

    shell: Shell

    @property
    def environ(self) -> Mapping[str, str]:
        """What hooks inherit there."""
        ...

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        """Run a scenario to its end, in an event loop in which the shell can be used."""
        ...


class ThisMachine:
    def __init__(self) -> None:
        self.shell: Shell = LocalShell()

    @property
    def environ(self) -> Mapping[str, str]:
        return dict(os.environ)

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(scenario)


class SshMachine:
    """A machine whose connection stays open from test to test, in an event loop of its own: connecting takes 0.1 s."""

    def __init__(self) -> None:
        from turngate.shells.ssh.shell import SshShell  # noqa: PLC0415 - takes long to load

        self._ssh = SshShell(HOST)
        self.shell: Shell = self._ssh
        self.environ: Mapping[str, str] = {}
        self._runner = asyncio.Runner()
        self._workspaces: dict[str, World] = {}

    def connect(self) -> None:
        self.environ = self.environ or self.run(self._ssh.environment())

    def run(self, scenario: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(scenario)

    def workspace(self, project: Path | str) -> World:
        """Return the workspace of a project there, with its files; all sessions of a test share it."""
        path = str(project)
        if path not in self._workspaces:
            self._workspaces[path] = self.run(World.ssh(HOST, path))
        return self._workspaces[path]

    def disconnect(self) -> None:
        """Close the workspaces of a test."""
        while self._workspaces:
            self.run(self._workspaces.popitem()[1].disconnect())

    def close(self) -> None:
        self.run(self._ssh.close())
        self._runner.close()


def skip_without_sshd(machine: Machine) -> None:
    """Skip a test that the server of asyncssh fails: it closes a channel whose output a process still holds."""
    if isinstance(machine, SshMachine) and SSHD is None:
        pytest.skip("no sshd: install openssh-server")


def skip_with_shared_files(server: SshServer) -> None:
    """Skip a test that needs a server without the files of this machine."""
    if server.namespace is None:
        why = NO_NAMESPACE if SSHD else "no sshd: install openssh-server"
        pytest.skip(f"the server has the files of this machine: {why}")


def world_on(machine: Machine, project: Path | str, store: Store | None = None) -> World:
    return World(machine.shell, str(project), store, environ=machine.environ)


def workspace_on(machine: Machine, project: Path | str) -> World:
    """Return the workspace of a project. On another machine it has the files there, and copies of transcripts."""
    return machine.workspace(project) if isinstance(machine, SshMachine) else world_on(machine, project)


async def ask_on(
    machine: Machine, project: Path, *hooks: Hook | str, dialect: Dialect = TURNGATE, **fields: Any
) -> Verdict:
    """Run these hooks for one Stop, with real processes in the project's folder."""
    event = stop_event(cwd=str(project), **fields)
    return await ask_hooks(event, settings(*hooks, dialect=dialect), world_on(machine, project))
