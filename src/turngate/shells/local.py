"""LocalShell: run commands on this machine."""

import contextlib
import errno
import re
import shutil
from collections.abc import Mapping

from turngate.core.hooks import CommandHook
from turngate.core.reports import Exited
from turngate.ports import HookRunContext, NotStarted
from turngate.shells.process import interpreter_problem, run_process
from turngate.shells.process_slots import process_slot

# A program with a path and plain words, which a shell would pass on unchanged. `~`, globs, quotes,
# variables and `VAR=x` before the program are shell syntax.
_PLAIN_COMMAND = re.compile(r" *[\w.@%+:,-]*/[\w./@%+:,-]*(?: +[\w./@%+:,=-]+)* *", re.ASCII)

# setsid forks and returns at once when it leads its process group, as a directly started program does.
# Started by a shell, it waits.
_SETSID = re.compile(r"(?:^|[ /])setsid(?: |$)")


class LocalShell:
    """Run each command as a child process in a session of its own."""

    def slot(self, *, background: bool = False) -> contextlib.AbstractAsyncContextManager[None]:
        """Wait for a slot of this process; all LocalShells share them, as they share its file descriptors."""
        return process_slot(background=background)

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: HookRunContext
    ) -> Exited:
        async def start(*argv: str) -> Exited:
            return await run_process(argv, cwd=cwd, env=env, stdin=stdin, live=live)

        if hook.args is not None:
            argv = (hook.command, *hook.args)
            try:
                return await start(*argv)
            except NotStarted as error:
                if error.errno != errno.ENOEXEC:
                    raise
                return await start(shutil.which("bash") or "/bin/sh", *argv)  # a script without a shebang
        if hook.shell == "powershell":
            powershell = shutil.which("pwsh", path=env.get("PATH"))
            if powershell is None:
                return Exited(127, stderr='"shell" is "powershell", but pwsh is not in the PATH')
            return await start(powershell, "-NoProfile", "-NonInteractive", "-Command", hook.command)
        if hook.shell is None and _is_plain(hook.command):
            # On failure the shell below gives the reason with its own exit code (126, 127), and runs
            # a script that has no shebang line.
            words = hook.command.split()
            try:
                return await start(*words)
            except NotStarted as error:
                if error.errno == errno.ENOENT and (why := interpreter_problem(cwd, words[0])):
                    live.warnings.append(why)
        return await start(hook.shell or "/bin/sh", "-c", "--", hook.command)


def _is_plain(command: str) -> bool:
    return bool(_PLAIN_COMMAND.fullmatch(command)) and not _SETSID.search(command)
