"""LocalShell: run commands on this machine.

Limit how many commands run at once, because each one holds file descriptors of this process.
"""

import asyncio
import contextlib
import errno
import os
import re
import resource
from collections.abc import Mapping
from weakref import WeakKeyDictionary

from turngate.core.answers.report_types import Exited
from turngate.core.hooks.kinds import CommandHook
from turngate.ports import HookRunContext, NotStarted
from turngate.shells.process import interpreter_problem, run_process

FDS_PER_PROCESS = 5  # three pipes, a pidfd, and a share of what starting a process needs
RESERVED_FDS = 128  # for everything else in this process
MIN_SLOTS = 4
MAX_SLOTS = 4096


# For each loop the pool of foreground hooks and that of background hooks, which never delay the others.
_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[asyncio.Semaphore, asyncio.Semaphore]]
_slots = WeakKeyDictionary()


def _slot_count() -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return MAX_SLOTS
    return max(MIN_SLOTS, min(MAX_SLOTS, (soft - RESERVED_FDS) // FDS_PER_PROCESS))


# A program with a path and plain words, which a shell would pass on unchanged. `~`, globs, quotes,
# variables and `VAR=x` before the program are shell syntax.
_ARGUMENTS = r"(?: +[\w./@%+:,=-]+)* *"
_PLAIN_COMMAND = re.compile(rf" *[\w.@%+:,-]*/[\w./@%+:,-]*{_ARGUMENTS}", re.ASCII)

# The same with the name of a program, which may also be the name of something in the shell.
_NAMED_COMMAND = re.compile(rf" *([A-Za-z0-9][\w.+-]*){_ARGUMENTS}", re.ASCII)

# Builtins and reserved words of dash, bash, ksh, zsh and BusyBox.
_SHELL_WORDS = frozenset(
    "alias|autoload|bg|bind|bindkey|break|builtin|bye|caller|case|cd|chdir|command|compgen|complete"
    "|compopt|continue|coproc|declare|dirs|disable|disown|do|done|echo|elif|else|emulate|enable|end"
    "|esac|eval|exec|exit|export|false|fc|fg|fi|float|for|foreach|function|functions|getln|getopts|hash"
    "|help|hist|history|if|in|integer|jobs|kill|let|limit|local|logout|mapfile|nameref|namespace|newgrp"
    "|nocorrect|noglob|popd|print|printf|pushd|pwd|read|readarray|readonly|rehash|repeat|return|select"
    "|set|setopt|shift|shopt|sleep|source|stop|suspend|test|then|time|times|trap|true|type|typeset"
    "|ulimit|umask|unalias|unfunction|unhash|unlimit|unset|unsetopt|until|vared|wait|whence|where|which"
    "|while|zmodload".split("|")
)

# setsid forks and returns at once when it leads its process group, as a directly started program does.
# Started by a shell, it waits.
_SETSID = re.compile(r"(?:^|[ /])setsid(?: |$)")


class LocalShell:
    """Run each command as a child process in a session of its own."""

    is_local = True

    def slot(self, *, background: bool = False) -> contextlib.AbstractAsyncContextManager[None]:
        """Wait for a slot of this process; all LocalShells share them, as they share its file descriptors."""
        loop = asyncio.get_running_loop()
        if loop not in _slots:
            total = _slot_count()
            _slots[loop] = asyncio.Semaphore(total - total // 4), asyncio.Semaphore(max(1, total // 4))
        return _slots[loop][background]

    async def run(
        self, hook: CommandHook, *, cwd: str, env: Mapping[str, str], stdin: bytes, live: HookRunContext
    ) -> Exited:
        async def start(*argv: str, program: str | None = None) -> Exited:
            return await run_process(argv, cwd=cwd, env=env, stdin=stdin, live=live, program=program)

        if hook.args is not None:
            argv = (hook.command, *hook.args)
            try:
                return await start(*argv)
            except NotStarted as error:
                if error.errno != errno.ENOEXEC:
                    raise
                from shutil import which  # noqa: PLC0415 # lazy: few hooks need it, and it loads bz2 and lzma

                return await start(which("bash") or "/bin/sh", *argv)  # a script without a shebang
        if hook.shell == "powershell":
            from shutil import which  # noqa: PLC0415 # lazy: as above

            powershell = which("pwsh", path=env.get("PATH"))
            if powershell is None:
                return Exited(127, stderr='"shell" is "powershell", but pwsh is not in the PATH')
            return await start(powershell, "-NoProfile", "-NonInteractive", "-Command", hook.command)
        program = (
            _find_program(hook.command, env, by_name=live.finds_programs) if hook.shell is None else None
        )
        if program is not None:
            # On failure the shell below gives the reason with its own exit code (126, 127), and runs
            # a script that has no shebang line.
            words = hook.command.split()
            try:
                return await start(*words, program=program)
            except NotStarted as error:
                if error.errno == errno.ENOENT and (why := interpreter_problem(cwd, words[0])):
                    live.warnings.append(why)
        return await start(hook.shell or "/bin/sh", "-c", "--", hook.command)


def _find_program(command: str, env: Mapping[str, str], *, by_name: bool) -> str | None:
    """Return the program of a plain command, or None if the command needs a shell, or only a shell may find it."""
    if _SETSID.search(command):
        return None
    if _PLAIN_COMMAND.fullmatch(command):
        return command.split(maxsplit=1)[0]
    named = _NAMED_COMMAND.fullmatch(command) if by_name else None
    if named is None or named[1] in _SHELL_WORDS or f"BASH_FUNC_{named[1]}%%" in env:
        return None
    for folder in env.get("PATH", "").split(":"):
        if not folder.startswith("/"):  # relative to the project; the shell knows what that means
            return None
        path = f"{folder}/{named[1]}"
        if os.access(path, os.X_OK) and os.path.isfile(path):
            return path
    return None
