"""Where a command of a hook runs: its folder, its variables, the paths in it, and the work that is left for its check."""

import os
import re
import shutil
from collections.abc import Mapping
from typing import NamedTuple

from turngate.core.events.hook_input import clean_environment
from turngate.core.hooks.kinds import CommandHook
from turngate.core.settings import Settings
from turngate.core.shell.expand import Expansion, expand
from turngate.core.shell.parse import Word

MAX_WORK = 500_000  # of one check
MAX_COMMAND_CHARS = 10_000  # a longer command is not checked


class BudgetSpentError(Exception):
    """Raised when the hooks that follow are not checked."""


class LintBudget:
    """The work that is left, in characters that are read; the search for a file or a program counts as some."""

    def __init__(self, work: int = MAX_WORK) -> None:
        self.left = work

    def spend(self, work: int) -> None:
        """Call it before the work. Raises BudgetSpentError."""
        self.left -= work
        if self.left < 0:
            raise BudgetSpentError


PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "MUX_PROJECT_DIR", "TURNGATE_PROJECT_DIR")

_SEARCH_WORK = 20  # in characters that could be read meanwhile

# Set for each run by Turngate or by the program that starts it.
_SET_BY_THE_RUN = re.compile(r"\b(?:CLAUDE|MUX|TURNGATE)_\w+|\bCLAUDECODE\b")


class Scope(NamedTuple):
    """Where a command runs. `cwd` is None after a `cd` to a folder that is not known."""

    project: str
    home: str
    variables: Mapping[str, str | None]  # None: set, with a value that only a run of the hook knows
    cwd: str | None
    budget: LintBudget
    has_moved: bool = False  # the command itself chose its folder

    def expand(self, word: Word) -> Expansion | None:
        expansion = expand(word, self.variables, self.home)
        self.budget.spend(1 + len(expansion.text) if expansion else 1)
        return expansion

    def resolve(self, path: str) -> str | None:
        """Return the absolute path, or None if it depends on a folder that is not known."""
        if os.path.isabs(path):
            return path
        return os.path.join(self.cwd, path) if self.cwd else None

    def has_program(self, name: str) -> bool:
        path = self.variables.get("PATH")
        self.budget.spend(_SEARCH_WORK + len(path or "") // 10)
        return shutil.which(name, path=path) is not None

    def assign(self, name: str, value: str | None) -> "Scope":
        self.budget.spend(len(self.variables) // 10)
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
    hook: CommandHook, settings: Settings, project: str, budget: LintBudget, pass_env: tuple[str, ...] | None
) -> Scope:
    """Return the scope of a hook's command. A plugin's folder is in the `env` of its hooks."""
    budget.spend((len(settings.env) + len(hook.env) + len(os.environ)) // 10)
    variables: dict[str, str | None] = {name: None for name in _SET_BY_THE_RUN.findall(hook.command)}
    inherited = os.environ if pass_env is None else clean_environment(os.environ, pass_env)
    variables |= {**inherited, "PWD": project, **settings.env, **hook.env}
    variables |= {name: project for name in PROJECT_VARIABLES}
    home = variables.get("HOME") or os.path.expanduser("~")
    return Scope(project, home, variables, project, budget)
