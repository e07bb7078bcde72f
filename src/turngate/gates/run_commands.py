"""Commands in the project of a gate, run through the Shell port: the project may be on another machine."""

import asyncio
import errno
import os
from collections.abc import Mapping
from dataclasses import replace

from turngate.core.answers.report_types import Exited, TimedOut
from turngate.core.hooks.kinds import CommandHook
from turngate.core.redaction import Redactor
from turngate.core.text import one_line
from turngate.core.verdict.decisions import Allow
from turngate.gates.git.scripts import GIT_ENVIRONMENT, GIT_OPTIONS, LOCAL_GIT_VARIABLES
from turngate.ports import ConnectionLost, HookRunContext, NotStarted, Shell
from turngate.project.safe_paths import path_outside

MAX_ERROR_CHARS = 200
NOT_FOUND = 127  # exit code of a shell that does not find a program
# In scripts names are quoted as in C: output is decoded as UTF-8, and a name may be something else.
# The repository is that of the project, also where a hook of git has set another one.
GIT_FUNCTION = f'unset {" ".join(LOCAL_GIT_VARIABLES)}\ngit() {{ command git {" ".join(GIT_OPTIONS)} -c core.quotePath=true "$@"; }}\n'


class ProjectUnreachable(Exception):
    """The machine of the project cannot be reached, or the connection was lost while a command ran; the text says why."""


class FilesUnreadable(Exception):
    """The project's files cannot be listed or read; the text says why."""


class ProjectCommands:
    """Runs commands in one project until a deadline, which all of them share; without a timeout there is none."""

    def __init__(
        self,
        shell: Shell,
        project: str,
        env: Mapping[str, str],
        timeout: float | None,
        redactor: Redactor | None = None,  # of the secrets in `env`
        *,
        limit: float | None = None,  # for messages: the configured timeout, if the one here is a part of it
        hook: HookRunContext | None = None,  # that of the gate
    ) -> None:
        self.project = project
        self.timeout = timeout
        self.limit = limit or timeout
        self.count = 0  # of those that were run
        self.is_local = getattr(shell, "is_local", False)  # any other shell may run them on another machine
        self._shell = shell
        self._env = env
        self.path = env.get("PATH", os.environ.get("PATH", os.defpath)) if self.is_local else ""
        # Scripts of our own run no program of the project.
        self.own_path = {"PATH": path_outside(self.path, project)} if self.is_local else {}
        self._redactor = redactor
        self._hook = hook
        self._deadline = None if timeout is None else asyncio.get_running_loop().time() + timeout

    @property
    def seconds_left(self) -> float:
        return float("inf") if self._deadline is None else self._deadline - asyncio.get_running_loop().time()

    async def run(
        self, hook: CommandHook, *, stdin: bytes = b"", env: Mapping[str, str] | None = None
    ) -> Exited | TimedOut:
        """Run one command of the user to its end, without secrets in its output; 127 if it cannot be started. Raises ProjectUnreachable."""
        live = HookRunContext()
        if self._hook is not None:
            self._hook.command = live
        report = await self._run(hook, stdin, env or {}, live)
        if self._redactor is None or not self._redactor.is_needed(report, Allow()):
            return report
        return replace(
            report, stdout=self._redactor.text(report.stdout), stderr=self._redactor.text(report.stderr)
        )

    async def _run(
        self, hook: CommandHook, stdin: bytes, env: Mapping[str, str], live: HookRunContext
    ) -> Exited | TimedOut:
        self.count += 1
        try:
            async with asyncio.timeout_at(self._deadline):
                env = {**self._env, **env}
                return await self._shell.run(hook, cwd=self.project, env=env, stdin=stdin, live=live)
        except ConnectionLost as error:
            raise ProjectUnreachable(str(error)) from None
        except NotStarted as error:
            if error.errno == errno.EHOSTUNREACH:  # nothing is known about the program
                raise ProjectUnreachable(str(error)) from None
            return Exited(NOT_FOUND, stderr=str(error))
        except TimeoutError:
            return TimedOut(self.limit or 0.0, live.stdout.text(), live.stderr.text())

    async def run_script(self, text: str, *arguments: str, stdin: bytes = b"") -> Exited | TimedOut:
        """Run a script of our own with the POSIX shell; data is passed only as arguments."""
        hook = CommandHook(command="/bin/sh", args=("-c", GIT_FUNCTION + text, "turngate", *arguments))
        return await self._run(hook, stdin, {**GIT_ENVIRONMENT, **self.own_path}, HookRunContext())


def describe_failure(report: Exited | TimedOut) -> str | None:
    """Return why a script has failed, or None if it has not."""
    if isinstance(report, TimedOut):
        return "its time is up"
    return None if report.code == 0 else one_line(report.stderr, MAX_ERROR_CHARS)
