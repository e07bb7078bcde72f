"""Command hooks: a program that reads the event as JSON on its stdin."""

import asyncio
import contextlib
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from turngate.aio.threads import raise_if_cancelled, run_in_thread
from turngate.core.answers.report_types import HookFailed, Report
from turngate.core.constants import COMMAND_LINE, ENV_FILE_VARIABLES, HOOK_TIMEOUT
from turngate.core.events.events import Event, StopEvent
from turngate.core.events.hook_input import clean_environment, encode, environment
from turngate.core.hooks.kinds import CommandHook
from turngate.core.hooks.plugin_variables import (
    PLUGIN_DATA,
    describe_user_config,
    expand_plugin_variables,
    missing_plugin_variable,
    used_user_config,
)
from turngate.core.settings import Settings
from turngate.core.text import describe_name, one_line, printable
from turngate.ports import ConnectionLost, HookRunContext, NotStarted, World
from turngate.state.files import make_private_dir
from turngate.state.paths import state_folder

MAX_VARIABLE_BYTES = 100_000  # the kernel allows 128 KiB
MAX_ENVIRONMENT_BYTES = 1_000_000  # the kernel allows about 2 MB together with the arguments
_GIVEN_HERE = ("python", COMMAND_LINE)  # levels of hooks that are never those of another machine
BYTECODE_VARIABLE = "PYTHONPYCACHEPREFIX"  # where Python reads and writes bytecode, in place of __pycache__


async def run_command(
    hook: CommandHook,
    event: Event,
    settings: Settings,
    world: World,
    live: HookRunContext,
    *,
    pass_env: tuple[str, ...] | None = None,
) -> Report:
    """Run the command. `pass_env`: its environment is clean, with these variables."""
    try:
        event = await with_copies(event, world)
    except OSError as error:
        return HookFailed(str(error))
    prepared = await prepare_command(hook, event, settings, world, live, pass_env=pass_env)
    if isinstance(prepared, HookFailed):
        return prepared
    ready, environ = prepared
    stdin = encode(event, settings.dialect, settings.payload)
    env = {**environ, **_time_left(live)}
    live.finds_programs = not settings.dialect.is_claude_code  # Claude Code has a shell for every command
    try:
        report = await raise_if_cancelled(
            world.shell.run(ready, cwd=world.project, env=env, stdin=stdin, live=live)
        )
    except (NotStarted, ConnectionLost) as error:
        return HookFailed(str(error))
    if world.copies is not None and world.copies.has_lost(event.stopping_transcript):
        return HookFailed("the connection was lost before it started, and the copy of its transcript with it")
    return report


def with_own_bytecode(
    hook: CommandHook, files: Mapping[str, str | None], settings: Settings, world: World
) -> CommandHook:
    """Return a hook that runs one of its files, and has modules of Python, with a folder for their bytecode.

    A repository could bring bytecode that Python runs instead of the modules that were approved. For other commands, such
    as those of the project's tests, all that they load would be compiled once more. On another machine, Python makes the
    folder itself.
    """
    text = " ".join((hook.command, *(hook.args or ())))
    stems = (os.path.splitext(os.path.basename(name))[0] for name in files)
    is_alone = sum(name.endswith(".py") for name in files) < (1 if "-m" in text else 2)
    environ = {**world.environ, **settings.env}
    if (
        is_alone
        or not any(stem and stem in text for stem in stems)
        or BYTECODE_VARIABLE in {**environ, **hook.env}
    ):
        return hook
    home = world.files.home if world.machine else None
    folder = os.path.join(state_folder(environ, home), "trust", "bytecode")
    if not world.machine:
        with contextlib.suppress(OSError):  # without the folder, Python keeps no bytecode
            make_private_dir(folder)
    return replace(hook, env={**hook.env, BYTECODE_VARIABLE: folder})


async def with_copies(event: Event, world: World) -> Event:
    """Return the event with the paths of its transcripts where the hook runs; the file of SessionStart hooks is renewed there."""
    if world.copies is None:
        return event
    if event.transcript_path:
        event = replace(event, transcript_path=await world.copies.copy(event.transcript_path))
    if isinstance(event, StopEvent) and event.subagent and event.subagent.transcript_path:
        path = await world.copies.copy(event.subagent.transcript_path)
        event = replace(event, subagent=replace(event.subagent, transcript_path=path))
    if copy := world.environ.get(ENV_FILE_VARIABLES[0]):
        with contextlib.suppress(OSError):  # few hooks need it; without a connection none of them runs
            renewed = await world.copies.renew(copy)
            if renewed != copy:
                world.environ = {**world.environ, **dict.fromkeys(ENV_FILE_VARIABLES, renewed)}
    return event


def _time_left(live: HookRunContext) -> dict[str, str]:
    if live.deadline is None:
        return {}
    return {HOOK_TIMEOUT: f"{max(0.0, live.deadline - asyncio.get_running_loop().time()):.3f}"}


async def prepare_command(
    hook: CommandHook,
    event: Event,
    settings: Settings,
    world: World,
    live: HookRunContext,
    *,
    pass_env: tuple[str, ...] | None = None,
) -> tuple[CommandHook, dict[str, str]] | HookFailed:
    """Return a command with its variables expanded, and its whole environment. `pass_env`: it is clean, with these variables."""
    missing = missing_plugin_variable(hook, settings.env)
    if missing:
        return HookFailed(
            f"its command uses ${{{missing}}}, which only hooks of a plugin have; "
            "load the plugin with --plugin-dir or `pluginDirs`"
        )
    if found := used_user_config(hook):
        return HookFailed(f"it {describe_user_config(found[0])}; write the value itself")
    await _make_data_folder(hook, world, live)
    of_event = {"PWD": world.project, **environment(event, world.project, settings.dialect, pid=os.getpid())}
    inherited = world.environ if pass_env is None else clean_environment(world.environ, pass_env)
    complete = {**inherited, **settings.env, **hook.env, **of_event}
    if hook.env:
        live.redactor = world.redactor({**settings.env, **hook.env})
    env = sanitize_env(complete)
    if len(env) < len(complete):
        missing = _list_names(complete.keys() - env.keys())
        live.warnings.append(f"{missing} was not passed to it: too long, or not a valid text")
    return _prepare_hook(hook, world.project, honors_shell=settings.dialect.honors_shell), env


async def _make_data_folder(hook: CommandHook, world: World, live: HookRunContext) -> None:
    if not (folder := hook.env.get(PLUGIN_DATA)):
        return
    problem: object = None
    try:
        if world.machine:
            script = CommandHook("/bin/sh", args=("-c", 'umask 077 && mkdir -p -- "$1"', "sh", folder))
            there = HookRunContext()
            made = await world.shell.run(script, cwd="/", env=world.environ, stdin=b"", live=there)
            problem = f"{folder}: {one_line(made.stderr)}" if made.code != 0 else None
        else:
            await run_in_thread(make_private_dir, folder)
    except OSError as error:
        problem = error
    if problem:
        live.warnings.append(f"the folder for its data could not be made: {problem}")


def environ_and_level(source: str, world: World) -> tuple[Mapping[str, str], str]:
    """Return the variables that a hook of this level may send, and the level that decides where it may send them.

    A hook that is configured on another machine gets nothing of the environment here, which may hold keys, and is
    trusted no more than one of a project.
    """
    if world.machine and source not in _GIVEN_HERE:
        return world.environ, "project"
    return world.own_environ, source


_PROJECT_VARIABLES = re.compile(r"\$\{(?:CLAUDE|MUX|TURNGATE)_PROJECT_DIR\}")


def _prepare_hook(hook: CommandHook, project: str, *, honors_shell: bool) -> CommandHook:
    """Expand the variables that Claude Code expands; drop an ignored `shell`."""
    if hook.args is not None:
        words = (hook.command, *hook.args)
        command, *args = (_PROJECT_VARIABLES.sub(lambda _: project, word) for word in words)
        hook = replace(hook, command=command, args=tuple(args))
    hook = expand_plugin_variables(hook)
    keeps_shell = honors_shell or hook.shell in (None, "powershell")
    return hook if keeps_shell else replace(hook, shell=None)


def _list_names(names: Collection[str]) -> str:
    first = ", ".join(sorted(printable(describe_name(name)) for name in names)[:3])
    return f"${first}" if len(names) <= 3 else f"{len(names):,} variables (${first} …)"


def sanitize_env(env: dict[str, str]) -> dict[str, str]:
    """Drop the variables that no process can be given (X-33). Of too many, the later ones are kept: they are the more important ones."""
    names, values = "".join(env), "".join(env.values())
    plain = (names + values).isascii() and "\0" not in names and "\0" not in values
    if plain and len(names) + len(values) < MAX_VARIABLE_BYTES and "=" not in names and "" not in env:
        return env
    room = MAX_ENVIRONMENT_BYTES
    sanitized: dict[str, str] = {}
    for name, value in reversed(env.items()):
        size = _size(name) + _size(value)
        if size <= min(MAX_VARIABLE_BYTES, room) and name and "=" not in name:
            sanitized[name] = value
            room -= size + 16
    return sanitized


def _size(text: str) -> int:
    """Return the size in bytes, or more than any limit for a text that cannot be passed."""
    if "\0" in text:
        return MAX_ENVIRONMENT_BYTES + 1
    if text.isascii():
        return len(text)
    try:
        return len(os.fsencode(text))
    except UnicodeEncodeError:
        return MAX_ENVIRONMENT_BYTES + 1
