"""Where a command of a hook runs: its folder, its variables, and the paths in it."""

import os
import re
import shutil
from collections.abc import Mapping
from typing import NamedTuple

from turngate.core.events.hook_input import clean_environment
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Settings
from turngate.core.shell.parse import Expansion, Word, expand

MAX_COMMAND_CHARS = 10_000  # a longer command is not checked
PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "MUX_PROJECT_DIR", "TURNGATE_PROJECT_DIR")

# Set for each run by Turngate or by the program that starts it.
_SET_BY_THE_RUN = re.compile(r"\b(?:CLAUDE|MUX|TURNGATE)_\w+|\bCLAUDECODE\b")


class Scope(NamedTuple):
    """Where a command runs. `cwd` is None after a `cd` to a folder that is not known."""

    project: str
    home: str
    variables: Mapping[str, str | None]  # None: set, with a value that only a run of the hook knows
    cwd: str | None
    has_moved: bool = False  # the command itself chose its folder

    def expand(self, word: Word) -> Expansion | None:
        return expand(word, self.variables, self.home)

    def resolve(self, path: str) -> str | None:
        """Return the absolute path, or None if it depends on a folder that is not known."""
        if os.path.isabs(path):
            return path
        return os.path.join(self.cwd, path) if self.cwd else None

    def has_program(self, name: str) -> bool:
        return shutil.which(name, path=self.variables.get("PATH")) is not None

    def assign(self, name: str, value: str | None) -> "Scope":
        return self._replace(variables={**self.variables, name: value})

    def change_folder(self, path: str | None) -> "Scope":
        return self._replace(cwd=None if path is None else self.resolve(path), has_moved=True)

    def display(self, path: str, word: Word) -> str:
        """Return a path for a message: as it is written, with the project's folder and `~` instead of variables."""
        for folder, prefix in ((self.project, ""), (self.home, "~/")):
            if word.has_variable and path.startswith(folder.rstrip("/") + "/"):
                return prefix + os.path.relpath(path, folder)
        return word.plain if word.plain and word.plain.startswith("~/") else path


def command_scope(
    hook: CommandHook, settings: Settings, project: str, pass_env: tuple[str, ...] | None
) -> Scope:
    """Return the scope of a hook's command. A plugin's folder is in the `env` of its hooks."""
    variables: dict[str, str | None] = {name: None for name in _SET_BY_THE_RUN.findall(hook.command)}
    inherited = os.environ if pass_env is None else clean_environment(os.environ, pass_env)
    variables |= {**inherited, "PWD": project, **settings.env, **hook.env}
    variables |= {name: project for name in PROJECT_VARIABLES}
    home = variables.get("HOME") or os.path.expanduser("~")
    return Scope(project, home, variables, project)
