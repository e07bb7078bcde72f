"""Where a linter of Python looks: the files that its command or its configuration names."""

import configparser
import contextlib
import glob
import os
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from turngate.doctor.proof.gate_text import read_text

NEW_FILE = "turngate_planted.py"
_KEYS = {"mypy": ("files",), "ruff": ("include",), "pyright": ("include",)}
_UNKNOWN_KEYS = {"mypy": ("packages", "modules")}  # they name no paths


class CannotPlantError(Exception):
    """Raised for a failure that the gate seems to look for and that cannot be planted; the text says why."""


def linted_file(tool: str, words: Sequence[str], project: str) -> str:
    """Return a file that the tool checks, from the project's folder; it may be new. Raises CannotPlantError."""
    named = [word for word in words if os.path.exists(os.path.join(project, word))]
    if found := _first_file(named, project):
        return found
    options = _options(tool, project)
    entries = [entry for key in _KEYS.get(tool, ()) for entry in _as_list(options.get(key))]
    unknown = next((key for key in _UNKNOWN_KEYS.get(tool, ()) if options.get(key)), None)
    if not entries and not unknown:
        return _first_file(["src"], project) or NEW_FILE
    if found := _first_file(entries, project):
        return found
    keys = unknown or _KEYS[tool][0]
    raise CannotPlantError(f"its {tool} checks only what its configuration names ({keys})")


def _first_file(entries: Sequence[str], project: str) -> str | None:
    """Return the first Python file that an entry names, or a new one in the first folder."""
    for entry in entries:
        for path in sorted(glob.glob(entry, root_dir=project, recursive=True)):
            if os.path.isdir(os.path.join(project, path)):
                return os.path.normpath(os.path.join(path, NEW_FILE))
            if path.endswith(".py"):
                return os.path.normpath(path)
    return None


def _options(tool: str, project: str) -> Mapping[str, Any]:
    """Return the tool's options in the first of its files that has some."""
    for name in (f"{tool}.ini", f".{tool}.ini", "setup.cfg"):
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        with contextlib.suppress(configparser.Error):
            parser.read_string(read_text(os.path.join(project, name)))
        if parser.has_section(tool):
            return dict(parser[tool])
    for name in (f"{tool}.toml", f".{tool}.toml", "pyproject.toml"):
        with contextlib.suppress(tomllib.TOMLDecodeError, AttributeError, KeyError, TypeError):
            table = tomllib.loads(read_text(os.path.join(project, name)))
            if table:
                return dict(table["tool"][tool] if name == "pyproject.toml" else table)
    return {}


def _as_list(value: object) -> list[str]:
    if isinstance(value, str):
        return [each.strip() for each in value.replace("\n", ",").split(",") if each.strip()]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []
