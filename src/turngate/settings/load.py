"""Loads the settings of a project: the files of the dialect's families, and the script hooks next to them."""

import json
import os
from dataclasses import replace
from typing import Any

from turngate.core.constants import EVENTS
from turngate.core.dialect import DIALECTS, Dialect
from turngate.core.settings import Layer, Problem, Settings, merge
from turngate.errors import UsageError
from turngate.settings import keys
from turngate.settings.parse import parse_layer
from turngate.settings.paths import FileTooLarge, NotARegularFile, SettingsFile, read_bytes, settings_files
from turngate.settings.script_hooks import script_layers

MAX_FILE_BYTES = 16 * 1024 * 1024
MAX_PROBLEMS = 200  # reported per file


def load_settings(project: str = ".", *, dialect: str = "turngate", home: str | None = None) -> Settings:
    """Return the merged settings of a project. An invalid file does not affect the others; see `problems`."""
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
        text = _read(file.path)
    except FileNotFoundError:
        return None
    except _Unreadable as error:
        return _unusable(file, str(error), error.hint)
    try:
        value = json.loads(text, parse_constant=_reject_constant) if text.strip() else {}
        duplicates = _duplicate_keys(text)
    except json.JSONDecodeError as error:
        return _unusable(file, _describe_syntax_error(text, error))
    except RecursionError:
        return _unusable(file, "not readable: it is nested too deeply")
    except ValueError as error:
        return _unusable(file, f"not JSON: {error}")
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


class _Unreadable(Exception):
    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


def _read(path: str) -> str:
    try:
        return read_bytes(path, MAX_FILE_BYTES).decode("utf-8-sig")
    except NotARegularFile as error:
        raise _Unreadable(str(error), error.hint) from None
    except FileTooLarge:
        raise _Unreadable(f"is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB") from None
    except UnicodeDecodeError as error:
        raise _Unreadable(f"is not UTF-8 (byte {error.start})", "save it as UTF-8") from None
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise _Unreadable("is a link to a file that does not exist") from None
        raise FileNotFoundError from None
    except OSError as error:
        raise _Unreadable(f"cannot be read: {error.strerror}", "check its permissions") from None


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON value")


MAX_SEARCHED_BYTES = 64 * 1024  # a larger file is searched only if the name of an event occurs twice in it


def _duplicate_keys(text: str) -> list[str]:
    """Return the keys that occur twice in one object: json.loads drops the first without an error."""
    if len(text) > MAX_SEARCHED_BYTES and not any(text.count(f'"{event}"') > 1 for event in EVENTS):
        return []
    duplicates: dict[str, None] = {}

    def collect(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                duplicates[name] = None
            seen.add(name)

    if text.strip():
        json.loads(text, object_pairs_hook=collect)
    return list(duplicates)


def _duplicate(file: SettingsFile, key: str) -> Problem:
    message = f"the key {json.dumps(key)} occurs twice in one object: only the last one is used"
    return Problem(file=file.display_name, message=message, hint="merge the two values")


def _describe_syntax_error(text: str, error: json.JSONDecodeError) -> str:
    """Return line, column and cause, with better words for common mistakes than those of the json module."""
    position, cause = error.pos, error.msg[0].lower() + error.msg[1:]
    rest = text[position:].lstrip()
    before = text[:position].rstrip()
    if rest.startswith(("//", "/*", "#")):
        cause = "comments are not allowed in JSON"
    elif (rest[:1] in ("}", "]") and before.endswith(",")) or "trailing comma" in cause:
        # Python 3.13 points at the comma, older versions behind it.
        position = text.rindex(",", 0, position + 1)
        cause = "a comma before the closing bracket is not allowed in JSON"
    elif error.msg == "Extra data":
        cause = "there is more text after the JSON value"
    elif rest.startswith("'"):
        cause = 'strings need double quotes (")'
    line = text.count("\n", 0, position) + 1
    return f"not JSON at line {line}, column {position - text.rfind(chr(10), 0, position)}: {cause}"


def _unusable(file: SettingsFile, message: str, hint: str | None = None) -> Layer:
    problem = Problem(file=file.display_name, message=f"{message}; none of its hooks run", hint=hint)
    return Layer(file=file.display_name, level=file.level, family=file.family, problems=(problem,))
