"""Keeps Python from running bytecode that a repository brings instead of the modules that were approved."""

import contextlib
import os
from collections.abc import Mapping
from dataclasses import replace

from turngate.core.hooks.kinds import CommandHook
from turngate.state.files import make_private_dir
from turngate.state.paths import state_folder

VARIABLE = "PYTHONPYCACHEPREFIX"  # where Python reads and writes bytecode, in place of __pycache__


def with_own_bytecode(
    hook: CommandHook,
    files: Mapping[str, str | None],
    environ: Mapping[str, str],
    home_there: str | None = None,
) -> CommandHook:
    """Return a hook that loads modules of its own with a folder for their bytecode. A script alone has none.

    `home_there` is the home folder on another machine, where Python makes the folder itself.
    """
    modules = [path for path, recorded in files.items() if recorded and path.endswith(".py")]
    if not modules or (len(modules) == 1 and "-m" not in hook.command) or VARIABLE in {**environ, **hook.env}:
        return hook
    folder = os.path.join(state_folder(environ, home_there), "trust", "bytecode")
    if home_there is None:
        with contextlib.suppress(OSError):  # without the folder, Python keeps no bytecode
            make_private_dir(folder)
    return replace(hook, env={**hook.env, VARIABLE: folder})
