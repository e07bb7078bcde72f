"""Finds what was probably meant by the name of a program or a script that does not exist."""

import difflib
import os
from itertools import islice

from turngate.check.command_context import LintBudget, Scope
from turngate.gates.toolchains import PROGRAMS

MAX_SIMILAR_FILES = 500
MAX_PROGRAMS = 5_000  # of one folder of the PATH
_FOLDER_WORK = 100  # in characters that could be read meanwhile

# Where a script of hooks usually is, from the project's folder.
_SCRIPT_FOLDERS = (
    *(".turngate", ".turngate/hooks", ".claude/hooks", ".claude", ".mux", ".mux/hooks"),
    *("scripts", "hooks", "tools", "bin"),
)


def missing_program_hint(name: str, scope: Scope) -> str:
    """Return what to do about a program that is not in the PATH."""
    if os.path.isfile(os.path.join(scope.cwd or scope.project, name)):
        return f"did you mean ./{name}?"
    for folder in _SCRIPT_FOLDERS:
        if os.path.isfile(os.path.join(scope.project, folder, name)):
            return f"did you mean {folder}/{name}?"
    if name in PROGRAMS:
        return f"install {name}"
    hint = f"install {name}, or correct the name"
    similar = _closest(name, PROGRAMS, 0.8, scope.budget)
    similar = similar or _closest(name, _programs(scope, name[:1]), 0.85, scope.budget)
    return f'{hint}; did you mean "{similar}"?' if similar else hint


def _programs(scope: Scope, first: str) -> list[str]:
    """Return the names in the PATH that begin with a letter."""
    names: set[str] = set()
    for folder in (scope.variables.get("PATH") or "").split(os.pathsep):
        scope.budget.spend(_FOLDER_WORK)
        try:
            with os.scandir(folder or ".") as entries:
                names.update(entry.name for entry in islice(entries, MAX_PROGRAMS) if entry.name[:1] == first)
        except (OSError, ValueError):
            continue
    return sorted(names)


def similar_file(path: str, budget: LintBudget) -> str | None:
    """Return the name of a file in the same folder that is close to that of a missing one."""
    try:
        names = sorted(os.listdir(os.path.dirname(path)))[:MAX_SIMILAR_FILES]
    except (OSError, ValueError):
        return None
    return _closest(os.path.basename(path), names, 0.7, budget)


def _closest(name: str, names: list[str], similarity: float, budget: LintBudget) -> str | None:
    name = name[:100]
    budget.spend(len(name) * sum(map(len, names)) // 20)
    return next(iter(difflib.get_close_matches(name, names, 1, similarity)), None)
