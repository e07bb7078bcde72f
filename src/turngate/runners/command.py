"""Command hooks: a program of the project's, told what happened on its stdin."""

import os
from collections.abc import Collection
from dataclasses import replace

from turngate.aio.cancellation import raise_if_cancelled
from turngate.core.events import Event
from turngate.core.hook_input import encode, environment
from turngate.core.hooks import CommandHook
from turngate.core.reports import Report
from turngate.core.settings import Settings
from turngate.ports import RunContext, World


async def run_command(
    hook: CommandHook, event: Event, settings: Settings, world: World, live: RunContext
) -> Report:
    told = {"PWD": world.project, **environment(event, world.project)}
    wanted = {**world.environ, **settings.env, **hook.env, **told}
    env = sanitize_env(wanted)
    if len(env) < len(wanted):
        live.warnings.append(f"it did not get {_listed(wanted.keys() - env.keys())}: too long, or no text")
    return await raise_if_cancelled(
        world.shell.run(
            hook if settings.dialect.honours_shell else replace(hook, shell=None),
            cwd=world.project,
            env=env,
            stdin=encode(event, settings.dialect, settings.payload),
            live=live,
        )
    )


def _listed(names: Collection[str]) -> str:
    shown = ", ".join(sorted(ascii(name)[1:41] for name in names)[:3])
    return f"${shown}" if len(names) <= 3 else f"{len(names):,} variables (${shown} …)"


LONGEST = 100_000  # bytes of one variable; the kernel takes 128 KiB
ALL_TOGETHER = 1_000_000  # bytes of all of them; the kernel takes about 2 MB with the arguments


def sanitize_env(env: dict[str, str]) -> dict[str, str]:
    """Without what no process can be given: one bad variable would take the whole hook down (X-33).

    Later entries are the more important ones, and come first when the room is short.
    """
    names, values = "".join(env), "".join(env.values())
    plain = (names + values).isascii() and "\0" not in names and "\0" not in values
    if plain and len(names) + len(values) < LONGEST and "=" not in names and "" not in env:
        return env
    room = ALL_TOGETHER
    kept: dict[str, str] = {}
    for name, value in reversed(env.items()):
        size = _size(name) + _size(value)
        if size <= min(LONGEST, room) and name and "=" not in name:
            kept[name] = value
            room -= size + 16
    return kept


def _size(text: str) -> int:
    """In bytes, or more than there is room for when it can not be passed at all."""
    if "\0" in text:
        return ALL_TOGETHER + 1
    if text.isascii():
        return len(text)
    try:
        return len(os.fsencode(text))
    except UnicodeEncodeError:
        return ALL_TOGETHER + 1
