"""Loads the settings of a project: the files of the dialect's families, and the script hooks next to them."""

import json
import os
from dataclasses import replace

from turngate.core.dialect import DIALECTS, Dialect
from turngate.core.settings import Layer, Problem, Settings, merge
from turngate.errors import UsageError
from turngate.settings import keys
from turngate.settings.json_file import UnreadableFile, read_json
from turngate.settings.parse import parse_layer
from turngate.settings.paths import SettingsFile, settings_files
from turngate.settings.script_hooks import script_layers

MAX_PROBLEMS = 200  # reported per file


def load_settings(project: str = ".", *, dialect: str = "turngate", home: str | None = None) -> Settings:
    """Return the merged settings of a project. An invalid file does not affect the others; see `problems`."""
    return read_settings(project_path(project), dialect=dialect, home=home)


def project_path(project: str) -> str:
    """Return the absolute path of a project's folder. Raises UsageError if it is not a folder."""
    if os.path.isdir(project):
        return os.path.abspath(project)
    wrong = f"{project} is not a folder" if os.path.lexists(project) else f"there is no folder {project}"
    raise UsageError(f"{wrong}; expected the project's folder, which holds .turngate, .mux or .claude")


def read_settings(project: str, *, dialect: str, home: str | None = None) -> Settings:
    """Return the merged settings of a project whose folder may not exist: then only those of the user are found."""
    if dialect not in DIALECTS:
        raise UsageError(f"unknown dialect {dialect!r}, expected one of {', '.join(DIALECTS)}")
    project = os.path.abspath(project)
    layers = [_load_file(file, DIALECTS[dialect]) for file in settings_files(project, dialect, home)]
    scripts = script_layers(project, dialect)
    return merge([*(layer for layer in layers if layer), *scripts], keys.MERGE_RULES, DIALECTS[dialect])


def has_unloaded_hooks(settings: Settings, *events: str) -> bool:
    """Return whether a hook that was meant for one of these events was not loaded."""
    return any(
        problem.event is None or problem.event in events or keys.closest_event(problem.event) in events
        for problem in settings.not_loaded
    )


def _load_file(file: SettingsFile, dialect: Dialect) -> Layer | None:
    """Return the layer of a file, or None if the file does not exist."""
    try:
        value, duplicates = read_json(file.path)
    except FileNotFoundError:
        return None
    except UnreadableFile as error:
        return _unusable(file, str(error), error.hint)
    layer = parse_layer(value, file=file.display_name, level=file.level, family=file.family, dialect=dialect)
    problems = (*layer.problems, *(_duplicate(file, key) for key in duplicates))
    return replace(layer, problems=_limit_problems(problems))


def _limit_problems(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """Return the first problems, and one that counts the others with the severity of the worst."""
    rest = problems[MAX_PROBLEMS:]
    if not rest:
        return problems
    worst = min((problem.severity for problem in rest), key=("error", "warning", "note").index)
    more = Problem(file=rest[0].file, message=f"and {len(rest):,} more", severity=worst)
    return (*problems[:MAX_PROBLEMS], more)


def _duplicate(file: SettingsFile, key: str) -> Problem:
    message = f"the key {json.dumps(key)} occurs twice in one object: only the last one is used"
    return Problem(file=file.display_name, message=message, hint="merge the two values")


def _unusable(file: SettingsFile, message: str, hint: str | None = None) -> Layer:
    problem = Problem(file=file.display_name, message=f"{message}; none of its hooks run", hint=hint)
    return Layer(file=file.display_name, level=file.level, family=file.family, problems=(problem,))
