"""Runs commands on this machine."""

import contextlib
import errno
import re
import shutil
from collections.abc import Mapping

from turngate.core.hooks import CommandHook
from turngate.core.reports import Exited
from turngate.ports import RunContext
from turngate.shells.process import NotStarted, run_process

_PROJECT_VARIABLES = re.compile(r"\$\{(?:CLAUDE|MUX|TURNGATE)_PROJECT_DIR\}")

# A program with a path and plain words: nothing in it means anything to a shell. `~`, globs, quotes,
# variables and `VAR=x` before the program are syntax.
_PLAIN = re.compile(r" *[\w.@%+:,-]*/[\w./@%+:,-]*(?: +[\w./@%+:,=-]+)* *", re.ASCII)

# It forks and returns at once where it leads its group, as a directly started program does and a shell's child does not.
_LEADERS = re.compile(r"(?:^|[ /])setsid(?: |$)")


class LocalShell:
    """Commands run as children of this process, each in its own session."""

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: RunContext
    ) -> Exited:
        async def start(*argv: str) -> Exited:
            return await run_process(argv, cwd=cwd, env=env, stdin=stdin, live=live)

        if hook.args is not None:
            argv = _with_project((hook.command, *hook.args), env)
            try:
                return await start(*argv)
            except NotStarted as error:
                if error.errno != errno.ENOEXEC:
                    raise
                return await start(
                    shutil.which("bash") or "/bin/sh", *argv
                )  # a script without a shebang line
        if hook.shell is None and _PLAIN.fullmatch(hook.command) and not _LEADERS.search(hook.command):
            # If it can not be started, the shell says why with its own exit code (126, 127), and runs
            # a script that has no shebang line.
            with contextlib.suppress(NotStarted):
                return await start(*hook.command.split())
        return await start(hook.shell or "/bin/sh", "-c", "--", hook.command)


def _with_project(words: tuple[str, ...], env: Mapping[str, str]) -> tuple[str, ...]:
    """Without a shell nobody expands variables; Claude Code replaces the project's folder alone."""
    project = env["TURNGATE_PROJECT_DIR"]
    return tuple(_PROJECT_VARIABLES.sub(lambda _: project, word) for word in words)
